/* Finds a Python interpreter for an environment, and pip. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "frameworks/install_internal.h"

#define ASK_LIMIT_NS INT64_C(30000000000)
#define VENV_LIMIT_NS INT64_C(300000000000)
/*
 * The registry may have to look for each of thirty files, and three GB at 1 MB/s take 50 minutes.
 */
#define PIP_LIMIT_NS INT64_C(7200000000000)
#define ANSWER_BYTES_MAX ((size_t)4096)
#define PIP_WORDS_MAX (LOCK_WORDS_MAX + 24)

/* True when the interpreter runs `question` with exit code 0; *answer receives its output. */
static bool ask(const char *python, const char *question, char **answer)
{
	const char *const argv[] = {python, "-c", question, NULL};
	const char *const environment[] = {"PYTHONSAFEPATH=1", NULL};
	const struct process_spec spec = {
		.argv = argv, .environment = environment, .new_group = true};
	struct process_end end;
	char *output = NULL;
	bool good = process_run(&spec, ASK_LIMIT_NS, ANSWER_BYTES_MAX, &output, &end, NULL) ==
			    PRONY_OK &&
		    !end.signalled && end.code == 0;

	if (good && answer)
		*answer = output;
	else
		free(output);
	return good;
}

/* The version must be the lock's: compiled packages of another one cannot be imported. */
static bool fits(const char *python, const char *version, const char **why)
{
	char *answer = NULL;
	bool runs = ask(python, "import sys; print('%d.%d' % sys.version_info[:2])", &answer);
	size_t length = strlen(version);
	bool right =
		runs && strncmp(answer, version, length) == 0 && strcspn(answer, "\r\n") == length;

	free(answer);
	*why = !runs	? "does not run"
	       : !right ? "is another version"
			: "has no venv or ensurepip module";
	return right && ask(python, "import venv, ensurepip", NULL);
}

static bool take(struct install *install, const char *python, const char *version,
		 struct strbuf *looked, const char **found)
{
	const char *why = NULL;
	bool good = fits(python, version, &why);

	if (good)
		*found = arena_strdup(&install->arena, python);
	else
		strbuf_printf(looked, "%s%s (%s)", looked->length ? ", " : "", python, why);
	return good;
}

static bool take_program(struct install *install, const char *program, const char *version,
			 struct strbuf *looked, const char **found)
{
	char *path = process_find(program);
	bool good = path && take(install, path, version, looked, found);

	if (!path)
		strbuf_printf(looked, "%sno %s%s", looked->length ? ", " : "", program,
			      strchr(program, '/') ? "" : " on PATH");
	free(path);
	return good;
}

/* pyenv's versions are not on PATH until they are selected. */
static bool take_pyenv(struct install *install, const char *version, struct strbuf *looked,
		       const char **found)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	bool named = root && *root;
	glob_t matches;
	bool good = false;

	if (!named && (!home || !*home))
		return false;
	const char *pattern =
		arena_printf(&install->arena, "%s%s/versions/%s.*/bin/python%s",
			     named ? root : home, named ? "" : "/.pyenv", version, version);
	size_t count = memory_glob(pattern, 0, &matches);
	if (count == 0)
		strbuf_printf(looked, ", no %s", pattern);
	for (size_t i = count; i-- > 0 && !good;)
		good = take(install, matches.gl_pathv[i], version, looked, found);
	globfree(&matches);
	return good;
}

const char *install_find_python(struct install *install, const char *version, struct strbuf *looked)
{
	const char *variable = framework_variable("python", version, &install->arena);
	const char *named = getenv(variable);
	const char *found = NULL;

	if (named && *named) {
		/* Do not silently ignore a wrong name from the user. */
		take_program(install, named, version, looked, &found);
		return found;
	}
	strbuf_printf(looked, "%s is not set", variable);
	const char *program = arena_printf(&install->arena, "python%s", version);
	if (take_program(install, program, version, looked, &found) ||
	    take_pyenv(install, version, looked, &found) ||
	    take_program(install, "python3", version, looked, &found) ||
	    take_program(install, "/usr/bin/python3", version, looked, &found))
		return found;
	return NULL;
}

enum prony_status install_venv(struct install *install, const char *python, const char *folder,
			       struct error *err)
{
	const char *const argv[] = {python, "-m", "venv", folder, NULL};
	struct error failure = ERROR_INIT;
	struct strbuf output;

	strbuf_init(&output, 0);
	enum prony_status status =
		install_child(install, argv, VENV_LIMIT_NS, NULL, &output, &failure);
	if (status != PRONY_OK)
		error_set(err, status, "%s: '%s -m venv': %s: %s", install->spelling, python,
			  failure.text, strbuf_text(&output));
	else
		install->python = arena_printf(&install->arena, "%s/" VENV_ENTRY, folder);
	strbuf_release(&output);
	return status;
}

/* Debian's python3 has no pip, but its venv module provides one. */
static enum prony_status make_pip(struct install *install, const char *python, struct error *err)
{
	const char *folder = arena_printf(&install->arena, "%s/pip", install->staging);

	return install_venv(install, python, folder, err);
}

enum prony_status install_find_pip(struct install *install, struct error *err)
{
	const char *named = getenv("PRONY_PYTHON");
	const char *candidates[] = {named && *named ? named : "python3", "/usr/bin/python3"};
	const char *maker = NULL;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		char *path = process_find(candidates[i]);
		const char *python = path ? arena_strdup(&install->arena, path) : NULL;
		free(path);
		if (!python)
			continue;
		if (ask(python, "import pip", NULL)) {
			install->python = python;
			return PRONY_OK;
		}
		if (!maker && ask(python, "import venv, ensurepip", NULL))
			maker = python;
	}
	if (maker)
		return make_pip(install, maker, err);
	return error_set(err, PRONY_MISSING,
			 "%s needs pip for the download, but neither %s nor /usr/bin/python3 has "
			 "it; install it (Debian: apt install python3-venv), or set PRONY_PYTHON "
			 "to a Python with pip",
			 install->spelling, candidates[0]);
}

