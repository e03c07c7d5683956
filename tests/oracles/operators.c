/*
 * Writes each case of tests/unit/operator_cases.c as an ONNX file, with an input and what the
 * reference interpreter makes of it in evaluation: for operators_oracle.py.
 *
 *     operators FOLDER         N.onnx, N.in (F32), N.out (F64); prints "N WHAT" of each
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/random.h"
#include "onnx/onnx.h"
#include "parity/reference.h"
#include "tests/unit/operator_cases.h"

struct workload {
	struct arena arena;
	struct graph graph;
	struct tensor_set weights;
	struct tensor x;
	struct reference reference;
};

static void fill(struct random *random, struct tensor *tensor)
{
	float *data = tensor->data;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++)
		data[i] = (float)random_normal(random);
}

static enum prony_status compute(struct workload *w, const struct operator_case *c,
				 struct error *err)
{
	struct random random;
	struct recipe recipe;
	enum prony_status status = operator_case_build(c, false, &w->graph, err);

	if (status == PRONY_OK)
		status = graph_initial_weights(&w->graph, 1, &w->arena, &w->weights, err);
	if (status == PRONY_OK)
		status = tensor_new(&w->arena, "input", DTYPE_F32,
				    &w->graph.values[graph_input(&w->graph, 0)].shape, &w->x, err);
	if (status != PRONY_OK)
		return status;
	random_init(&random, 5);
	fill(&random, &w->x);
	/* No zeros: biases that are forgotten would not be missed. */
	for (size_t i = 0; i < w->weights.count; i++) {
		int value = graph_find_value(&w->graph, w->weights.tensors[i].name);

		if (w->graph.values[value].kind == VALUE_PARAMETER)
			fill(&random, &w->weights.tensors[i]);
	}
	recipe_defaults(&recipe);
	recipe.stage = STAGE_FORWARD;
	status = reference_init(&w->reference, &w->graph, &w->weights, err);
	if (status == PRONY_OK)
		status = reference_feed(&w->reference, batch_of_one(&w->x, NULL), err);
	if (status == PRONY_OK)
		status = reference_step(&w->reference, &recipe, false, err);
	return status;
}

static enum prony_status write_case(struct workload *w, const char *folder, size_t number,
				    struct error *err)
{
	const char *base = arena_printf(&w->arena, "%s/%zu", folder, number);
	const double *out;
	int64_t count;
	size_t length;
	void *model;
	enum prony_status status = onnx_export(&w->graph, &w->weights, &model, &length, err);

	if (status != PRONY_OK)
		return status;
	status = file_write_atomic(arena_printf(&w->arena, "%s.onnx", base), model, length, err);
	free(model);
	if (status == PRONY_OK)
		status = file_write_atomic(arena_printf(&w->arena, "%s.in", base), w->x.data,
					   (size_t)tensor_bytes(&w->x), err);
	out = reference_value(&w->reference, w->graph.logits, &count);
	if (status == PRONY_OK)
		status = file_write_atomic(arena_printf(&w->arena, "%s.out", base), out,
					   (size_t)count * sizeof(*out), err);
	return status;
}

int main(int argc, char **argv)
{
	enum prony_status status = PRONY_OK;

	if (argc != 2) {
		fprintf(stderr, "usage: operators FOLDER\n");
		return 2;
	}
	for (size_t i = 0; status == PRONY_OK && operator_case_at(i); i++) {
		const struct operator_case *c = operator_case_at(i);
		struct workload w = {.weights = {.count = 0}};
		struct error err = ERROR_INIT;

		arena_init(&w.arena, 0);
		status = compute(&w, c, &err);
		if (status == PRONY_OK)
			status = write_case(&w, argv[1], i, &err);
		if (status == PRONY_OK)
			printf("%zu %s\n", i, c->what);
		else
			fprintf(stderr, "operators: %s: %s\n", c->what, err.text);
		reference_release(&w.reference);
		graph_release(&w.graph);
		arena_release(&w.arena);
	}
	return status == PRONY_OK ? 0 : 1;
}
