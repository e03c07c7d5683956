/* Reads devices.yaml: the properties and prices of devices. */
#include "report/devices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/yaml_file.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FILE_NAME "devices.yaml"
#define SECONDS_PER_HOUR 3600.0

static const struct yaml_kind devices_kind = {
	.noun = "table of devices",
	.example = "devices: [{name: my GPU, match: RTX 4090, hourly: 0.4, currency: EUR}]",
	.page = "docs/results.md",
	.remedy = "make it readable, or move it away",
};

struct reader {
	struct yaml_file file;
	struct device_table *table;
};

enum value { VALUE_TEXT, VALUE_NUMBER, VALUE_PEAKS };

static const struct {
	const char *name;
	enum value value;
	size_t offset;
	const char *needs;
} keys[] = {
	{"name", VALUE_TEXT, offsetof(struct device_row, name), "a line of text"},
	{"match", VALUE_TEXT, offsetof(struct device_row, match),
	 "part of the device's name on the machine"},
	{"cores", VALUE_NUMBER, offsetof(struct device_row, cores), "a number above 0"},
	{"memory_gib", VALUE_NUMBER, offsetof(struct device_row, memory_gib), "a number above 0"},
	{"peak_tflops", VALUE_PEAKS, offsetof(struct device_row, peak_tflops),
	 "numbers by precision: {fp32: 19.5, bf16: 312}"},
	{"retail", VALUE_NUMBER, offsetof(struct device_row, retail), "a number above 0"},
	{"hourly", VALUE_NUMBER, offsetof(struct device_row, hourly), "a number above 0"},
	{"currency", VALUE_TEXT, offsetof(struct device_row, currency), "a word: EUR"},
	{"source", VALUE_TEXT, offsetof(struct device_row, source), "the source of the figures"},
};

static enum prony_status read_number(struct reader *reader, const char *key,
				     const yaml_node_t *node, double *out, struct error *err)
{
	const char *text = yaml_text(node);
	char *end = NULL;
	double value = text ? strtod(text, &end) : NAN;
	if (text && end != text && !*end && isfinite(value) && value > 0) {
		*out = value;
		return PRONY_OK;
	}
	return yaml_file_wrong(&reader->file, node, err, "%s: needs a number above 0, not %s", key,
			       yaml_file_describe(&reader->file, node));
}

static enum prony_status read_peaks(struct reader *reader, const yaml_node_t *node, double *peaks,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_file_wrong(
			&reader->file, node, err,
			"peak_tflops: needs a mapping, not %s; write peak_tflops: {fp32: 19.5}",
			yaml_file_describe(&reader->file, node));
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->file, pair->key);
		int precision = vocabulary_find(&precision_vocabulary, yaml_text(name));
		if (precision < 0)
			return yaml_file_unknown_key(&reader->file, name, "peak_tflops",
						     precision_vocabulary.words, PRECISION_COUNT,
						     err);
		status = read_number(reader, yaml_text(name),
				     yaml_file_node(&reader->file, pair->value), &peaks[precision],
				     err);
	}
	return status;
}

static enum prony_status read_value(struct reader *reader, size_t key, const yaml_node_t *node,
				    struct device_row *row, struct error *err)
{
	void *member = (char *)row + keys[key].offset;
	const char *text = yaml_text(node);
	if (keys[key].value == VALUE_PEAKS)
		return read_peaks(reader, node, member, err);
	if (keys[key].value == VALUE_NUMBER)
		return read_number(reader, keys[key].name, node, member, err);
	if (!text || !*text)
		return yaml_file_wrong(&reader->file, node, err, "%s: needs %s, not %s",
				       keys[key].name, keys[key].needs,
				       yaml_file_describe(&reader->file, node));
	const char *copy = arena_strdup(&reader->table->arena, text);
	memcpy(member, &copy, sizeof copy);
	return PRONY_OK;
}

