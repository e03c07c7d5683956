/* Which values lie with channels last, and arrays moved between the two orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/layout.h"

static int find(const struct graph *graph, const char *name)
{
	int value = graph_find_value(graph, name);

	assert_true(value >= 0);
	return value;
}

/* Two flattenings: one that a product with a weight of its own ends, one that is not. */
static void build(struct graph *graph, bool logits_are_flat)
{
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	const int64_t dims[] = {2, 4, 5};
	int x, y;

	graph_init(graph, "layout");
	x = build_input(&b, 3, 3, dims);
	x = build_relu(&b, "relu", build_conv(&b, "conv", x, 6, 3, 1, 1));
	y = build_flatten(&b, "flatten", x);
	if (!logits_are_flat)
		y = build_linear(&b, "fc", build_relu(&b, "after", y), 7);
	assert_int_equal(build_finish(&b, y, &b.error), PRONY_OK);
	assert_int_equal(graph_add_backward(graph, &b.error), PRONY_OK);
}

static void test_values(void **state)
{
	struct arena arena;
	struct graph graph;
	struct layouts layouts;

	(void)state;
	arena_init(&arena, 0);
	build(&graph, false);
	graph_layouts(&graph, true, &arena, &layouts);
	assert_int_equal(layouts.values[graph.input], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "relu")], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "relu.grad")], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "conv.weight")], LAYOUT_GRAPH);
	assert_int_equal(layouts.values[find(&graph, "conv.weight.grad")], LAYOUT_GRAPH);
	assert_int_equal(layouts.values[find(&graph, "flatten")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "after")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "after.grad")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "fc.weight")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.channels[find(&graph, "fc.weight.grad")], 6);
	assert_int_equal(layouts.values[graph.logits], LAYOUT_GRAPH);

	struct shape shape = layouts_shape(&layouts, graph.input);
	const int64_t want[] = {3, 4, 5, 2};
	assert_memory_equal(shape.dims, want, sizeof(want));
	for (int axis = 0; axis < 4; axis++)
		assert_int_equal(shape.dims[layouts_axis(&layouts, graph.input, axis)],
				 graph.values[graph.input].shape.dims[axis]);
	graph_layouts(&graph, false, &arena, &layouts);
	for (int i = 0; i < graph.value_count; i++)
		assert_int_equal(layouts.values[i], LAYOUT_GRAPH);
	graph_release(&graph);
	arena_release(&arena);
}

/* Whoever reads the result wants the graph's order. */
static void test_flat_result(void **state)
{
	struct arena arena;
	struct graph graph;
	struct layouts layouts;

	(void)state;
	arena_init(&arena, 0);
	build(&graph, true);
	graph_layouts(&graph, true, &arena, &layouts);
	assert_int_equal(layouts.values[graph.logits], LAYOUT_GRAPH);
	graph_release(&graph);
	arena_release(&arena);
}

static void test_arrangement(void **state)
{
	const float oihw[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	const float hwio[] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
	struct arrangement order =
		arrangement_make(4, (const int64_t[]){2, 3, 1, 2}, (const int[]){2, 3, 1, 0});
	struct arrangement none = {.rank = 0};
	float there[12], back[12];

	(void)state;
	arrangement_copy(&order, 12, oihw, there, false);
	assert_memory_equal(there, hwio, sizeof(hwio));
	arrangement_copy(&order, 12, there, back, true);
	assert_memory_equal(back, oihw, sizeof(oihw));
	arrangement_copy(&none, 12, oihw, there, false);
	assert_memory_equal(there, oihw, sizeof(oihw));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_flat_result),
		cmocka_unit_test(test_arrangement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
