/* Writes a case bundle, and reads one with all checks. */
#include "bundle/bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "bundle/case_internal.h"
#include "graph/graph_json.h"

#define CASE_MAX_BYTES ((size_t)64 * 1024 * 1024)

/* Returns a tensor under another name; the data are shared. */
static struct tensor renamed(const struct tensor *tensor, const char *name)
{
	struct tensor copy = *tensor;

	copy.name = name;
	return copy;
}

/* Returns ROLE.BATCH, or ROLE.BATCH.INDEX if a batch has several tensors of the role. */
static const char *batch_tensor_name(struct arena *arena, const char *role, size_t batch,
				     size_t index, size_t per_batch)
{
	return per_batch == 1 ? arena_printf(arena, "%s.%zu", role, batch)
			      : arena_printf(arena, "%s.%zu.%zu", role, batch, index);
}

static void add_renamed(struct arena *arena, const struct tensor_set *from, const char *role,
			size_t per_batch, struct tensor_set *to)
{
	for (size_t i = 0; i < from->count; i++)
		to->tensors[to->count++] =
			renamed(&from->tensors[i], batch_tensor_name(arena, role, i / per_batch,
								     i % per_batch, per_batch));
}

static enum prony_status write_inputs(const char *folder, const struct graph *graph,
				      const struct tensor_set *inputs,
				      const struct tensor_set *labels, const char *shared,
				      struct error *err)
{
	struct arena arena;
	struct tensor_set set = {0};
	enum prony_status status;

	arena_init(&arena, 0);
	set.tensors = arena_array(&arena, inputs->count + labels->count + 1, sizeof(struct tensor));
	add_renamed(&arena, inputs, BUNDLE_INPUT_ROLE, (size_t)graph_inputs(graph, NULL, 0), &set);
	add_renamed(&arena, labels, BUNDLE_LABEL_ROLE, (size_t)graph_labels(graph, NULL, 0), &set);
	status = case_put_set(&set, folder, BUNDLE_INPUT_FILE, shared, err);
	arena_release(&arena);
	return status;
}

static enum prony_status write_case(const char *folder, const struct recipe *recipe,
				    const struct graph *graph, json_t *data, json_t *cell,
				    struct error *err)
{
	json_t *document = json_pack(
		"{s:i, s:{s:s, s:s, s:s, s:s}, s:o, s:o, s:I, s:I}", "schema", BUNDLE_SCHEMA,
		"files", "weights", BUNDLE_WEIGHTS_FILE, "input", BUNDLE_INPUT_FILE, "records",
		BUNDLE_RECORDS_FILE, "read", BUNDLE_READ_FILE, "recipe", recipe_to_json(recipe),
		"graph", graph_to_json(graph), "parameters",
		(json_int_t)graph_parameter_count(graph), "macs", (json_int_t)graph_macs(graph));

	if (document && data)
		json_object_set(document, "data", data);
	if (document && cell)
		json_object_set(document, "cell", cell);
	enum prony_status status = case_write(folder, document, err);
	json_decref(document);
	return status;
}

enum prony_status bundle_write(const char *folder, const struct recipe *recipe,
			       const struct graph *graph, const struct tensor_set *weights,
			       const struct tensor_set *inputs, const struct tensor_set *labels,
			       const struct bundle_shared *shared, json_t *cell, struct error *err)
{
	enum prony_status status = case_put_set(weights, folder, BUNDLE_WEIGHTS_FILE,
						shared ? shared->weights : NULL, err);

	if (status == PRONY_OK)
		status = write_inputs(folder, graph, inputs, labels, shared ? shared->input : NULL,
				      err);
	/* Written last: a folder with a case.json is a complete bundle. */
	if (status == PRONY_OK)
		status = write_case(folder, recipe, graph, shared ? shared->data : NULL, cell, err);
	return status;
}

/* Sorts the weights into graph order, so that readers do not depend on the order of the file. */
static enum prony_status arrange_weights(struct bundle *bundle, const struct tensor_set *file,
					 struct error *err)
{
	const struct graph *graph = &bundle->graph;
	struct tensor_set set = {0};