static enum prony_status read_row(struct reader *reader, const yaml_node_t *node,
				  struct device_row *row, struct error *err)
{
	enum prony_status status = PRONY_OK;
	*row = (struct device_row){.currency = "",
				   .source = "",
				   .cores = NAN,
				   .memory_gib = NAN,
				   .retail = NAN,
				   .hourly = NAN};
	for (int i = 0; i < PRECISION_COUNT; i++)
		row->peak_tflops[i] = NAN;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_file_wrong(&reader->file, node, err,
				       "a device must be a mapping, not %s",
				       yaml_file_describe(&reader->file, node));
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->file, pair->key);
		const char *names[COUNT(keys)];
		size_t key = 0;
		for (size_t i = 0; i < COUNT(keys); i++)
			names[i] = keys[i].name;
		while (key < COUNT(keys) && strcmp(keys[key].name, yaml_text(name)) != 0)
			key++;
		if (key == COUNT(keys))
			return yaml_file_unknown_key(&reader->file, name, "devices", names,
						     COUNT(keys), err);
		status = read_value(reader, key, yaml_file_node(&reader->file, pair->value), row,
				    err);
	}
	if (status == PRONY_OK && (!row->name || !row->match))
		status = yaml_file_wrong(&reader->file, node, err,
					 "a device needs the key %s; write name: my GPU and match: "
					 "part of the device's name on the machine",
					 row->name ? "match" : "name");
	if (status == PRONY_OK && (isfinite(row->retail) || isfinite(row->hourly)) &&
	    !*row->currency)
		status = yaml_file_wrong(&reader->file, node, err,
					 "a price needs the key currency; write currency: EUR");
	return status;
}

/* Appends the rows of a file. */
static enum prony_status read_list(struct reader *reader, struct error *err)
{
	static const char *const known[] = {"devices"};
	struct device_table *table = reader->table;
	const yaml_node_t *root = yaml_document_get_root_node(&reader->file.document);
	enum prony_status status = PRONY_OK;
	for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
	     pair < root->data.mapping.pairs.top && status == PRONY_OK; pair++) {
		const yaml_node_t *name = yaml_file_node(&reader->file, pair->key);
		const yaml_node_t *list = yaml_file_node(&reader->file, pair->value);
		if (strcmp(yaml_text(name), "devices") != 0)
			return yaml_file_unknown_key(&reader->file, name, NULL, known, 1, err);
		if (list->type != YAML_SEQUENCE_NODE)
			return yaml_file_wrong(&reader->file, list, err,
					       "devices: needs a list, not %s",
					       yaml_file_describe(&reader->file, list));
		const yaml_node_item_t *items = list->data.sequence.items.start;
		size_t more = (size_t)(list->data.sequence.items.top - items);
		struct device_row *rows =
			arena_array(&table->arena, table->count + more + 1, sizeof *rows);
		if (table->count > 0)
			memcpy(rows, table->rows, table->count * sizeof *rows);
		table->rows = rows;
		for (size_t i = 0; i < more && status == PRONY_OK; i++)
			status = read_row(reader, yaml_file_node(&reader->file, items[i]),
					  &rows[table->count++], err);
	}
	return status;
}

static enum prony_status add_file(struct device_table *table, const char *path, struct error *err)
{
	struct reader reader = {.table = table};
	reader.file =
		(struct yaml_file){.path = path, .kind = &devices_kind, .arena = &table->arena};
	enum prony_status status = yaml_file_load(&reader.file, err);
	if (status != PRONY_OK)
		return status;
	status = read_list(&reader, err);
	yaml_file_release(&reader.file);
	return status;
}

/* Adds the file of a folder, if it exists; frees the folder name. */
static enum prony_status add_folder(struct device_table *table, char *folder, struct error *err)
{
	enum prony_status status = PRONY_OK;
	char *path = folder ? path_join(folder, FILE_NAME) : NULL;
	if (path && file_exists(path))
		status = add_file(table, path, err);
	free(path);
	free(folder);
	return status;
}

enum prony_status devices_load(const char *path, struct device_table *out, struct error *err)
{
	struct device_table table = {.count = 0};
	enum prony_status status;
	arena_init(&table.arena, 0);
	if (path) {
		status = add_file(&table, path, err);
	} else {
		status = add_folder(&table, path_config_home(), err);
		if (status == PRONY_OK)
			status = add_folder(&table, path_share(), err);
	}
	if (status != PRONY_OK)
		arena_release(&table.arena);
	else
		*out = table;
	return status;
}

void devices_release(struct device_table *table)
{
	if (table)
		arena_release(&table->arena);
}

const struct device_row *devices_find(const struct device_table *table, const char *name)
{
	for (size_t i = 0; name && i < table->count; i++)
		if (strcasestr(name, table->rows[i].match))
			return &table->rows[i];
	return NULL;
}

double devices_samples_per_money(const struct device_row *row, double samples_per_second)
{
	return samples_per_second * SECONDS_PER_HOUR / row->hourly;
}
