/* `prony list`: what exists, what is here, and why the rest is not. */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "datasets/dataset.h"
#include "diagnose/machine.h"
#include "samples/record.h"
#include "spec/spec.h"
#include "zoo/zoo.h"

#define COLUMNS_MAX 8
#define CORES_MAX 1024

struct list_options {
	const char *format, *data;
};

const struct option list_option_rows[] = {
	{.name = "data",
	 .kind = OPTION_STRING,
	 .offset = offsetof(struct list_options, data),
	 .metavar = "DIR",
	 .help = "folder of data sets"},
	CLI_OPTION_FORMAT(struct list_options),
	{.name = NULL},
};

/* What can be listed: rows as JSON objects, of which a terminal shows the columns. */
struct topic {
	const char *name;
	json_t *(*rows)(const struct list_options *options);
	struct table_column columns[COLUMNS_MAX]; /* ends with title NULL */
};

/* "1x28x28" */
static json_t *shape(const int64_t *dims, int rank)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	for (int i = 0; i < rank; i++)
		strbuf_printf(&text, "%s%" PRId64, i ? "x" : "", dims[i]);
	json_t *string = json_string(strbuf_text(&text));
	strbuf_release(&text);
	return string;
}

/* An array of the words whose bits are set. */
static json_t *words_of(unsigned bits, int count, const char *(*word)(int))
{
	json_t *array = json_array();
	for (int i = 0; i < count; i++)
		if (bits & 1u << i)
			json_array_append_new(array, json_string(word(i)));
	return array;
}

static const char *stage_word(int stage)
{
	return stage_name((enum stage)stage);
}

static const char *precision_word(int precision)
{
	return precision_name((enum precision)precision);
}

/* Missing texts are null for programs. */
static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *framework_row(const struct framework *framework, const char *environment)
{
	struct arena arena;
	struct framework_place place;
	struct error err = ERROR_INIT;
	arena_init(&arena, 0);
	if (framework_locate(framework, environment, &arena, &place, &err) != PRONY_OK)
		place = (struct framework_place){.framework = framework,
						 .environment = environment,
						 .version = "",
						 .reason = err.text};
	bool ready = place.origin != ORIGIN_NONE;
	const char *path = place.library ? place.library : place.interpreter;
	bool ours = place.origin == ORIGIN_INSTALLED;
	json_t *row = json_object();
	char *spelling = memory_printf("%s%s%s", framework->name, *place.environment ? "@" : "",
				       place.environment);
	json_object_set_new(row, "framework", json_string(spelling));
	json_object_set_new(row, "state", json_string(ready ? "ready" : "missing"));
	json_object_set_new(row, "origin", json_string(framework_origin_name(place.origin)));
	json_object_set_new(row, "version", text_or_null(place.version));
	/* People want the folder, programs what is started or loaded. */
	json_object_set_new(row, "where", text_or_null(ours ? place.folder : path));
	json_object_set_new(row, "path", text_or_null(path));
	json_object_set_new(row, "reason", text_or_null(ready ? NULL : place.reason));
	json_object_set_new(row, "summary", json_string(framework->summary));
	json_object_set_new(row, "stages", words_of(framework->stages, STAGE_COUNT, stage_word));
	json_object_set_new(row, "precisions",
			    words_of(framework->precisions, PRECISION_COUNT, precision_word));
	free(spelling);
	arena_release(&arena);
	return row;
}

/* Named environments that were installed: folders NAME@ENV. */
static void add_environments(const struct framework *framework, json_t *rows)
{
	char *home = path_data_home();
	char *pattern = memory_printf("%s/frameworks/%s@*", home, framework->name);
	glob_t matches = {0};
	if (!glob(pattern, GLOB_ONLYDIR, NULL, &matches))
		for (size_t i = 0; i < matches.gl_pathc; i++)
			json_array_append_new(
				rows,
				framework_row(framework, strrchr(matches.gl_pathv[i], '@') + 1));
	globfree(&matches);
	free(pattern);
	free(home);
}

