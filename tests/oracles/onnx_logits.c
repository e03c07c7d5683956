/*
 * Logits of an ONNX model by prony's own import and float64 interpreter, for the oracles in Python:
 *   onnx_logits MODEL.onnx BATCH INPUT.f32 OUTPUT.f64 [train]
 * With "train" the output is the loss, whose labels are all 0, and one gradient after the other, of
 * the parameters in graph order, whose names are printed with their elements.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "onnx/import.h"
#include "parity/reference.h"

struct workload {
	struct onnx_model *model;
	struct graph graph;
	struct arena arena;
	struct tensor_set weights;
	struct reference reference;
	struct recipe recipe;
};

static int fail(const struct error *err)
{
	fprintf(stderr, "onnx_logits: %s\n", err->text);
	return 1;
}

static enum prony_status prepare(struct workload *work, const char *path, int64_t batch, bool train,
				 struct error *err)
{
	const struct onnx_notes *notes;
	enum prony_status status = onnx_model_open(path, &work->model, err);

	if (status == PRONY_OK)
		status = onnx_model_import(work->model, err);
	if (status == PRONY_OK)
		status = onnx_model_graph(work->model, batch, &work->graph, err);
	if (status != PRONY_OK)
		return status;
	notes = onnx_model_notes(work->model);
	if (train)
		status = graph_add_backward(&work->graph, err);
	if (status == PRONY_OK)
		status = reference_init(&work->reference, &work->graph,
					onnx_model_weights(work->model), err);
	if (status == PRONY_OK)
		printf("nodes %d parameters %lld file %lld shared %d macs %lld\n",
		       work->graph.forward_count, (long long)graph_parameter_count(&work->graph),
		       (long long)notes->file_parameters, notes->shared_initializers,
		       (long long)graph_macs(&work->graph));
	return status;
}

static enum prony_status run(struct workload *work, const char *input, bool train,
			     struct error *err)
{
	struct value *value = &work->graph.values[graph_input(&work->graph, 0)];
	struct tensor x = {.name = "x", .dtype = DTYPE_F32, .shape = value->shape};
	struct tensor y = {.name = "y", .dtype = DTYPE_I64};
	size_t length = 0;
	enum prony_status status =
		file_read(input, (size_t)1 << 32, (char **)&x.data, &length, err);

	if (status == PRONY_OK && (int64_t)length != tensor_bytes(&x))
		status = error_set(err, PRONY_BAD_INPUT, "%s has %zu bytes", input, length);
	y.shape = work->graph.values[graph_label(&work->graph, 0)].shape;
	y.data = calloc((size_t)y.shape.dims[0], sizeof(int64_t));
	recipe_defaults(&work->recipe);
	work->recipe.stage = train ? STAGE_FORWARD_BACKWARD : STAGE_FORWARD;
	work->recipe.dropout = false;
	if (status == PRONY_OK)
		status = reference_feed(&work->reference, batch_of_one(&x, &y), err);
	if (status == PRONY_OK)
		status = reference_step(&work->reference, &work->recipe, false, err);
	free(x.data);
	free(y.data);
	return status;
}

static void write_value(const struct workload *work, int value, FILE *file)
{
	int64_t count = 0;
	const double *data = reference_value(&work->reference, value, &count);

	fwrite(data, sizeof(*data), (size_t)count, file);
}

int main(int argc, char **argv)
{
	struct workload work = {0};
	struct error err = ERROR_INIT;
	bool train = argc == 6 && strcmp(argv[5], "train") == 0;
	FILE *file;

	if (argc < 5)
		return 64;
	arena_init(&work.arena, 0);
	if (prepare(&work, argv[1], strtoll(argv[2], NULL, 10), train, &err) != PRONY_OK ||
	    run(&work, argv[3], train, &err) != PRONY_OK)
		return fail(&err);
	file = fopen(argv[4], "wb");
	if (file == NULL)
		return 74;
	write_value(&work, train ? work.graph.loss : work.graph.logits, file);
	for (int i = 0; train && i < work.graph.value_count; i++) {
		const struct value *value = &work.graph.values[i];

		if (value->kind != VALUE_PARAMETER)
			continue;
		printf("%s %lld\n", value->name, (long long)shape_elements(&value->shape));
		write_value(&work, value->gradient, file);
	}
	fclose(file);
	reference_release(&work.reference);
	graph_release(&work.graph);
	arena_release(&work.arena);
	onnx_model_free(work.model);
	return 0;
}
