/*
 * Writes an ONNX model for each function of the operator table, between layers, and one with all of
 * them: for tests/e2e/test_functions.py.
 *
 *     function_models FOLDER      NAME.onnx of each, Gelu-tanh.onnx, all.onnx; prints the names
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "onnx/onnx.h"

static const int64_t image[] = {3, 8, 8};

/* A convolution, the function, and another one: somebody wants its gradient, and gives it one. */
static int branch(struct builder *b, enum op op, const struct attributes *attributes, int number,
		  int x)
{
	char name[64];

	snprintf(name, sizeof(name), "in.%d", number);
	x = build_conv(b, name, x, 9, 3, 1, 1);
	snprintf(name, sizeof(name), "positive.%d", number);
	if (operator_row(op)->elementwise->positive)
		x = build_node(b, OP_SIGMOID, name, &x, 1, NULL);
	snprintf(name, sizeof(name), "function.%d", number);
	x = build_node(b, op, name, &x, 1, attributes);
	snprintf(name, sizeof(name), "out.%d", number);
	return build_conv(b, name, x, 8, 3, 1, 1);
}

static enum prony_status finish(struct builder *b, int x, const char *folder, const char *name,
				struct error *err)
{
	int logits = build_linear(b, "fc", build_flatten(b, "flat", x), 10);
	struct tensor_set weights = {.count = 0};
	enum prony_status status = build_finish(b, logits, 0, NULL, err);
	struct arena arena;
	void *model = NULL;
	size_t length = 0;

	arena_init(&arena, 0);
	if (status == PRONY_OK)
		status = graph_initial_weights(b->graph, 1, &arena, &weights, err);
	if (status == PRONY_OK)
		status = onnx_export(b->graph, &weights, &model, &length, err);
	if (status == PRONY_OK)
		status = file_write_atomic(arena_printf(&arena, "%s/%s.onnx", folder, name), model,
					   length, err);
	if (status == PRONY_OK)
		puts(name);
	free(model);
	arena_release(&arena);
	graph_release(b->graph);
	return status;
}

/* A function by its name in the table; `attributes` may be NULL. */
static enum prony_status write_one(const char *folder, const char *name, enum op op,
				   const struct attributes *attributes, struct error *err)
{
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};

	graph_init(&graph, name);
	return finish(
		&b, branch(&b, op, attributes, 0, build_input(&b, "input", DTYPE_F32, 8, 3, image)),
		folder, name, err);
}

static enum prony_status write_all(const char *folder, struct error *err)
{
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	int branches[NODE_MAX_INPUTS], count = 0, x;

	graph_init(&graph, "all");
	x = build_input(&b, "input", DTYPE_F32, 8, 3, image);
	for (int op = 0; op < OP_COUNT; op++) {
		if (operator_row((enum op)op)->elementwise)
			branches[count++] = branch(&b, (enum op)op, NULL, op, x);
	}
	return finish(&b, build_concat(&b, "concat", branches, count, 1), folder, "all", err);
}

int main(int argc, char **argv)
{
	const struct attributes tanh = {.approximate = 1};
	struct error err = ERROR_INIT;
	enum prony_status status = PRONY_OK;

	if (argc != 2) {
		fprintf(stderr, "usage: function_models FOLDER\n");
		return 2;
	}
	for (int op = 0; status == PRONY_OK && op < OP_COUNT; op++) {
		if (operator_row((enum op)op)->elementwise)
			status = write_one(argv[1], operator_name((enum op)op), (enum op)op, NULL,
					   &err);
	}
	if (status == PRONY_OK)
		status = write_one(argv[1], "Gelu-tanh", OP_GELU, &tanh, &err);
	if (status == PRONY_OK)
		status = write_all(argv[1], &err);
	if (status != PRONY_OK)
		fprintf(stderr, "function_models: %s\n", err.text);
	return status == PRONY_OK ? 0 : 1;
}
