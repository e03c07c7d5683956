/* Finds a framework on this machine: named by the user, installed by prony, or discovered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "cell/cell.h"
#include "frameworks/descriptor.h"
#include "frameworks/folders_internal.h"
#include "frameworks/lock.h"

#define CANDIDATES_MAX 4

/* Makes a path absolute, because the worker starts in another folder. */
static const char *absolute(const char *path, struct arena *arena)
{
	char *real = strchr(path, '/') ? realpath(path, NULL) : NULL;

	if (!real && strchr(path, '/'))
		memory_check(errno);
	const char *kept = real ? arena_strdup(arena, real) : path;

	free(real);
	return kept;
}

static void locate_named_library(const char *variable, const char *value, struct arena *arena,
				 struct framework_location *place)
{
	if (!file_exists(value) || file_is_directory(value)) {
		place->reason = arena_printf(
			arena, "%s is set to %s, which is not a file; correct or unset it",
			variable, value);
		return;
	}
	place->origin = ORIGIN_NAMED;
	place->library = absolute(value, arena);
}

/* Do not resolve the link of an interpreter: the link in a virtual environment leads to the
 * interpreter without that environment. */
static void locate_named_python(const char *variable, const char *value, struct arena *arena,
				struct framework_location *place)
{
	const struct framework *framework = place->framework;
	struct python_answer answer;
	char *program = process_find(value);

	if (!program) {
		place->reason = arena_printf(
			arena, "%s is set to %s, which is not a program; correct or unset it",
			variable, value);
		return;
	}
	python_ask(program, framework, arena, &answer);
	if (!answer.ran || !answer.found) {
		place->reason = arena_printf(
			arena, "%s is set to %s, which %s; correct or unset it", variable, value,
			answer.ran ? arena_printf(arena, "has no module %s",
						  words_joined(&framework->modules, arena))
				   : "is not a working Python interpreter");
	} else {
		place->origin = ORIGIN_NAMED;
		place->interpreter = answer.executable;
		place->version = answer.version;
	}
	free(program);
}

/* True when the user named one, even a wrong one: do not silently ignore it. */
static bool locate_named(const char *variable, struct arena *arena,
			 struct framework_location *place)
{
	const char *value = getenv(variable);

	if (!value || !*value)
		return false;
	if (place->framework->kind == FRAMEWORK_LIBRARY)
		locate_named_library(variable, value, arena, place);
	else
		locate_named_python(variable, value, arena, place);
	return true;
}

/* The user may have filled the folder by hand; then the pattern finds the library. */
const char *framework_library_in(const char *folder, const struct framework *framework,
				 struct arena *arena)
{
	const char *pattern = arena_printf(arena, "%s/%s", folder, framework->library_pattern);
	const char *found = NULL;
	glob_t matches;

	if (memory_glob(pattern, 0, &matches) > 0)
		found = arena_strdup(arena, matches.gl_pathv[matches.gl_pathc - 1]);
	globfree(&matches);
	return found;
}

/* Whether this user may not read a file of a folder that others filled; the reason then says so. */
static bool is_closed(const char *path, struct arena *arena, struct framework_location *place)
{
	if (access(path, R_OK) == 0 || errno != EACCES)
		return false;
	place->reason = arena_printf(
		arena, "%s: permission denied; its owner can make it readable with chmod -R a+rX",
		path);
	return true;
}

static bool locate_installed(const char *folder, struct arena *arena,
			     struct framework_location *place)
{
	const struct framework *framework = place->framework;
	struct manifest manifest;
	const char *entry = NULL;
	bool others = false;

	if (is_closed(arena_printf(arena, "%s/%s", folder, MANIFEST_NAME), arena, place) ||
	    !file_is_directory(folder))
		return false;
	if (manifest_read(folder, arena, &manifest)) {
		others = *manifest.entry == '/';
		entry = others ? manifest.entry
			       : arena_printf(arena, "%s/%s", folder, manifest.entry);
		if (is_closed(entry, arena, place))
			return false;
		if (!file_has_bytes(entry)) {
			place->reason = arena_printf(
				arena, "%s is %s; install it again: " CELL_INSTALL "%s", entry,
				file_exists(entry) ? "empty" : "missing",
				framework_spelling(framework, place->environment, arena));
			return false;
		}
	} else if (framework->kind == FRAMEWORK_LIBRARY) {
		entry = framework_library_in(folder, framework, arena);
	}
	if (!entry)
		return false;
	/* An environment made by others may change without us; it counts as named by the user. */
	place->origin = others ? ORIGIN_NAMED : ORIGIN_INSTALLED;
	place->version = manifest.version;
	place->folder = others ? "" : folder;
	if (framework->kind == FRAMEWORK_LIBRARY)
		place->library = entry;
	else
		place->interpreter = entry;
	return true;
}

/* In the user's own folder, or else in one that is shared. */
static bool locate_in(const char *const *folders, size_t count, struct arena *arena,
		      struct framework_location *place)
{
	for (size_t i = 0; i < count; i++)
		if (locate_installed(folders[i], arena, place)) {
			place->reason = NULL;
			return true;
		}
	return false;
}

static void add_candidate(const char *path, const char **candidates, size_t *count,
			  struct arena *arena)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(candidates[i], path) == 0)
			return;
	if (*count < CANDIDATES_MAX)
		candidates[(*count)++] = arena_strdup(arena, path);
}

