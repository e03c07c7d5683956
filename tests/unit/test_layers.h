/*
 * Layer builders for tests, like those of graph/graph.h, for layers that no built-in network has.
 */
#ifndef PRONY_TESTS_UNIT_TEST_LAYERS_H
#define PRONY_TESTS_UNIT_TEST_LAYERS_H

#include <assert.h>

#include "graph/graph.h"
#include "graph/resize.h"

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

static inline int build_reduce_mean(struct builder *b, const char *name, int x, const int64_t *dims,
				    int count, bool keep_dims)
{
	struct attributes attributes = {.ints = test_int_list(count, dims), .keep_dims = keep_dims};

	return build_node(b, OP_REDUCE_MEAN, name, &x, 1, &attributes);
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

/* GroupNormalization, or InstanceNormalization with `groups` 0. */
static inline int build_group_norm(struct builder *b, const char *name, int x, int64_t groups)
{
	struct attributes attributes = {.group = groups, .epsilon = 1e-3};
	int64_t channels = b->error.code == PRONY_OK ? b->graph->values[x].shape.dims[1] : 1;
	const char *scale = arena_printf(&b->graph->arena, "%s.scale", name);
	const char *bias = arena_printf(&b->graph->arena, "%s.bias", name);
	int inputs[3] = {x, build_parameter(b, scale, 1, &channels, FILL_ONE, 0),
			 build_parameter(b, bias, 1, &channels, FILL_ZERO, 0)};

	return build_node(b, groups ? OP_GROUP_NORM : OP_INSTANCE_NORM, name, inputs, 3,
			  &attributes);
}

static inline int build_resize(struct builder *b, const char *name, int x, int64_t height,
			       int64_t width, int64_t mode, int64_t coordinates)
{
	struct attributes attributes = {
		.strides = {height, width}, .mode = mode, .coordinates = coordinates};

	return build_node(b, OP_RESIZE, name, &x, 1, &attributes);
}

static inline int build_sub(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_SUB, name, (const int[]){a, c}, 2, NULL);
}

static inline int build_tanh(struct builder *b, const char *name, int x)
{
	return build_node(b, OP_TANH, name, &x, 1, NULL);
}

#endif