/* Shows the lines of pip that matter during a download of three GB. */
static void show_pip_line(const struct install *install, const char *text)
{
	text += strspn(text, " ");
	if (strncmp(text, "Downloading ", 12) == 0 && strchr(text, '(')) {
		const char *name = text + 12;
		/* Drop the registry's address before the file name. */
		for (const char *c = name; *c && *c != ' '; c++)
			if (*c == '/')
				name = c + 1;
		if (!strstr(name, ".metadata"))
			install_say(install, "downloading %s", name);
	} else if (strncmp(text, "Installing collected packages", 29) == 0) {
		install_say(install, "downloaded; unpacking");
	}
}

static bool holds_any(const char *text, const char *const *needles)
{
	for (size_t i = 0; needles[i]; i++)
		if (strstr(text, needles[i]))
			return true;
	return false;
}

/* From the last line of pip that says ERROR to its end. */
static const char *last_words(const char *output, struct arena *arena)
{
	const char *found = NULL;

	for (const char *at = output; (at = strstr(at, "ERROR: ")) != NULL; at++)
		found = at;
	if (!found)
		return "it printed no error";
	return arena_strndup(arena, found, strcspn(found, "\n") < 400 ? strcspn(found, "\n") : 400);
}

static const char *const full[] = {"No space left on device", "Disk quota exceeded", NULL};

enum prony_status install_explain_full(const struct install *install, enum prony_status status,
				       struct error *err)
{
	if (status == PRONY_OK || !err || !holds_any(err->text, full))
		return status;
	error_clear(err);
	return error_set(err, PRONY_IO,
			 "%s: the disk with %s is full; free some space, or set XDG_DATA_HOME to a "
			 "folder on another disk",
			 install->spelling, install->folder);
}

static enum prony_status explain(struct install *install, const char *output, struct error *err)
{
	static const char *const changed[] = {"DO NOT MATCH THE HASHES", NULL};
	static const char *const unreachable[] = {"Retrying (Retry(",
						  "NewConnectionError",
						  "Temporary failure in name resolution",
						  "Max retries exceeded",
						  "ReadTimeoutError",
						  "ConnectionResetError",
						  "Connection broken",
						  "ProxyError",
						  "SSLError",
						  NULL};
	const char *words = last_words(output, &install->arena);

	if (holds_any(output, changed))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: nothing was installed, because a downloaded file does not "
				 "have the SHA-256 in %s; try again. If that does not help, the "
				 "package index that pip uses is damaged or was tampered with",
				 install->spelling, install->lock.name);
	if (holds_any(output, full))
		return error_set(err, PRONY_IO, "%s: %s", install->spelling, full[0]);
	if (holds_any(output, unreachable))
		return error_set(err, PRONY_IO,
				 "%s: pip could not reach a package index; check the network, "
				 "pip's index and its proxy ('pip config', PIP_INDEX_URL), or set "
				 "PIP_FIND_LINKS to a folder with the wheels listed in %s; pip: %s",
				 install->spelling, install->lock.path, words);
	return error_set(err, PRONY_IO,
			 "%s: pip could not download the packages in %s; check pip's settings "
			 "('pip config list') and try again; pip: %s",
			 install->spelling, install->lock.path, words);
}

static enum prony_status run_pip(struct install *install, const char *subcommand,
				 const char *requirements, struct error *err)
{
	const char *argv[PIP_WORDS_MAX] = {install->python,
					   "-m",
					   "pip",
					   "--disable-pip-version-check",
					   "--no-input",
					   subcommand,
					   "--require-hashes",
					   "--retries",
					   "2",
					   "--progress-bar",
					   "off"};
	size_t count = 11;
	struct strbuf output;

	for (size_t i = 0; i < install->lock.pip_arguments.count; i++)
		argv[count++] = install->lock.pip_arguments.words[i];
	if (install->lock.kind == LOCK_UNPACK) {
		argv[count++] = "--dest";
		argv[count++] = install->wheels;
	}
	argv[count++] = "-r";
	argv[count++] = requirements;
	strbuf_init(&output, 0);
	/* Keep a separate error: the message of a failed pip is in its output. */
	struct error failure = ERROR_INIT;
	enum prony_status status =
		install_child(install, argv, PIP_LIMIT_NS, show_pip_line, &output, &failure);
	if (status == PRONY_BAD_INPUT)
		status = explain(install, strbuf_text(&output), err);
	else if (status != PRONY_OK)
		error_set(err, status, "%s: pip: %s", install->spelling, failure.text);
	strbuf_release(&output);
	return status;
}

enum prony_status install_pip(struct install *install, const char *subcommand, struct error *err)
{
	return run_pip(install, subcommand, install->lock.path, err);
}

enum prony_status install_own_pip(struct install *install, struct error *err)
{
	const char *pip = install->lock.pip, *space = strchr(pip, ' ');
	const char *path = arena_printf(&install->arena, "%s/pip.txt", install->temporary);

	if (!space)
		return PRONY_OK;
	install_say(install, "pip %.*s first", (int)(space - pip), pip);
	const char *text = arena_printf(&install->arena, "pip==%.*s --hash=sha256:%s\n",
					(int)(space - pip), pip, space + 1);
	enum prony_status status = file_write_atomic(path, text, strlen(text), err);

	return status == PRONY_OK ? run_pip(install, "install", path, err) : status;
}