static json_t *framework_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	(void)options;
	for (size_t i = 0; i < framework_count; i++) {
		json_array_append_new(rows, framework_row(&framework_registry[i], ""));
		add_environments(&framework_registry[i], rows);
	}
	return rows;
}

static json_t *network_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	(void)options;
	for (size_t i = 0; i < zoo_network_count; i++) {
		const struct network *network = zoo_networks[i];
		json_t *row = json_object();
		json_object_set_new(row, "network", json_string(network->name));
		json_object_set_new(row, "input", shape(network->input_dims, network->input_rank));
		json_object_set_new(row, "classes", json_integer(network->classes));
		json_object_set_new(row, "parameters", json_integer(network->parameters));
		json_object_set_new(row, "macs", json_integer(network->macs));
		json_object_set_new(row, "dataset", json_string(network->dataset));
		json_object_set_new(row, "summary", json_string(network->summary));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* Synthetic data has no number of samples. */
static json_t *count_or_null(int64_t count)
{
	return count > 0 ? json_integer(count) : json_null();
}

static json_t *dataset_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < dataset_count; i++) {
		const struct dataset *dataset = &dataset_table[i];
		struct error err = ERROR_INIT;
		char *folder = NULL;
		bool ready = dataset_locate(dataset, options->data, &folder, &err) == PRONY_OK;
		json_t *row = json_object();
		json_object_set_new(row, "dataset", json_string(dataset->name));
		json_object_set_new(row, "state", json_string(ready ? "ready" : "missing"));
		json_object_set_new(row, "shape",
				    dataset->rank ? shape(dataset->dims, dataset->rank)
						  : json_null());
		json_object_set_new(row, "train", count_or_null(dataset->train_count));
		json_object_set_new(row, "evaluation", count_or_null(dataset->evaluation_count));
		json_object_set_new(row, "format", json_string(dataset->format));
		json_object_set_new(row, "path", text_or_null(folder));
		json_object_set_new(row, "reason", text_or_null(ready ? NULL : err.text));
		json_object_set_new(row, "summary", json_string(dataset->summary));
		json_array_append_new(rows, row);
		free(folder);
	}
	return rows;
}

/* The text after "key :" or "key:" in a file of such lines; caller frees, NULL without it. */
static char *value_in_file(const char *path, const char *key)
{
	char *text = NULL, *value = NULL;
	size_t length = 0;
	if (file_read(path, (size_t)8 << 20, &text, &length, NULL) != PRONY_OK)
		return NULL;
	char *line = strstr(text, key);
	char *colon = line ? strchr(line, ':') : NULL;
	if (colon) {
		colon += 1 + strspn(colon + 1, " \t");
		value = strndup(colon, strcspn(colon, "\n"));
	}
	free(text);
	return value;
}

static json_t *cpu_row(void)
{
	int cpus[CORES_MAX];
	char *model = value_in_file("/proc/cpuinfo", "model name");
	json_t *row = json_object();
	json_object_set_new(row, "device", json_string("cpu"));
	json_object_set_new(row, "state", json_string("ready"));
	json_object_set_new(row, "cores", json_integer(machine_cores(cpus, CORES_MAX)));
	json_object_set_new(row, "model", text_or_null(model));
	free(model);
	return row;
}

/* What NVIDIA's driver says; which frameworks can use a GPU is theirs to say. */
static json_t *device_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	glob_t cards = {0};
	(void)options;
	json_array_append_new(rows, cpu_row());
	if (!glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &cards))
		for (size_t i = 0; i < cards.gl_pathc; i++) {
			char *model = value_in_file(cards.gl_pathv[i], "Model");
			char *name = memory_printf("cuda:%zu", i);
			json_t *row = json_object();
			json_object_set_new(row, "device", json_string(name));
			json_object_set_new(row, "state", json_string("ready"));
			json_object_set_new(row, "cores", json_null());
			json_object_set_new(row, "model", text_or_null(model));
			json_array_append_new(rows, row);
			free(name);
			free(model);
		}
	globfree(&cards);
	return rows;
}

