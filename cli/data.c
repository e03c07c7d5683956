/* `prony data`: lists, verifies, fetches and converts data sets. */
#include "cli/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "datasets/converted.h"
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "datasets/image.h"

struct data_options data_options = {.format = "table"};

const struct option data_option_rows[] = {
	CLI_OPTION_DATA(struct data_options),
	CLI_OPTION_FORMAT(struct data_options),
	{TEXT_OPTION(struct data_options, to, "to", "FORMAT",
		     "with convert: the format: lmdb, recordio, tfrecord or png")},
	{.letter = 'o',
	 TEXT_OPTION(struct data_options, output, "output", "DIR",
		     "with convert: the output folder")},
	{INT_OPTION(struct data_options, size, "size", 1, IMAGE_SIDE_MAX, "N",
		    "with convert: resize photographs to N x N pixels (default: unchanged)")},
	{.name = NULL},
};

/* The number of classes, and their names if the data set is here and has names. */
static void classes_cell(struct table *table, const struct dataset *dataset, const char *folder,
			 struct error *err)
{
	const char **names = NULL;
	struct arena arena;
	char count[32];

	if (!dataset->format) {
		table_cell(table, "any", json_null());
		return;
	}
	arena_init(&arena, 0);
	snprintf(count, sizeof(count), "%" PRId64, dataset->classes);
	if (folder)
		dataset_class_names(dataset, folder, &arena, &names, err);
	json_t *list = names ? json_array() : json_null();
	for (int64_t i = 0; names && i < dataset->classes; i++)
		json_array_append_new(list, json_string(names[i]));
	table_cell(table, count,
		   json_pack("{s:I, s:o}", "count", (json_int_t)dataset->classes, "names", list));
	arena_release(&arena);
}

static void list_row(struct table *table, const struct dataset *dataset, const char *data)
{
	struct error err = ERROR_INIT;
	char *folder = NULL;
	char counts[64];
	bool made = !dataset->files[0].name;
	bool here = dataset_locate(dataset, data, &folder, &err) == PRONY_OK;

	if (!here && !dataset_is_obtainable(dataset))
		return;
	snprintf(counts, sizeof(counts), "%" PRId64 " + %" PRId64, dataset->train_count,
		 dataset->evaluation_count);
	table_row(table);
	table_cell(table, dataset->name, NULL);
	table_cell(table, here ? "ready" : "missing", NULL);
	table_cell(table, dataset->format ? dataset->format : "synthetic", NULL);
	table_cell(table, made ? "any" : counts,
		   made ? json_null()
			: json_pack("{s:I, s:I}", "train", (json_int_t)dataset->train_count,
				    "evaluation", (json_int_t)dataset->evaluation_count));
	classes_cell(table, dataset, folder, &err);
	table_cell(table, folder ? folder : "", folder ? NULL : json_null());
	table_cell(table, dataset->summary, NULL);
	if (err.code != PRONY_OK)
		table_note(table, err.text);
	free(folder);
}

static int list_all(const struct data_request *request)
{
	static const struct table_column columns[] = {
		{"data set", "name", TABLE_LEFT},      {"state", "state", TABLE_LEFT},
		{"format", "format", TABLE_LEFT},      {"samples", "samples", TABLE_RIGHT},
		{"classes", "classes", TABLE_RIGHT},   {"folder", "folder", TABLE_LEFT},
		{"what it is", "summary", TABLE_LEFT},
	};
	struct table *table = table_new(columns, sizeof(columns) / sizeof(columns[0]));

	for (size_t i = 0; i < dataset_count; i++)
		list_row(table, &dataset_table[i], request->options->data);
	cli_print_table(table, request->options->format);
	table_free(table);
	return 0;
}

static const struct table_column verify_columns[] = {
	{"file", "file", TABLE_LEFT},
	{"state", "state", TABLE_LEFT},
	{"bytes", "bytes", TABLE_RIGHT},
};

/* The table of verified files. */
struct listing {
	struct table *table;
	size_t rows;
};

static void add_file(struct listing *listing, const char *path, const char *state, int64_t bytes)
{
	struct table *table = listing->table;
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, bytes);
	table_row(table);
	table_cell(table, path, NULL);
	table_cell(table, state, NULL);
	table_cell(table, text, json_integer(bytes));
	listing->rows++;
}

