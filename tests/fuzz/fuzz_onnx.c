/* Fuzz target: ONNX models. */
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph_json.h"
#include "graph/rebatch.h"
#include "onnx/import.h"

/* Checks that the weights fit the graph, and that the graph can be written, read back and
 * differentiated. */
static void exercise(const struct onnx_model *model, const struct graph *graph)
{
	const struct tensor_set *weights = onnx_model_weights(model);
	struct error err = ERROR_INIT;
	struct graph copy;
	size_t count = 0;
	json_t *json;

	if (graph_check(graph, &err) != PRONY_OK)
		abort();
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_PARAMETER && value->kind != VALUE_STATE)
			continue;
		if (count == weights->count ||
		    !shape_equal(&value->shape, &weights->tensors[count++].shape))
			abort();
	}
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

/* Checks that a changed batch can be changed back, and that separate samples stay separate. */
static void change_back(const struct graph *graph, bool apart)
{
	struct error err = ERROR_INIT;
	struct graph two, back;

	if (graph_rebatch(graph, 2, &two, &err) != PRONY_OK)
		return;
	if (apart && graph_samples_apart(&two, &err) != PRONY_OK)
		abort();
	if (apart &&
	    (graph_rebatch(&two, graph_batch(graph), &back, &err) != PRONY_OK ||
	     !shape_equal(&back.values[back.logits].shape, &graph->values[graph->logits].shape)))
		abort();
	if (apart)
		graph_release(&back);
	graph_release(&two);
}

/* Builds with the file's own batch, and with others that the file's constants must follow. */
static void build(struct onnx_model *model)
{
	const int64_t batches[] = {onnx_model_facts(model)->batch, 1, 6, INT32_MAX};
	struct error err = ERROR_INIT;

	if (onnx_model_import(model, &err) != PRONY_OK) {
		if (err.code == PRONY_OK || err.text[0] == '\0')
			abort();
		return;
	}
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
		struct graph graph;

		if (batches[i] == 0)
			continue;
		if (onnx_model_graph(model, batches[i], &graph, &err) != PRONY_OK) {
			if (err.code == PRONY_OK || err.text[0] == '\0')
				abort();
			error_clear(&err);
			continue;
		}
		if (onnx_model_notes(model)->file_parameters > graph_parameter_count(&graph))
			abort();
		exercise(model, &graph);
		change_back(&graph, graph_samples_apart(&graph, &err) == PRONY_OK);
		error_clear(&err);
		graph_release(&graph);
	}
}

/* Returns 0. Aborts if an accepted model is inconsistent. */
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