static json_t *suite_row(const char *name)
{
	struct error err = ERROR_INIT;
	char *path = NULL;
	struct spec spec;
	spec_init(&spec);
	bool good = spec_find_suite(name, &path, &err) == PRONY_OK &&
		    spec_read_file(&spec, path, &err) == PRONY_OK;
	json_t *row = json_object();
	json_object_set_new(row, "suite", json_string(name));
	json_object_set_new(row, "state", json_string(good ? "ready" : "broken"));
	json_object_set_new(row, "summary", text_or_null(good ? spec.summary : NULL));
	json_object_set_new(row, "path", text_or_null(path));
	json_object_set_new(row, "reason", text_or_null(err.text));
	spec_release(&spec);
	free(path);
	return row;
}

static json_t *suite_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	const char *const *names;
	size_t count;
	struct arena arena;
	(void)options;
	arena_init(&arena, 0);
	if (spec_list_suites(&arena, &names, &count, NULL) == PRONY_OK)
		for (size_t i = 0; i < count; i++)
			json_array_append_new(rows, suite_row(names[i]));
	arena_release(&arena);
	return rows;
}

static json_t *metric_rows(const struct list_options *options)
{
	json_t *rows = json_array();
	(void)options;
	for (size_t i = 0; i < process_field_count; i++) {
		json_t *row = json_object();
		json_object_set_new(row, "metric", json_string(process_fields[i].name));
		json_object_set_new(row, "unit", text_or_null(process_fields[i].unit));
		json_object_set_new(row, "summary", json_string(process_fields[i].doc));
		json_array_append_new(rows, row);
	}
	return rows;
}

static const struct topic topics[] = {
	{"frameworks",
	 framework_rows,
	 {{"FRAMEWORK", "framework", TABLE_LEFT},
	  {"STATE", "state", TABLE_LEFT},
	  {"ORIGIN", "origin", TABLE_LEFT},
	  {"VERSION", "version", TABLE_LEFT},
	  {"WHERE", "where", TABLE_LEFT}}},
	{"networks",
	 network_rows,
	 {{"NETWORK", "network", TABLE_LEFT},
	  {"INPUT", "input", TABLE_RIGHT},
	  {"CLASSES", "classes", TABLE_RIGHT},
	  {"PARAMETERS", "parameters", TABLE_RIGHT},
	  {"MACS", "macs", TABLE_RIGHT},
	  {"DATASET", "dataset", TABLE_LEFT},
	  {"WHAT", "summary", TABLE_LEFT}}},
	{"datasets",
	 dataset_rows,
	 {{"DATASET", "dataset", TABLE_LEFT},
	  {"STATE", "state", TABLE_LEFT},
	  {"SHAPE", "shape", TABLE_RIGHT},
	  {"TRAIN", "train", TABLE_RIGHT},
	  {"EVALUATION", "evaluation", TABLE_RIGHT},
	  {"WHAT", "summary", TABLE_LEFT}}},
	{"devices",
	 device_rows,
	 {{"DEVICE", "device", TABLE_LEFT},
	  {"STATE", "state", TABLE_LEFT},
	  {"CORES", "cores", TABLE_RIGHT},
	  {"MODEL", "model", TABLE_LEFT}}},
	{"suites",
	 suite_rows,
	 {{"SUITE", "suite", TABLE_LEFT},
	  {"STATE", "state", TABLE_LEFT},
	  {"WHAT", "summary", TABLE_LEFT}}},
	{"metrics",
	 metric_rows,
	 {{"METRIC", "metric", TABLE_LEFT},
	  {"UNIT", "unit", TABLE_LEFT},
	  {"WHAT", "summary", TABLE_LEFT}}},
};

#define TOPIC_COUNT (sizeof(topics) / sizeof(topics[0]))

static void add_cell(struct table *table, json_t *value)
{
	char *text = json_is_integer(value)
			     ? memory_printf("%lld", (long long)json_integer_value(value))
		     : json_is_string(value) ? memory_strdup(json_string_value(value))
					     : memory_strdup("-");
	table_cell(table, text, value ? json_incref(value) : NULL);
	free(text);
}