static void say_broken(void *context, const char *text)
{
	(void)context;
	cli_say("prony: %s\n", text);
}

/* Summarises errors that were printed per sample, instead of repeating them. */
static int fail_verified(const char *path, const struct data_findings *findings, struct error *err)
{
	struct error sum = ERROR_INIT;

	if (findings->count == 0)
		return cli_fail(err);
	error_set(&sum, err->code, "%s: %" PRId64 " of %" PRId64 " samples are broken", path,
		  findings->count, findings->samples);
	return cli_fail(&sum);
}

/* One message per broken file; returns the exit code of the first. */
static int verify_dataset(const struct dataset *dataset, const char *folder,
			  struct listing *listing)
{
	int exit_code = 0;

	for (const struct dataset_file *file = dataset->files; file->name; file++) {
		struct error err = ERROR_INIT;
		char *path = dataset_file_path(file, folder);
		struct data_findings findings = {.broken = say_broken};
		enum prony_status status =
			dataset_verify_file(dataset, file, folder, &findings, &err);
		int64_t bytes =
			file->is_folder && !file_is_directory(path) ? file->tar_bytes : file->bytes;

		add_file(listing, path, status == PRONY_OK ? "whole" : "broken", bytes);
		if (status != PRONY_OK) {
			int code = fail_verified(path, &findings, &err);
			exit_code = exit_code ? exit_code : code;
		}
		free(path);
	}
	return exit_code;
}

/* Verifies a folder of `data convert` against its checksum file. */
static int verify_converted(const char *path, struct listing *listing)
{
	struct data_findings findings = {.broken = say_broken};
	struct error err = ERROR_INIT;
	int64_t bytes = 0;
	enum prony_status status = dataset_verify_converted(path, &findings, &bytes, &err);

	add_file(listing, path, status == PRONY_OK ? "whole" : "broken", bytes);
	return status == PRONY_OK ? 0 : cli_fail(&err);
}

/* Verifies DIR/train and DIR/evaluation; false when neither exists. */
static bool verify_parts(const char *path, struct listing *listing, int *exit_code)
{
	struct error err = ERROR_INIT;
	char *parts[2];
	bool there[2];

	for (int i = 0; i < 2; i++) {
		parts[i] = path_join(path, dataset_part(i == 0));
		there[i] = dataset_is_converted(parts[i]);
	}
	bool any = there[0] || there[1];
	for (int i = 0; any && i < 2; i++) {
		int code;

		if (there[i]) {
			code = verify_converted(parts[i], listing);
		} else {
			error_set(&err, PRONY_BAD_INPUT,
				  "%s: not converted, unlike %s: run the prony data convert "
				  "command for it again",
				  parts[i], parts[!i]);
			code = cli_fail(&err);
		}
		*exit_code = *exit_code ? *exit_code : code;
	}
	for (int i = 0; i < 2; i++)
		free(parts[i]);
	return any;
}

/* Verifies any file of a known format by its structure, because there is no published digest. */
static int verify_path(const char *path, struct listing *listing)
{
	const struct data_format *format;
	struct data_findings findings = {.broken = say_broken};
	struct error err = ERROR_INIT;
	int64_t bytes = 0;
	int exit_code = 0;

	if (dataset_is_converted(path))
		return verify_converted(path, listing);
	if (verify_parts(path, listing, &exit_code))
		return exit_code;
	enum prony_status status = data_format_recognise(path, &format, &err);

	if (status == PRONY_OK)
		status = data_format_verify(format, path, 0, &findings, &bytes, &err);
	add_file(listing, path, status == PRONY_OK ? "whole" : "broken", bytes);
	return status == PRONY_OK ? 0 : fail_verified(path, &findings, &err);
}

static int verify_named(const char *name, const struct data_request *request,
			struct listing *listing)
{
	struct error err = ERROR_INIT;
	char *folder = NULL;

