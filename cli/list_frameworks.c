/* `prony list frameworks`: one row per backend and per installed environment. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/framework_word.h"
#include "cli/listing.h"

const struct table_column framework_columns[] = {
	{"FRAMEWORK", "framework", TABLE_LEFT}, {"STATE", "state", TABLE_LEFT},
	{"ORIGIN", "found", TABLE_LEFT},	{"VERSION", "version", TABLE_LEFT},
	{"WHERE", "where", TABLE_LEFT},		{.title = NULL},
};

/* An array of the words of the set bits. */
static json_t *words_of(unsigned bits, const struct vocabulary *vocabulary)
{
	json_t *array = json_array();
	for (int i = 0; i < vocabulary->count; i++)
		if (bits & 1u << i)
			json_array_append_new(array, json_string(vocabulary->words[i]));
	return array;
}

static json_t *options_of(const struct framework *framework)
{
	json_t *array = json_array();
	for (size_t i = 0; i < framework->option_count; i++)
		json_array_append_new(array,
				      json_pack("{s:s, s:s}", "option", framework->options[i].name,
						"help", framework->options[i].help));
	return array;
}

static json_t *devices_of(const struct framework *framework)
{
	json_t *array = json_pack("[s]", "cpu");
	if (framework->devices & FRAMEWORK_CUDA)
		json_array_append_new(array, json_string("cuda"));
	if (framework->devices & FRAMEWORK_ANY)
		json_array_append_new(array, json_string("any"));
	return array;
}

/* The word of the origin in the table: of one that was discovered, where. */
static const char *found_in(const struct framework_location *place)
{
	static const char *const active[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};

	if (place->origin != ORIGIN_DISCOVERED)
		return framework_origin_name(place->origin);
	for (size_t i = 0; i < sizeof active / sizeof *active; i++) {
		const char *folder = getenv(active[i]);
		size_t length = folder ? strlen(folder) : 0;
		if (length && !strncmp(place->interpreter, folder, length))
			return "environment";
	}
	return "PATH";
}

static json_t *framework_row(const struct framework *framework, const char *environment)
{
	struct arena arena;
	struct framework_location place;
	struct error err = ERROR_INIT;
	arena_init(&arena, 0);
	if (framework_locate(framework, environment, &arena, &place, &err) != PRONY_OK)
		place = (struct framework_location){.framework = framework,
						    .environment = environment,
						    .version = "",
						    .reason = err.text};
	bool ready = place.origin != ORIGIN_NONE;
	const char *path = place.library       ? place.library
			   : place.interpreter ? place.interpreter
					       : place.program;
	const char *status = ready ? "ready" : framework->broken ? "broken" : "missing";
	bool ours = place.origin == ORIGIN_INSTALLED;
	/* The table shows the folder; JSON has the program or library too. */
	const struct {
		const char *key;
		json_t *value;
	} members[] = {
		{"framework", json_string(framework_spelling(framework, environment, &arena))},
		{"name", json_string(framework->name)},
		{"environment", listing_text(place.environment)},
		{"backend", listing_text(framework->backend)},
		{"status", json_string(status)},
		{"state", json_string(status)},
		{"origin", json_string(framework_origin_name(place.origin))},
		{"found", json_string(found_in(&place))},
		{"version", listing_text(place.version)},
		{"where", listing_text(ours ? place.folder : path)},
		{"path", listing_text(path)},
		{"reason", listing_text(ready ? NULL : place.reason)},
		{"searched", listing_text(ready ? NULL : place.searched)},
		{"summary", json_string(framework->summary)},
		{"descriptor", json_string(framework->file)},
		{"stages", words_of(framework->stages, &stage_vocabulary)},
		{"precisions", words_of((framework->precisions | framework->cuda_precisions) &
						((1u << PRECISION_ASKED) - 1),
					&precision_vocabulary)},
		{"loops", words_of(framework->loops, &loop_mode_vocabulary)},
		{"devices", devices_of(framework)},
		{"options", options_of(framework)},
	};
	json_t *row = json_object();
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		json_object_set_new(row, members[i].key, members[i].value);
	arena_release(&arena);
	return row;
}

json_t *framework_rows(struct registry *registry)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < registry->count; i++) {
		const char *const *found;
		size_t count = framework_environments(&registry->rows[i], &registry->arena, &found);
		json_array_append_new(rows, framework_row(&registry->rows[i], ""));
		for (size_t k = 0; k < count; k++)
			json_array_append_new(rows, framework_row(&registry->rows[i], found[k]));
	}
	return rows;
}

/* Adds to each reason the places that were searched. */
static void add_searched(json_t *rows)
{
	size_t i;
	json_t *row;
	json_array_foreach(rows, i, row)
	{
		const char *searched = json_string_value(json_object_get(row, "searched"));
		if (searched)
			json_object_set_new(
				row, "reason",
				json_sprintf("%s; %s",
					     json_string_value(json_object_get(row, "reason")),
					     searched));
	}
}

static void say_wrong_shared(void)
{
	const char *shared = getenv("PRONY_SHARED");
	if (shared && *shared && !file_is_directory(shared))
		cli_say("warning: PRONY_SHARED names '%s', where no folder is found\n", shared);
}

int listing_frameworks(struct registry *registry, const char *const *words, size_t count,
		       const char *format, bool full)
{
	json_t *rows = count ? json_array() : framework_rows(registry);
	struct error err = ERROR_INIT;
	say_wrong_shared();
	for (size_t i = 0; i < count && !err.code; i++) {
		const struct framework *framework;
		const char *environment;
		if (!framework_word(registry, words[i], &framework, &environment, &err))
			json_array_append_new(rows, framework_row(framework, environment));
	}
	if (!err.code && !strcmp(format, "json"))
		cli_print_json(rows);
	else if (!err.code) {
		if (full)
			add_searched(rows);
		listing_print(framework_columns, rows);
	}
	json_decref(rows);
	return err.code ? cli_fail(&err) : 0;
}
