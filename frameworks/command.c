/* How the worker of a framework that was found is started. */
#include <stdlib.h>

#include "base/files.h"
#include "frameworks/internal.h"

#define ARGUMENTS_MAX 9
#define ROWS_MAX 8

/* Libraries read these when they are loaded, before an adapter can say anything. */
static const char *const *thread_rows(int threads, struct arena *arena)
{
	static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
					    "OPENBLAS_NUM_THREADS"};
	const char **rows = arena_array(arena, ROWS_MAX, sizeof(*rows));

	if (threads > 0)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			rows[i] = arena_printf(arena, "%s=%d", names[i], threads);
	return rows;
}

static enum prony_status python_worker(struct arena *arena, const char **script, struct error *err)
{
	char *share = path_share();
	enum prony_status status = PRONY_OK;

	if (!share)
		return error_set(
			err, PRONY_MISSING,
			"the folder with python/worker.py was not found beside the program; "
			"set PRONY_SHARE to it");
	const char *path = arena_printf(arena, "%s/python/worker.py", share);
	if (file_exists(path))
		*script = path;
	else
		status = error_set(
			err, PRONY_MISSING,
			"%s is not there; install the program again, or set PRONY_SHARE to "
			"the folder that holds python/",
			path);
	free(share);
	return status;
}

enum prony_status framework_worker_command(const struct framework_place *place, const char *self,
					   const char *option, int threads, struct arena *arena,
					   const char *const **argv,
					   const char *const **environment, struct error *err)
{
	const struct framework *framework = place->framework;
	const char **words = arena_array(arena, ARGUMENTS_MAX, sizeof(*words));
	size_t count = 0;

	if (place->origin == ORIGIN_NONE)
		return error_set(err, PRONY_MISSING, "%s: %s", framework->name,
				 place->reason ? place->reason : "not found");
	if (framework->kind == FRAMEWORK_PYTHON) {
		const char *script = NULL;
		enum prony_status status = python_worker(arena, &script, err);
		if (status != PRONY_OK)
			return status;
		words[count++] = place->interpreter;
		words[count++] = script;
	} else {
		words[count++] = self;
		words[count++] = "worker";
	}
	words[count++] = "--adapter";
	words[count++] = framework->adapter;
	if (framework->kind == FRAMEWORK_LIBRARY) {
		words[count++] = "--library";
		words[count++] = place->library;
	}
	if (framework->kind == FRAMEWORK_BUILTIN && option && *option) {
		words[count++] = "--option";
		words[count++] = option;
	}
	*argv = words;
	*environment = thread_rows(threads, arena);
	return PRONY_OK;
}
