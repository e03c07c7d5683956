/*
 * Layer builders for tests, like those of graph/graph.h, for layers that no built-in network has.
 */
#ifndef PRONY_TESTS_UNIT_TEST_LAYERS_H
#define PRONY_TESTS_UNIT_TEST_LAYERS_H

#include <assert.h>
#include <stdio.h>

#include "graph/graph.h"

static inline struct int_list test_int_list(int count, const int64_t *items)
{
	struct int_list list = {.count = count};

	assert(count >= 0 && count <= ATTRIBUTE_MAX_INTS);
	for (int i = 0; i < count; i++)
		list.items[i] = items[i];
	return list;
}

static inline int build_clip(struct builder *b, const char *name, int x, double min, double max)
{
	struct attributes attributes = {.min = min, .max = max};

	return build_node(b, OP_CLIP, name, &x, 1, &attributes);
}

/* Normalises over the axes from `axis` on. Parameters: NAME.scale (ones) and NAME.bias (zeros). */
static inline int build_layer_norm(struct builder *b, const char *name, int x, int64_t axis)
{
	const struct shape *shape = &b->graph->values[x].shape;
	struct attributes attributes = {.axis = axis, .epsilon = 1e-3};
	int64_t dims[TENSOR_MAX_RANK];
	int rank = shape->rank - (int)axis, inputs[3] = {x};
	char text[64];

	for (int i = 0; i < rank; i++)
		dims[i] = shape->dims[axis + i];
	snprintf(text, sizeof(text), "%s.scale", name);
	inputs[1] = build_parameter(b, text, rank, dims, FILL_ONE, 0);
	snprintf(text, sizeof(text), "%s.bias", name);
	inputs[2] = build_parameter(b, text, rank, dims, FILL_ZERO, 0);
	return build_node(b, OP_LAYER_NORM, name, inputs, 3, &attributes);
}

static inline int build_div(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_DIV, name, (const int[]){a, c}, 2, NULL);
}

static inline int build_hard_sigmoid(struct builder *b, const char *name, int x, double alpha,
				     double beta)
{
	struct attributes attributes = {.alpha = alpha, .beta = beta};

	return build_node(b, OP_HARD_SIGMOID, name, &x, 1, &attributes);
}

static inline int build_hard_swish(struct builder *b, const char *name, int x)
{
	return build_node(b, OP_HARD_SWISH, name, &x, 1, NULL);
}

static inline int build_identity(struct builder *b, const char *name, int x)
{
	return build_node(b, OP_IDENTITY, name, &x, 1, NULL);
}

static inline int build_mul(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_MUL, name, (const int[]){a, c}, 2, NULL);
}

static inline int build_reduce_mean(struct builder *b, const char *name, int x, const int64_t *dims,
				    int count, bool keep_dims)
{
	struct attributes attributes = {.ints = test_int_list(count, dims), .keep_dims = keep_dims};

	return build_node(b, OP_REDUCE_MEAN, name, &x, 1, &attributes);
}

static inline int build_reshape(struct builder *b, const char *name, int x, int rank,
				const int64_t *dims)
{
	struct attributes attributes = {.ints = test_int_list(rank, dims)};

	return build_node(b, OP_RESHAPE, name, &x, 1, &attributes);
}

static inline int build_sigmoid(struct builder *b, const char *name, int x)
{
	return build_node(b, OP_SIGMOID, name, &x, 1, NULL);
}

static inline int build_silu(struct builder *b, const char *name, int x)
{
	int sigmoid;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	sigmoid = build_node(b, OP_SIGMOID, arena_printf(&b->graph->arena, "%s.sigmoid", name), &x,
			     1, NULL);
	return build_node(b, OP_MUL, name, (const int[]){x, sigmoid}, 2, NULL);
}

static inline int build_softmax(struct builder *b, const char *name, int x, int64_t axis)
{
	struct attributes attributes = {.axis = axis};

	return build_node(b, OP_SOFTMAX, name, &x, 1, &attributes);
}

static inline int build_sub(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_SUB, name, (const int[]){a, c}, 2, NULL);
}

static inline int build_tanh(struct builder *b, const char *name, int x)
{
	return build_node(b, OP_TANH, name, &x, 1, NULL);
}

static inline int build_transpose(struct builder *b, const char *name, int x, const int64_t *order)
{
	struct attributes attributes = {.group = 0};

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	attributes.ints = test_int_list(b->graph->values[x].shape.rank, order);
	return build_node(b, OP_TRANSPOSE, name, &x, 1, &attributes);
}

#endif