/* Candidates for the user's own Python, most specific first. */
static size_t list_candidates(const char **candidates, struct arena *arena)
{
	static const char *const active[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
	static const char *const programs[] = {"python3", "python"};
	size_t count = 0;

	for (size_t i = 0; i < 2; i++) {
		const char *prefix = getenv(active[i]);
		char *path = prefix && *prefix ? path_join(prefix, "bin/python") : NULL;
		if (path && file_exists(path))
			add_candidate(path, candidates, &count, arena);
		free(path);
	}
	for (size_t i = 0; i < 2; i++) {
		char *path = process_find(programs[i]);
		if (path)
			add_candidate(path, candidates, &count, arena);
		free(path);
	}
	return count;
}

/* True when found; otherwise *looked says where it was searched. */
static bool discover(struct arena *arena, struct framework_location *place, const char **looked)
{
	const char *candidates[CANDIDATES_MAX];
	size_t count = list_candidates(candidates, arena);
	struct strbuf text;
	bool found = false;

	strbuf_init(&text, 512);
	for (size_t i = 0; i < count && !found; i++) {
		struct python_answer answer;
		python_ask(candidates[i], place->framework, arena, &answer);
		found = answer.found;
		if (found) {
			place->origin = ORIGIN_DISCOVERED;
			place->interpreter = answer.executable;
			place->version = answer.version;
		} else {
			strbuf_printf(&text, "%s%s%s", i ? ", " : "", candidates[i],
				      answer.ran ? "" : " (does not run)");
		}
	}
	*looked = arena_strdup(arena, count ? strbuf_text(&text) : "python3 (none on PATH)");
	strbuf_release(&text);
	return found;
}

static void locate_command(struct arena *arena, struct framework_location *place)
{
	const char *values[PLACEHOLDER_COUNT];

	placeholder_values(place, 0, arena, values);
	const char *program =
		placeholders_replace(place->framework->command.words[0], values, arena);
	char *found = process_find(program);

	if (found) {
		place->origin = ORIGIN_NAMED;
		place->program = arena_strdup(arena, found);
	} else {
		place->reason =
			arena_printf(arena, "%s: the command %s is not a program here; correct it",
				     place->framework->file, program);
	}
	free(found);
}

static void locate_without_environment(struct arena *arena, struct framework_location *place)
{
	if (*place->environment) {
		place->reason = arena_printf(arena, "%s has no environments; write %s without @",
					     place->framework->name, place->framework->name);
	} else if (place->framework->kind == FRAMEWORK_COMMAND) {
		locate_command(arena, place);
	} else {
		place->origin = ORIGIN_BUILTIN;
		place->version = PRONY_VERSION;
	}
}

enum prony_status framework_locate(const struct framework *framework, const char *environment,
				   struct arena *arena, struct framework_location *place,
				   struct error *err)
{
	const char *looked = NULL;

	enum prony_status status = framework_check_environment(framework, environment, err);

	if (status != PRONY_OK)
		return status;
	*place = (struct framework_location){
		.framework = framework,
		.environment = arena_strdup(arena, environment ? environment : ""),
		.version = "",
		.folder = ""};
	if (framework->broken) {
		place->reason = framework->broken;
		return PRONY_OK;
	}
	if (framework->kind == FRAMEWORK_BUILTIN || framework->kind == FRAMEWORK_COMMAND) {
		locate_without_environment(arena, place);
		return PRONY_OK;
	}

	bool library = framework->kind == FRAMEWORK_LIBRARY;
	const char *spelling = framework_spelling(framework, environment, arena);
	const char *variable = framework_variable(spelling, library ? "LIBRARY" : "PYTHON", arena);
	const char *const *folders;
	size_t count = framework_folders(framework, environment, arena, &folders);
	if (locate_named(variable, arena, place) || locate_in(folders, count, arena, place))
		return PRONY_OK;
	/* NAME@ENV asks for a specific environment; do not use any other interpreter for it. */
	if (!library && !*place->environment && discover(arena, place, &looked)) {
		place->reason = NULL;
		return PRONY_OK;
	}
	if (place->reason)
		return PRONY_OK;
	int64_t mb = lock_download_mb(framework, environment, arena);
	place->reason =
		arena_printf(arena, "not installed: " CELL_INSTALL "%s%s%s", spelling,
			     mb ? arena_printf(arena, " (%s)", lock_megabytes_text(mb, arena)) : "",
			     looked ? ", or activate an environment that has it" : "");
	place->searched =
		arena_printf(arena, "not found in %s%s%s%s%s, and %s is not set", folders[0],
			     count > 1 ? ", " : "", count > 1 ? folders[1] : "", looked ? ", " : "",
			     looked ? looked : "", variable);
	return PRONY_OK;
}

const char *framework_fault(const struct framework_location *place, struct arena *arena)
{
	const struct framework *framework = place->framework;
	const char *const *folders, *folder = NULL;
	size_t count = framework_folders(framework, place->environment, arena, &folders);
	struct manifest manifest;
	struct python_answer answer;

	for (size_t i = 0; i < count && !folder; i++)
		if (manifest_read(folders[i], arena, &manifest))
			folder = folders[i];
	if (!folder)
		return NULL;
	if (place->origin == ORIGIN_NONE)
		return place->reason;
	/* A path named by a variable takes precedence and is checked every time. */
	bool ours = place->origin == ORIGIN_INSTALLED || *manifest.entry == '/';
	const char *fault = place->origin == ORIGIN_INSTALLED
				    ? framework_files_fault(folder, &manifest, arena)
				    : NULL;
	if (fault)
		return fault;
	if (framework->kind != FRAMEWORK_PYTHON || !ours)
		return NULL;
	python_ask(place->interpreter, framework, arena, &answer);
	if (!answer.ran)
		return arena_printf(arena, "%s does not run", place->interpreter);
	if (!answer.found)
		return arena_printf(arena, "no module %s in %s",
				    words_joined(&framework->modules, arena), folder);
	return place->origin == ORIGIN_INSTALLED ? framework_packages_fault(folder, arena) : NULL;
}
