/* Tests initial weights. */
#include "graph/graph.h"
#include "graph/tensor.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static void build_zoo(const char *name, int64_t batch, struct graph *graph)
{
	struct error err = ERROR_INIT;

	check(zoo_build(zoo_find(name, NULL), batch, graph, &err), &err);
}

TEST(weights_depend_on_seed_and_name_only)
{
	struct tensor_set one, other, moved;
	struct error err = ERROR_INIT;
	SCOPED(graph) small, large;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	build_zoo("lenet", 1, &small);
	build_zoo("lenet", 64, &large);
	check(graph_initial_weights(&small, 7, &arena, &one, &err), &err);
	check(graph_initial_weights(&large, 7, &arena, &other, &err), &err);
	check(graph_initial_weights(&small, 8, &arena, &moved, &err), &err);
	assert_int_equal(one.count, 8);
	for (size_t i = 0; i < one.count; i++) {
		size_t bytes = (size_t)tensor_bytes(&one.tensors[i]);

		assert_string_equal(one.tensors[i].name, other.tensors[i].name);
		assert_memory_equal(one.tensors[i].data, other.tensors[i].data, bytes);
		/* Biases are zero for any seed. */
		assert_int_equal(memcmp(one.tensors[i].data, moved.tensors[i].data, bytes) != 0,
				 i % 2 == 0);
	}
}

/* Mean and deviation of He-normal weights are within five standard errors. */
TEST(weights_have_he_deviation)
{
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	SCOPED(graph) graph;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	build_zoo("mlp", 1, &graph);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	for (size_t i = 0; i < weights.count; i += 2) {
		const struct tensor *tensor = &weights.tensors[i];
		const float *data = tensor->data;
		int64_t n = shape_elements(&tensor->shape);
		double expected = sqrt(2.0 / (double)tensor->shape.dims[1]);
		double sum = 0, squares = 0, deviation;

		for (int64_t k = 0; k < n; k++) {
			sum += data[k];
			squares += (double)data[k] * data[k];
		}
		deviation = sqrt(squares / (double)n);
		assert_true(fabs(sum / (double)n) < 5 * expected / sqrt((double)n));
		assert_true(fabs(deviation - expected) < 5 * expected / sqrt(2.0 * (double)n));
	}
}

TEST(other_fills)
{
	static const enum weight_fill fills[] = {FILL_ONE, FILL_IDENTITY, FILL_HE_UNIFORM};
	static const char *const names[] = {"one", "identity", "uniform"};
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	graph_init(&graph, "fills");
	for (int i = 0; i < 3; i++)
		build_parameter(&b, names[i], 2, (const int64_t[]){3, 3}, fills[i], 6);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	for (int i = 0; i < 9; i++) {
		assert_true(((float *)weights.tensors[0].data)[i] == 1.0f);
		assert_true(((float *)weights.tensors[1].data)[i] == (i % 4 == 0 ? 1.0f : 0.0f));
		assert_true(fabsf(((float *)weights.tensors[2].data)[i]) <= 1.0f);
	}
	build_parameter(&b, "oblong", 2, (const int64_t[]){3, 4}, FILL_IDENTITY, 0);
	expect_error(graph_initial_weights(&graph, 1, &arena, &weights, &err), PRONY_BAD_INPUT,
		     &err, "'oblong'");
	assert_int_equal(weights.count, 3);
}
