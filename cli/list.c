/* `prony list`: lists what exists and what is available here, with reasons for the rest. */
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
#include "cli/framework_word.h"
#include "cli/listing.h"
#include "cli/run_text.h"
#include "datasets/dataset.h"
#include "diagnose/machine.h"
#include "report/figures.h"
#include "samples/record.h"
#include "spec/spec.h"
#include "zoo/zoo.h"

#define CORES_MAX 1024

struct list_options {
	const char *format, *data, *store, *tag;
} list_options = {.format = "table"};

const struct option list_option_rows[] = {
	CLI_OPTION_DATA(struct list_options),
	{TEXT_OPTION(struct list_options, tag, "tag", "TAG", "with runs: only runs with this tag")},
	CLI_OPTION_STORE(struct list_options),
	CLI_OPTION_FORMAT(struct list_options),
	{.name = NULL},
};

/* A topic: its rows are JSON objects, of which a terminal shows the columns. */
struct topic {
	const char *name;
	json_t *(*rows)(const struct list_options *options,
			struct error *err); /* NULL: error in err */
	const struct table_column *columns; /* ends with title NULL */
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

/* "16, 16x8" of a network with two inputs. */
static json_t *input_shapes(const struct network *network)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	for (int i = 0; i < network->input_count; i++) {
		json_t *one = shape(network->inputs[i].dims, network->inputs[i].rank);
		strbuf_printf(&text, "%s%s", i ? ", " : "", json_string_value(one));
		json_decref(one);
	}
	json_t *string = json_string(strbuf_text(&text));
	strbuf_release(&text);
	return string;
}

static json_t *framework_rows_wanted(const struct list_options *options, struct error *err)
{
	struct registry registry;
	json_t *rows = NULL;
	(void)options;
	if (cli_registry(&registry, err) != PRONY_OK)
		return NULL;
	rows = framework_rows(&registry);
	registry_release(&registry);
	return rows;
}

