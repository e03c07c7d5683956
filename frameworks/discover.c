/* Finds out which modules a Python interpreter can import, without importing them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "frameworks/folders_internal.h"

#define ASK_LIMIT_NS INT64_C(10000000000)
#define ANSWER_BYTES_MAX ((size_t)64 * 1024)
#define ANSWER_MARK "prony-answer:"

/* Ignores the empty entry of sys.path, our working directory, where a folder may happen to have the
 * module's name, and namespace packages (no origin), which are such folders elsewhere. Runs on
 * Python 2.7 and later, so that an old interpreter answers instead of failing. */
static const char question[] =
	"import sys, os, json\n"
	"sys.path = [p for p in sys.path if p]\n"
	"modules, distribution = sys.argv[1:3]\n"
	"found, version = False, ''\n"
	"try:\n"
	"    from importlib.util import find_spec\n"
	"    specs = [find_spec(name) for name in modules.split(',')]\n"
	"    found = all(s is not None and s.origin not in (None, 'namespace') for s in specs)\n"
	"except (ImportError, ValueError):\n"
	"    pass\n"
	"if found:\n"
	"    try:\n"
	"        from importlib import metadata\n"
	"        version = metadata.version(distribution) or ''\n"
	"    except Exception:\n"
	"        pass\n"
	"print('\\n" ANSWER_MARK
	"' + json.dumps({'found': found, 'version': version, 'executable': sys.executable,\n"
	"      'path': [p for p in sys.path if os.path.isdir(p)]}))\n";

/* Modification time in ns since 1970; 0 when the file does not exist. */
static int64_t modified_ns(const char *path)
{
	struct stat info;

	if (stat(path, &info) != 0)
		return 0;
	return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static bool is_script(const char *path)
{
	char *text = NULL;
	size_t length = 0;
	/* A larger interpreter is a binary, not a script; do not read it. */
	bool script = file_read(path, ANSWER_BYTES_MAX, &text, &length, NULL) == PRONY_OK &&
		      length >= 2 && memcmp(text, "#!", 2) == 0;

	free(text);
	return script;
}

static const char *cache_path(const char *interpreter, const struct framework *framework,
			      struct arena *arena)
{
	const char *key = arena_printf(
		arena, "%s\n%s\n%s\n%s", interpreter, words_joined(&framework->modules, arena),
		framework->distribution, getenv("PYTHONPATH") ? getenv("PYTHONPATH") : "");
	char hex[DIGEST_HEX_BYTES];
	char *home = path_data_home();

	digest_bytes(key, strlen(key), hex);
	const char *path = arena_printf(arena, "%s/cache/python/%.16s.json", home, hex);
	free(home);
	return path;
}

/*
 * A cached answer is valid while the interpreter and the folders of its module path are unchanged.
 */
static bool still_true(const char *interpreter, const json_t *document)
{
	json_t *folders;
	const char *folder;
	json_t *stamp;

	if (!json_is_object(document) ||
	    json_int_or(document, "interpreter_ns", -1) != modified_ns(interpreter) ||
	    json_get_object(document, "folders", &folders, NULL) != PRONY_OK)
		return false;
	json_object_foreach(folders, folder, stamp) if (!json_is_integer(stamp) ||
							json_integer_value(stamp) !=
								modified_ns(folder)) return false;
	return true;
}

static void take_answer(const json_t *document, const char *interpreter, struct arena *arena,
			struct python_answer *answer)
{
	const char *executable = json_string_or(document, "executable", "");

	answer->ran = true;
	answer->found = json_bool_or(document, "found", false);
	answer->executable = arena_strdup(arena, *executable ? executable : interpreter);
	answer->version = arena_strdup(arena, json_string_or(document, "version", ""));
}

/* Caching is optional: ignore a failed write. */
static void keep_answer(const char *cache, const char *interpreter, json_t *document)
{
	json_t *folders = json_object(), *path = json_object_get(document, "path"), *folder;
	size_t i;

	json_array_foreach(path, i, folder)
	{
		const char *name = json_string_value(folder);
		if (name)
			json_object_set_new(folders, name, json_integer(modified_ns(name)));
	}
	json_object_set_new(document, "folders", folders);
	json_object_set_new(document, "interpreter_ns", json_integer(modified_ns(interpreter)));
	json_object_del(document, "path");

	char *text = json_dumps(document, JSON_COMPACT);
	char *directory = strndup(cache, (size_t)(strrchr(cache, '/') - cache));
	if (text && directory && directory_make(directory, NULL) == PRONY_OK)
		file_write_atomic(cache, text, strlen(text), NULL);
	free(directory);
	free(text);
}

/* New reference; NULL when the program is not Python or does not answer in time. */
static json_t *run_question(const char *interpreter, const struct framework *framework,
			    struct arena *arena)
{
	const char *const argv[] = {interpreter,
				    "-c",
				    question,
				    words_joined(&framework->modules, arena),
				    framework->distribution,
				    NULL};
	const char *const environment[] = {"PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1", NULL};
	const struct process_spec spec = {
		.argv = argv, .environment = environment, .new_group = true};
	struct process_end end;
	char *output = NULL;
	json_t *document = NULL;

	if (process_run(&spec, ASK_LIMIT_NS, ANSWER_BYTES_MAX, &output, &end, NULL) == PRONY_OK &&
	    !end.signalled && end.code == 0) {
		char *text = strstr(output, ANSWER_MARK);
		if (text) {
			text += strlen(ANSWER_MARK);
			json_parse(text, strcspn(text, "\n"), interpreter, &document, NULL);
		}
	}
	free(output);
	return document;
}

void python_ask(const char *interpreter, const struct framework *framework, struct arena *arena,
		struct python_answer *answer)
{
	const char *cache = cache_path(interpreter, framework, arena);
	bool cached = !is_script(interpreter);
	json_t *document = NULL;

	*answer = (struct python_answer){.executable = interpreter, .version = ""};
	if (cached && json_read_file(cache, ANSWER_BYTES_MAX, &document, NULL) == PRONY_OK &&
	    still_true(interpreter, document)) {
		take_answer(document, interpreter, arena, answer);
		json_decref(document);
		return;
	}
	json_decref(document);
	document = run_question(interpreter, framework, arena);
	if (!document)
		return;
	take_answer(document, interpreter, arena, answer);
	if (cached)
		keep_answer(cache, interpreter, document);
	json_decref(document);
}
