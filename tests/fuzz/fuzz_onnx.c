#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_json.h"
#include "onnx/import.h"

/* Weights are copied, and are as many as the file has bytes for, unless Expand made more. */
#define WEIGHT_MAX_BYTES (INT64_C(16) << 20)

static int64_t weight_bytes(const struct graph *graph)
{
	int64_t bytes = 0;

	for (int i = 0; i < graph->value_count; i++) {
		enum value_kind kind = graph->values[i].kind;

		if (kind == VALUE_PARAMETER || kind == VALUE_STATE)
			bytes += 4 * shape_elements(&graph->values[i].shape);
	}
	return bytes;
}

/* Its weights are there, and it survives being written, read and differentiated. */
static void exercise(const struct onnx_model *model, struct graph *graph)
{
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	struct arena arena;
	struct graph copy;
	json_t *json;

	if (graph_check(graph, &err) != PRONY_OK)
		abort();
	arena_init(&arena, 0);
	if (weight_bytes(graph) < WEIGHT_MAX_BYTES &&
	    onnx_model_weights(model, graph, &arena, &weights, &err) != PRONY_OK)
		abort();
	arena_release(&arena);
	json = graph_to_json(graph);
	if (json == NULL || graph_from_json(json, &copy, &err) != PRONY_OK)
		abort();
	graph_add_backward(&copy, &err);
	error_clear(&err);
	if (graph_check(&copy, &err) != PRONY_OK)
		abort();
	graph_release(&copy);
	json_decref(json);
}

/* The file's own batch, and others that its constants must follow. */
static void build(const struct onnx_model *model)
{
	const int64_t batches[] = {onnx_model_facts(model)->batch, 1, 6, INT32_MAX};

	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
		struct error err = ERROR_INIT;
		struct onnx_notes notes;
		struct graph graph;

		if (batches[i] == 0)
			continue;
		if (onnx_model_build(model, batches[i], &graph, &notes, &err) != PRONY_OK) {
			if (err.code == PRONY_OK || err.text[0] == '\0')
				abort();
			continue;
		}
		if (notes.file_parameters > graph_parameter_count(&graph))
			abort();
		exercise(model, &graph);
		graph_release(&graph);
	}
}

/* Always 0; aborts when a model that was accepted does not hold together. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct error err = ERROR_INIT;
	struct onnx_model *model = NULL;

	if (onnx_model_parse(bytes, length, "model.onnx", NULL, &model, &err) == PRONY_OK)
		build(model);
	else if (err.code == PRONY_OK || strstr(err.text, "model.onnx: ") != err.text)
		abort();
	onnx_model_free(model);
	return 0;
}