static void print_rows(const struct topic *topic, const json_t *rows)
{
	size_t columns = 0, i;
	json_t *row;
	while (columns < COLUMNS_MAX && topic->columns[columns].title)
		columns++;
	struct table *table = table_new(topic->columns, columns);
	json_array_foreach(rows, i, row)
	{
		table_row(table);
		for (size_t k = 0; k < columns; k++)
			add_cell(table, json_object_get(row, topic->columns[k].key));
		const char *reason = json_string_value(json_object_get(row, "reason"));
		if (reason)
			table_note(table, reason);
	}
	cli_print_table(table, "table");
	table_free(table);
}

int listing_frameworks(const char *const *words, size_t count, const char *format)
{
	const struct list_options options = {.format = format};
	json_t *rows = count ? json_array() : framework_rows(&options);
	struct error err = ERROR_INIT;
	for (size_t i = 0; i < count && !err.code; i++) {
		const struct framework *framework;
		const char *environment;
		if (!framework_word(words[i], &framework, &environment, &err))
			json_array_append_new(rows, framework_row(framework, environment));
	}
	if (!err.code && !strcmp(format, "json"))
		cli_print_json(rows);
	else if (!err.code)
		print_rows(&topics[0], rows);
	json_decref(rows);
	return err.code ? cli_fail(&err) : 0;
}

static const struct topic *find_topic(const char *word, struct error *err)
{
	const char *names[TOPIC_COUNT];
	for (size_t i = 0; i < TOPIC_COUNT; i++) {
		/* The singular is as good. */
		size_t length = strlen(topics[i].name);
		if (!strcmp(word, topics[i].name) ||
		    (strlen(word) == length - 1 && !strncmp(word, topics[i].name, length - 1)))
			return &topics[i];
		names[i] = topics[i].name;
	}
	const char *nearest = word_nearest(word, names, TOPIC_COUNT);
	error_set(err, PRONY_USAGE,
		  "nothing called '%s' can be listed%s%s%s; frameworks, networks, datasets, "
		  "devices, suites "
		  "and metrics can",
		  word, nearest ? " (did you mean '" : "", nearest ? nearest : "",
		  nearest ? "'?)" : "");
	return NULL;
}

/* One topic is an array, several are an object of arrays. */
static void print_topics(const struct topic *const *chosen, size_t count,
			 const struct list_options *options)
{
	bool json = !strcmp(options->format, "json");
	json_t *all = json_object();
	for (size_t i = 0; i < count; i++) {
		json_t *rows = chosen[i]->rows(options);
		if (json && count == 1) {
			cli_print_json(rows);
		} else if (!json) {
			if (count > 1)
				printf("%s%s\n", i ? "\n" : "", chosen[i]->name);
			print_rows(chosen[i], rows);
		}
		json_object_set_new(all, chosen[i]->name, rows);
	}
	if (json && count != 1)
		cli_print_json(all);
	json_decref(all);
}

int command_list(const struct cli_command *command, int argc, char **argv)
{
	struct list_options options = {.format = "table"};
	const struct topic *chosen[TOPIC_COUNT];
	const char *words[64];
	struct error err = ERROR_INIT;
	size_t count = 0, used = 0;
	int exit_code = 0;
	if (argc > 64)
		return cli_fail((error_set(&err, PRONY_USAGE, "too many arguments"), &err));
	if (!cli_parse(command, argc, argv, &options, words, &count, &exit_code))
		return exit_code;
	if (count > TOPIC_COUNT)
		return cli_fail((error_set(&err, PRONY_USAGE, "each list once is enough"), &err));
	for (size_t i = 0; i < count && !err.code; i++)
		chosen[used++] = find_topic(words[i], &err);
	if (err.code)
		return cli_fail(&err);
	/* Metrics are a page of their own: not unless asked for. */
	for (size_t i = 0; !count && i + 1 < TOPIC_COUNT; i++)
		chosen[used++] = &topics[i];
	print_topics(chosen, used, &options);
	return 0;
}