	set.tensors = arena_try_array(&bundle->arena, (size_t)graph->value_count + 1,
				      sizeof(struct tensor), err);
	if (!set.tensors)
		return PRONY_NOMEM;
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE)
			continue;
		const struct tensor *tensor = tensor_find(file, value->name);
		if (!tensor)
			return error_set(err, PRONY_BAD_INPUT,
					 "%.80s is missing; the graph needs it", value->name);
		enum prony_status status = case_check_tensor(tensor, DTYPE_F32, &value->shape, err);
		if (status != PRONY_OK)
			return status;
		set.tensors[set.count++] = *tensor;
	}
	if (set.count != file->count)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu tensors, but the graph has %zu parameters and states",
				 file->count, set.count);
	bundle->weights = set;
	return PRONY_OK;
}

/* Collects the tensors of a role, batch by batch, until there are no more. */
static enum prony_status collect(struct bundle *bundle, const struct tensor_set *file,
				 const char *role, size_t per_batch, struct tensor_set *out,
				 struct error *err)
{
	struct tensor_set set = {0};

	set.tensors = arena_try_array(&bundle->arena, file->count + 1, sizeof(struct tensor), err);
	if (!set.tensors)
		return PRONY_NOMEM;
	while (per_batch > 0) {
		size_t index = set.count % per_batch;
		const char *name = batch_tensor_name(&bundle->arena, role, set.count / per_batch,
						     index, per_batch);
		const struct tensor *tensor = tensor_find(file, name);

		if (!tensor && index > 0)
			return error_set(err, PRONY_BAD_INPUT, "%s is missing", name);
		if (!tensor)
			break;
		set.tensors[set.count++] = *tensor;
	}
	*out = set;
	return PRONY_OK;
}