static json_t *network_rows(const struct list_options *options, struct error *err)
{
	json_t *rows = json_array();
	(void)options;
	(void)err;
	for (size_t i = 0; i < zoo_network_count; i++) {
		const struct network *network = zoo_networks[i];
		json_t *row = json_object();
		json_object_set_new(row, "network", json_string(network->name));
		json_object_set_new(row, "input", input_shapes(network));
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

static json_t *dataset_rows(const struct list_options *options, struct error *err)
{
	(void)err;
	json_t *rows = json_array();
	for (size_t i = 0; i < dataset_count; i++) {
		const struct dataset *dataset = &dataset_table[i];
		struct error why = ERROR_INIT;
		char *folder = NULL, words[64];
		dataset_shape_text(dataset, words, sizeof(words));
		bool ready = dataset_locate(dataset, options->data, &folder, &why) == PRONY_OK;
		if (!ready && !dataset_is_obtainable(dataset))
			continue;
		json_t *row = json_object();
		json_object_set_new(row, "dataset", json_string(dataset->name));
		json_object_set_new(row, "state", json_string(ready ? "ready" : "missing"));
		json_object_set_new(row, "shape", dataset->rank ? json_string(words) : json_null());
		json_object_set_new(row, "train", count_or_null(dataset->train_count));
		json_object_set_new(row, "evaluation", count_or_null(dataset->evaluation_count));
		json_object_set_new(row, "format",
				    json_string(dataset->format ? dataset->format : "synthetic"));
		json_object_set_new(row, "path", listing_text(folder));
		json_object_set_new(row, "reason", listing_text(ready ? NULL : why.text));
		json_object_set_new(row, "summary", json_string(dataset->summary));
		json_array_append_new(rows, row);
		free(folder);
	}
	return rows;
}

/*
 * The value of "key : value" in a file of such lines; the caller frees it; NULL if there is none.
 */
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
		value = memory_printf("%.*s", (int)strcspn(colon, "\n"), colon);
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
	json_object_set_new(row, "model", listing_text(model));
	free(model);
	return row;
}

/* What the driver reports of a GPU. Which frameworks can use it is not known here. */
static json_t *gpu_row(const struct gpus *gpus, int index)
{
	const struct gpu *gpu = &gpus->gpus[index];
	char *name = memory_printf("cuda:%d", index);
	char *memory = memory_printf("%.1f GiB", (double)gpu->memory_bytes / 0x1p30);
	char *capability = memory_printf("sm_%d", gpu->capability);
	json_t *row = json_object();

	json_object_set_new(row, "device", json_string(name));
	json_object_set_new(row, "state", json_string("ready"));
	json_object_set_new(row, "cores", json_null());
	json_object_set_new(row, "model", listing_text(gpu->name));
	json_object_set_new(row, "memory", listing_text(gpu->memory_bytes ? memory : NULL));
	json_object_set_new(row, "capability", listing_text(gpu->capability ? capability : NULL));
	json_object_set_new(row, "driver", listing_text(gpus->driver));
	free(capability);
	free(memory);
	free(name);
	return row;
}

static json_t *device_rows(const struct list_options *options, struct error *err)
{
	struct gpus gpus;
	json_t *rows = json_array();

	(void)options;
	(void)err;
	json_array_append_new(rows, cpu_row());
	machine_gpus("", &gpus);
	for (int i = 0; i < gpus.count; i++)
		json_array_append_new(rows, gpu_row(&gpus, i));
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
	json_object_set_new(row, "summary", listing_text(good ? spec.summary : NULL));
	json_object_set_new(row, "path", listing_text(path));
	json_object_set_new(row, "reason", listing_text(err.text));
	spec_release(&spec);
	free(path);
	return row;
}

static json_t *suite_rows(const struct list_options *options, struct error *err)
{
	json_t *rows = json_array();
	const char *const *names;
	size_t count;
	struct arena arena;
	(void)options;
	(void)err;
	arena_init(&arena, 0);
	if (spec_list_suites(&arena, &names, &count, NULL) == PRONY_OK)
		for (size_t i = 0; i < count; i++)
			json_array_append_new(rows, suite_row(names[i]));
	arena_release(&arena);
	return rows;
}

static void add_metric(json_t *rows, const char *metric, const char *of, const char *unit,
		       const char *summary)
{
	json_t *row = json_object();
	json_object_set_new(row, "metric", json_string(metric));
	json_object_set_new(row, "of", json_string(of));
	json_object_set_new(row, "unit", listing_text(unit));
	json_object_set_new(row, "summary", json_string(summary));
	json_array_append_new(rows, row);
}

static json_t *metric_rows(const struct list_options *options, struct error *err)
{
	json_t *rows = json_array();
	(void)options;
	(void)err;
	for (int id = 0; id < FIGURE_COUNT; id++)
		add_metric(rows, figures[id].word, "cell", figure_unit_name(figures[id].unit),
			   figures[id].help);
	for (size_t i = 0; i < process_field_count; i++)
		add_metric(rows, process_fields[i].name, "process", process_fields[i].unit,
			   process_fields[i].doc);
	return rows;
}

static json_t *run_rows_wanted(const struct list_options *options, struct error *err)
{
	return run_rows(options->store, options->tag, err);
}

static const struct topic topics[] = {
	{"frameworks", framework_rows_wanted, framework_columns},
	{"networks", network_rows,
	 (const struct table_column[]){{"NETWORK", "network", TABLE_LEFT},
				       {"INPUT", "input", TABLE_RIGHT},
				       {"CLASSES", "classes", TABLE_RIGHT},
				       {"PARAMETERS", "parameters", TABLE_RIGHT},
				       {"MACS", "macs", TABLE_RIGHT},
				       {"DATASET", "dataset", TABLE_LEFT},
				       {"WHAT", "summary", TABLE_LEFT},
				       {.title = NULL}}},
	{"datasets", dataset_rows,
	 (const struct table_column[]){{"DATASET", "dataset", TABLE_LEFT},
				       {"STATE", "state", TABLE_LEFT},
				       {"SHAPE", "shape", TABLE_RIGHT},
				       {"TRAIN", "train", TABLE_RIGHT},
				       {"EVALUATION", "evaluation", TABLE_RIGHT},
				       {"WHAT", "summary", TABLE_LEFT},
				       {.title = NULL}}},
	{"devices", device_rows,
	 (const struct table_column[]){{"DEVICE", "device", TABLE_LEFT},
				       {"STATE", "state", TABLE_LEFT},
				       {"CORES", "cores", TABLE_RIGHT},
				       {"MODEL", "model", TABLE_LEFT},
				       {"MEMORY", "memory", TABLE_RIGHT},
				       {"CAPABILITY", "capability", TABLE_LEFT},
				       {"DRIVER", "driver", TABLE_LEFT},
				       {.title = NULL}}},
	{"suites", suite_rows,
	 (const struct table_column[]){{"SUITE", "suite", TABLE_LEFT},
				       {"STATE", "state", TABLE_LEFT},
				       {"WHAT", "summary", TABLE_LEFT},
				       {.title = NULL}}},
	{"metrics", metric_rows,
	 (const struct table_column[]){{"METRIC", "metric", TABLE_LEFT},
				       {"OF", "of", TABLE_LEFT},
				       {"UNIT", "unit", TABLE_LEFT},
				       {"WHAT", "summary", TABLE_LEFT},
				       {.title = NULL}}},
	{"runs", run_rows_wanted, run_columns},
};

/* These topics fill pages, so they are shown only on request. */
enum { TOPICS_WHEN_ASKED = 2 };

#define TOPIC_COUNT (sizeof(topics) / sizeof(topics[0]))

static const struct topic *find_topic(const char *word, struct error *err)
{
	const char *names[TOPIC_COUNT];
	for (size_t i = 0; i < TOPIC_COUNT; i++) {
		/* Accept the singular too. */
		size_t length = strlen(topics[i].name);
		if (!strcmp(word, topics[i].name) ||
		    (strlen(word) == length - 1 && !strncmp(word, topics[i].name, length - 1)))
			return &topics[i];
		names[i] = topics[i].name;
	}
	const char *nearest = word_nearest(word, names, TOPIC_COUNT);
	error_set(err, PRONY_USAGE,
		  "prony cannot list '%s'%s%s%s; use frameworks, networks, datasets, devices, "
		  "suites, metrics or runs",
		  word, nearest ? " (did you mean '" : "", nearest ? nearest : "",
		  nearest ? "'?)" : "");
	return NULL;
}

/* One topic is an array; several are an object of arrays. */
static int print_topics(const struct topic *const *chosen, size_t count,
			const struct list_options *options)
{
	bool json = !strcmp(options->format, "json");
	struct error err = ERROR_INIT;
	int exit_code = 0;
	json_t *all = json_object();
	for (size_t i = 0; i < count; i++) {
		json_t *rows = chosen[i]->rows(options, &err);
		if (!rows) {
			/* Continue with the other topics. */
			exit_code = cli_fail(&err);
			continue;
		}
		if (json && count == 1) {
			cli_print_json(rows);
		} else if (!json) {
			if (count > 1)
				cli_out("%s%s\n", i ? "\n" : "", chosen[i]->name);
			listing_print(chosen[i]->columns, rows);
		}
		json_object_set_new(all, chosen[i]->name, rows);
	}
	if (json && count != 1)
		cli_print_json(all);
	json_decref(all);
	return exit_code;
}

int command_list(const struct cli_call *call, struct error *err)
{
	const struct topic *chosen[TOPIC_COUNT];
	size_t used = 0;
	if (call->count > TOPIC_COUNT)
		error_set(err, PRONY_USAGE, "a list is named twice");
	for (size_t i = 0; i < call->count && !err->code; i++)
		chosen[used++] = find_topic(call->words[i], err);
	for (size_t i = 0; !call->count && i + TOPICS_WHEN_ASKED < TOPIC_COUNT; i++)
		chosen[used++] = &topics[i];
	return err->code ? 0 : print_topics(chosen, used, &list_options);
}
