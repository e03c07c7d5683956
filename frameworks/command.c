/* Builds the command line and environment of a framework's worker. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "frameworks/folders_internal.h"

#define ARGUMENTS_MAX 9

/* Libraries read these variables while loading, before an adapter can set anything. */
static const char *const thread_variables[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
					       "OPENBLAS_NUM_THREADS"};
#define THREAD_VARIABLES (sizeof(thread_variables) / sizeof(thread_variables[0]))

static enum prony_status python_worker(struct arena *arena, const char **script, struct error *err)
{
	char *share = path_share();
	enum prony_status status = PRONY_OK;

	if (!share)
		return error_set(err, PRONY_MISSING,
				 "python/worker.py was not found near the program; set PRONY_SHARE "
				 "to the folder that contains python/");
	const char *path = arena_printf(arena, "%s/python/worker.py", share);
	if (file_exists(path))
		*script = path;
	else
		status = error_set(err, PRONY_MISSING,
				   "%s is missing; install the program again, or set PRONY_SHARE "
				   "to the folder that contains python/",
				   path);
	free(share);
	return status;
}

const char *framework_cache_folder(const struct framework_location *place, struct arena *arena)
{
	char *home = path_data_home();
	const char *folder = arena_printf(
		arena, "%s/cache/%s", home,
		framework_environment_name(place->framework, place->environment, arena));

	free(home);
	return folder;
}

void placeholder_values(const struct framework_location *place, int threads, struct arena *arena,
			const char *values[PLACEHOLDER_COUNT])
{
	const char *file = place->framework->file, *slash = strrchr(file, '/');

	values[PLACEHOLDER_HERE] = slash ? arena_strndup(arena, file, (size_t)(slash - file)) : ".";
	values[PLACEHOLDER_FOLDER] = place->folder;
	values[PLACEHOLDER_CACHE] = framework_cache_folder(place, arena);
	values[PLACEHOLDER_THREADS] = arena_printf(arena, "%d", threads);
}

static size_t add_variables(const struct word_list *variables,
			    const char *const values[PLACEHOLDER_COUNT], struct arena *arena,
			    const char **rows, size_t count)
{
	for (size_t i = 0; i < variables->count; i++)
		rows[count++] = placeholders_replace(variables->words[i], values, arena);
	return count;
}

/* Order: threads, the framework's own variables, those of the options. Later rows win. */
static const char *const *environment_rows(const struct framework_location *place,
					   const char *options, int threads,
					   const char *const values[PLACEHOLDER_COUNT],
					   struct arena *arena)
{
	const struct framework *framework = place->framework;
	size_t room = THREAD_VARIABLES + framework->variables.count + 1, count = 0;

	for (size_t i = 0; i < framework->option_count; i++)
		room += framework->options[i].variables.count;
	const char **rows = arena_array(arena, room, sizeof(*rows));
	for (size_t i = 0; threads > 0 && i < THREAD_VARIABLES; i++)
		rows[count++] = arena_printf(arena, "%s=%d", thread_variables[i], threads);
	count = add_variables(&framework->variables, values, arena, rows, count);
	/* The words of a cell's options are unique. */
	for (const char *name = options ? options : ""; *name;) {
		size_t length = strcspn(name, ",");
		const struct framework_option *option = framework_option(framework, name, length);

		if (option)
			count = add_variables(&option->variables, values, arena, rows, count);
		name += length + (name[length] == ',');
	}
	return rows;
}

static const char *const *command_words(const struct framework_location *place,
					const char *const values[PLACEHOLDER_COUNT],
					struct arena *arena)
{
	const struct word_list *command = &place->framework->command;
	const char **words = arena_array(arena, command->count + 1, sizeof(*words));

	words[0] = place->program;
	for (size_t i = 1; i < command->count; i++)
		words[i] = placeholders_replace(command->words[i], values, arena);
	return words;
}

static enum prony_status adapter_words(const struct framework_location *place, const char *self,
				       const char *options, struct arena *arena,
				       const char *const **argv, struct error *err)
{
	const struct framework *framework = place->framework;
	const char **words = arena_array(arena, ARGUMENTS_MAX, sizeof(*words));
	size_t count = 0;

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
	if (framework->kind == FRAMEWORK_BUILTIN && options && *options) {
		words[count++] = "--option";
		words[count++] = options;
	}
	*argv = words;
	return PRONY_OK;
}

enum prony_status framework_worker_command(const struct framework_location *place, const char *self,
					   const char *options, int threads, struct arena *arena,
					   const char *const **argv,
					   const char *const **environment, struct error *err)
{
	const char *values[PLACEHOLDER_COUNT];
	enum prony_status status = PRONY_OK;

	if (place->origin == ORIGIN_NONE)
		return error_set(err, PRONY_MISSING, "%s: %s", place->framework->name,
				 place->reason ? place->reason : "not found");
	placeholder_values(place, threads, arena, values);
	if (place->framework->kind == FRAMEWORK_COMMAND)
		*argv = command_words(place, values, arena);
	else
		status = adapter_words(place, self, options, arena, argv, err);
	if (status == PRONY_OK)
		*environment = environment_rows(place, options, threads, values, arena);
	return status;
}