static enum prony_status check_counts(const struct bundle *bundle, size_t tensors, size_t inputs,
				      size_t labels, struct error *err)
{
	const char *first = batch_tensor_name((struct arena *)&bundle->arena, BUNDLE_INPUT_ROLE, 0,
					      0, (size_t)graph_inputs(&bundle->graph, NULL, 0));
	size_t used = bundle->inputs.count + bundle->labels.count;

	if (inputs == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s is missing; at least one batch is required", first);
	if (graph_labels(&bundle->graph, NULL, 0) > 0 && labels != inputs)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu batches of inputs, but %zu of labels", inputs, labels);
	if (used != tensors)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu tensors besides those of the %zu batches (input.0, "
				 "label.0 ...); remove them",
				 tensors - used, inputs);
	if (bundle->recipe.input == INPUT_RESIDENT && inputs < (size_t)bundle->recipe.slots)
		return error_set(err, PRONY_BAD_INPUT,
				 "it has %zu batches, but \"slots\" of the recipe is %d", inputs,
				 bundle->recipe.slots);
	return PRONY_OK;
}

static enum prony_status arrange_inputs(struct bundle *bundle, const struct tensor_set *file,
					struct error *err)
{
	const struct graph *graph = &bundle->graph;
	size_t input_count = (size_t)graph_inputs(graph, NULL, 0);
	size_t label_count = (size_t)graph_labels(graph, NULL, 0), batches, labelled = 0;
	enum prony_status status =
		collect(bundle, file, BUNDLE_INPUT_ROLE, input_count, &bundle->inputs, err);

	if (status == PRONY_OK)
		status =
			collect(bundle, file, BUNDLE_LABEL_ROLE, label_count, &bundle->labels, err);
	if (status != PRONY_OK)
		return status;
	batches = bundle->inputs.count / input_count;
	if (label_count > 0)
		labelled = bundle->labels.count / label_count;
	status = check_counts(bundle, file->count, batches, labelled, err);
	for (size_t i = 0; status == PRONY_OK && i < batches; i++)
		status = batch_check(graph, batch_at(graph, &bundle->inputs, &bundle->labels, i),
				     err);
	return status;
}

/* A bundle may come from an untrusted source, so its files must lie inside the folder. */
static enum prony_status file_path(const char *folder, const json_t *files, const char *key,
				   char **out, struct error *err)
{
	const char *name;
	enum prony_status status = json_get_string(files, key, &name, err);

	if (status != PRONY_OK)
		return status;
	if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
		return error_set(err, PRONY_BAD_INPUT,
				 "\"files\": \"%.80s\" must be a file name without a folder", name);
	*out = path_join(folder, name);
	return PRONY_OK;
}

/* Reads the data of a bundle whose batches come from the framework's own loader. */
static enum prony_status read_data(const json_t *document, struct bundle *bundle, struct error *err)
{
	const json_t *data = json_object_get(document, "data");

	if (bundle->recipe.input != INPUT_NATIVE)
		return PRONY_OK;
	if (!data)
		return error_set(err, PRONY_BAD_INPUT,
				 "\"data\" is missing; input native reads the data set from it");
	enum prony_status status = loader_data_from_json(data, &bundle->arena, &bundle->data, err);

	if (status != PRONY_OK)
		error_prefix(err, "\"data\"");
	bundle->has_data = status == PRONY_OK;
	return status;
}

static enum prony_status read_case(const json_t *document, const char *folder,
				   struct bundle *bundle, struct error *err)
{
	json_t *recipe, *graph;
	int64_t schema;
	enum prony_status status = json_get_int(document, "schema", &schema, err);

	if (status == PRONY_OK && schema != BUNDLE_SCHEMA)
		status = error_set(err, PRONY_UNSUPPORTED,
				   "\"schema\" is %" PRId64 "; this program reads %d", schema,
				   BUNDLE_SCHEMA);
	if (status == PRONY_OK)
		status = json_get_object(document, "recipe", &recipe, err);
	if (status == PRONY_OK)
		status = recipe_from_json(recipe, &bundle->recipe, err);
	bundle->is_model = json_object_get(document, "model") != NULL;
	if (status == PRONY_OK && bundle->is_model)
		return case_read_model(document, folder, bundle, err);
	if (status == PRONY_OK)
		status = json_get_object(document, "graph", &graph, err);
	if (status == PRONY_OK)
		status = graph_from_json(graph, &bundle->graph, err);
	if (status == PRONY_OK && bundle->recipe.batch != graph_batch(&bundle->graph))
		status = error_set(err, PRONY_BAD_INPUT,
				   "\"batch\" of the recipe is %" PRId64
				   ", but the graph is for %" PRId64,
				   bundle->recipe.batch, graph_batch(&bundle->graph));
	return status == PRONY_OK ? read_data(document, bundle, err) : status;
}

static enum prony_status read_tensor_files(const char *folder, const json_t *document,
					   struct bundle *bundle, struct error *err)
{
	char *weights = NULL, *input = NULL;
	struct tensor_set set;
	json_t *files;
	enum prony_status status = json_get_object(document, "files", &files, err);

	if (status == PRONY_OK)
		status = file_path(folder, files, bundle->is_model ? "model" : "weights", &weights,
				   err);
	if (status == PRONY_OK)
		status = file_path(folder, files, "input", &input, err);
	if (status != PRONY_OK) {
		error_prefix(err, "%s/%s", folder, BUNDLE_CASE_FILE);
		goto out;
	}
	if (bundle->is_model) {
		status = case_read_model_files(weights, input, bundle, err);
		goto out;
	}
	status = safetensors_map_file(weights, &bundle->arena, &bundle->weights_map, &set, err);
	if (status != PRONY_OK)
		goto out;
	status = arrange_weights(bundle, &set, err);
	if (status != PRONY_OK) {
		error_prefix(err, "%s", weights);
		goto out;
	}
	status = safetensors_map_file(input, &bundle->arena, &bundle->input_map, &set, err);
	if (status != PRONY_OK)
		goto out;
	status = arrange_inputs(bundle, &set, err);
	if (status != PRONY_OK)
		error_prefix(err, "%s", input);
out:
	free(weights);
	free(input);
	return status;
}

enum prony_status bundle_open(const char *folder, struct bundle *out, struct error *err)
{
	char *path = path_join(folder, BUNDLE_CASE_FILE);
	json_t *document = NULL;
	enum prony_status status;

	*out = (struct bundle){0};
	arena_init(&out->arena, 0);
	status = json_read_file(path, CASE_MAX_BYTES, &document, err);
	if (status != PRONY_OK)
		goto out;
	status = read_case(document, folder, out, err);
	if (status != PRONY_OK) {
		error_prefix(err, "%s", path);
		goto out;
	}
	status = read_tensor_files(folder, document, out, err);
out:
	json_decref(document);
	free(path);
	return status;
}

void bundle_release(struct bundle *bundle)
{
	if (!bundle)
		return;
	safetensors_unmap(&bundle->weights_map);
	safetensors_unmap(&bundle->input_map);
	graph_release(&bundle->graph);
	free(bundle->model_bytes);
	arena_release(&bundle->arena);
	*bundle = (struct bundle){0};
}