	if (!dataset_find(name) && (strchr(name, '/') || file_exists(name)))
		return verify_path(name, listing);
	const struct dataset *dataset = data_find(name, &err);
	if (!dataset || dataset_locate(dataset, request->options->data, &folder, &err) != PRONY_OK)
		return cli_fail(&err);
	int exit_code = 0;
	if (folder)
		exit_code = verify_dataset(dataset, folder, listing);
	else
		add_file(listing, dataset->name, "generated during a run", 0);
	free(folder);
	return exit_code;
}

/* Verifies all data sets that are here, when none is named. */
static int verify_found(const struct data_request *request, struct listing *listing)
{
	int exit_code = 0;

	for (size_t i = 0; i < dataset_count; i++) {
		const struct dataset *dataset = &dataset_table[i];
		struct error ignored = ERROR_INIT;
		char *folder = NULL;

		if (dataset_locate(dataset, request->options->data, &folder, &ignored) ==
			    PRONY_OK &&
		    folder) {
			int code = verify_dataset(dataset, folder, listing);
			exit_code = exit_code ? exit_code : code;
		}
		free(folder);
	}
	return exit_code;
}

static int verify(const struct data_request *request)
{
	struct listing listing = {
		.table = table_new(verify_columns,
				   sizeof(verify_columns) / sizeof(verify_columns[0]))};
	struct error err = ERROR_INIT;
	int exit_code = 0;

	if (request->count == 0) {
		exit_code = verify_found(request, &listing);
		if (listing.rows == 0) {
			error_set(&err, PRONY_MISSING,
				  "no data set found; 'prony data list' shows where prony looks "
				  "for them");
			exit_code = cli_fail(&err);
		}
	}
	for (size_t i = 0; i < request->count; i++) {
		int code = verify_named(request->names[i], request, &listing);
		exit_code = exit_code ? exit_code : code;
	}
	if (listing.rows > 0)
		cli_print_table(listing.table, request->options->format);
	table_free(listing.table);
	return exit_code;
}

static void say(void *context, const char *text)
{
	const char *name = context;

	cli_out("%s: %s\n", name, text);
	cli_finish_output();
}

static int fetch_one(const char *name, const char *data)
{
	struct error err = ERROR_INIT;
	const struct dataset *dataset = data_find(name, &err);

	if (!dataset)
		return cli_fail(&err);
	char *folder = data ? path_join(data, dataset->name) : NULL;
	char *label = memory_strdup(dataset->name);
	int exit_code = 0;
	if (dataset_fetch(dataset, folder, say, label, &err) != PRONY_OK)
		exit_code = cli_fail(&err);
	free(label);
	free(folder);
	return exit_code;
}

static int fetch(const struct data_request *request)
{
	struct error err = ERROR_INIT;
	int exit_code = 0;

	if (request->count == 0) {
		error_set(&err, PRONY_USAGE,
			  "prony data fetch needs the name of a data set, such as mnist; 'prony "
			  "data list' shows them");
		return cli_fail(&err);
	}
	for (size_t i = 0; i < request->count && exit_code == 0; i++)
		exit_code = fetch_one(request->names[i], request->options->data);
	return exit_code;
}

static const struct {
	const char *name;
	int (*run)(const struct data_request *request);
	bool takes_names;
} actions[] = {
	{"list", list_all, false},
	{"verify", verify, true},
	{"fetch", fetch, true},
	{"convert", data_convert_action, true},
};

static int run_action(const char *name, const struct data_request *request)
{
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(name, actions[i].name) != 0)
			continue;
		if (request->count == 0 || actions[i].takes_names)
			return actions[i].run(request);
		error_set(&err, PRONY_USAGE, "prony data %s takes no names, but got '%s'", name,
			  request->names[0]);
		return cli_fail(&err);
	}
	error_set(&err, PRONY_USAGE,
		  "unknown action '%s'; use prony data list, verify [NAME...], fetch NAME... or "
		  "convert NAME",
		  name);
	return cli_fail(&err);
}

int command_data(const struct cli_call *call, struct error *err)
{
	size_t count = call->count;
	struct data_request request = {.options = &data_options,
				       .names = call->words + 1,
				       .count = count > 0 ? count - 1 : 0};
	(void)err;
	return run_action(count > 0 ? call->words[0] : "list", &request);
}
