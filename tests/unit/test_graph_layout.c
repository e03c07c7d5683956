/* Tests the layout queries of graph translators: which values have channels last, which axes are
 * summed up, how far windows reach. */
#include "graph/layout.h"
#include "graph/reduction.h"
#include "graph/sliding_window.h"
#include "unit_test.h"

static int find(const struct graph *graph, const char *name)
{
	int value = graph_find_value(graph, name);

	assert_true(value >= 0);
	return value;
}

/* Two flattenings: one followed by a product with its own weight, one that is not. */
static void build(struct graph *graph, bool logits_are_flat)
{
	struct builder b = {.graph = graph, .error = ERROR_INIT};
	const int64_t dims[] = {2, 4, 5};
	int x, y;

	graph_init(graph, "layout");
	x = build_input(&b, "input", DTYPE_F32, 3, 3, dims);
	x = build_relu(&b, "relu", build_conv(&b, "conv", x, 6, 3, 1, 1));
	y = build_flatten(&b, "flatten", x);
	if (!logits_are_flat)
		y = build_linear(&b, "fc", build_relu(&b, "after", y), 7);
	assert_int_equal(build_finish(&b, y, 0, NULL, &b.error), PRONY_OK);
	assert_int_equal(graph_add_backward(graph, &b.error), PRONY_OK);
}

TEST(test_values)
{
	SCOPED(arena) arena;
	SCOPED(graph) graph;
	struct layouts layouts;

	arena_init(&arena, 0);
	build(&graph, false);
	graph_layouts(&graph, true, &arena, &layouts);
	assert_int_equal(layouts.values[graph_input(&graph, 0)], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "relu")], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "relu.grad")], LAYOUT_LAST);
	assert_int_equal(layouts.values[find(&graph, "conv.weight")], LAYOUT_KERNEL);
	assert_int_equal(layouts.values[find(&graph, "conv.weight.grad")], LAYOUT_KERNEL);
	assert_int_equal(layouts.values[find(&graph, "flatten")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "after")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "after.grad")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.values[find(&graph, "fc.weight")], LAYOUT_LAST_FLAT);
	assert_int_equal(layouts.channels[find(&graph, "fc.weight.grad")], 6);
	assert_int_equal(layouts.values[graph.logits], LAYOUT_GRAPH);

	struct shape shape = layouts_shape(&layouts, graph_input(&graph, 0));
	const int64_t want[] = {3, 4, 5, 2};
	assert_memory_equal(shape.dims, want, sizeof(want));
	for (int axis = 0; axis < 4; axis++)
		assert_int_equal(shape.dims[layouts_axis(&layouts, graph_input(&graph, 0), axis)],
				 graph.values[graph_input(&graph, 0)].shape.dims[axis]);
	graph_layouts(&graph, false, &arena, &layouts);
	for (int i = 0; i < graph.value_count; i++)
		assert_int_equal(layouts.values[i],
				 strncmp(graph.values[i].name, "conv.weight", 11) == 0
					 ? LAYOUT_KERNEL
					 : LAYOUT_GRAPH);
}

/* A result is read in the graph's order. */
TEST(test_flat_result)
{
	SCOPED(arena) arena;
	SCOPED(graph) graph;
	struct layouts layouts;

	arena_init(&arena, 0);
	build(&graph, true);
	graph_layouts(&graph, true, &arena, &layouts);
	assert_int_equal(layouts.values[graph.logits], LAYOUT_GRAPH);
}

/* A product with [in, out]: the rows of its weight follow the order of the flattened value. */
TEST(test_flat_rows)
{
	struct builder b = {.error = ERROR_INIT};
	const int64_t dims[] = {2, 1, 3}, weight[] = {6, 2};
	const float given[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	const float want[12] = {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11};
	struct arrangement order;
	struct layouts layouts;
	SCOPED(arena) arena;
	SCOPED(graph) graph;
	float lies[12];
	int x, w;

	arena_init(&arena, 0);
	graph_init(&graph, "rows");
	b.graph = &graph;
	x = build_flatten(&b, "flatten", build_input(&b, "input", DTYPE_F32, 4, 3, dims));
	w = build_parameter(&b, "w", 2, weight, FILL_HE_NORMAL, 6);
	x = build_node(&b, OP_GEMM, "product", (const int[]){x, w}, 2, NULL);
	assert_int_equal(build_finish(&b, x, 0, NULL, &b.error), PRONY_OK);
	graph_layouts(&graph, true, &arena, &layouts);
	assert_int_equal(layouts.values[w], LAYOUT_LAST_FLAT_ROWS);
	order = layouts_arrangement(&layouts, w);
	arrangement_copy(&order, 12, given, lies, false);
	assert_memory_equal(lies, want, sizeof(want));
}

TEST(test_arrangement)
{
	const float oihw[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	const float hwio[] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
	struct arrangement order =
		arrangement_make(4, (const int64_t[]){2, 3, 1, 2}, (const int[]){2, 3, 1, 0});
	struct arrangement none = {.rank = 0};
	float there[12], back[12];

	arrangement_copy(&order, 12, oihw, there, false);
	assert_memory_equal(there, hwio, sizeof(hwio));
	arrangement_copy(&order, 12, there, back, true);
	assert_memory_equal(back, oihw, sizeof(oihw));
	arrangement_copy(&none, 12, oihw, there, false);
	assert_memory_equal(there, oihw, sizeof(oihw));
}

/* A mean of 2 x 3 x 4 x 5 over axes 1 and 3. */
static struct reduction mean(bool keep_dims)
{
	struct value x = {.shape = {.rank = 4, .dims = {2, 3, 4, 5}}};
	const struct graph graph = {.values = &x, .value_count = 1};
	struct node node = {.op = OP_REDUCE_MEAN, .inputs = {0}, .input_count = 1};

	node.attributes.ints = (struct int_list){.items = {1, 3}, .count = 2};
	node.attributes.keep_dims = keep_dims;
	return reduction_of_mean(&graph, &node);
}

TEST(test_mean)
{
	struct reduction left = mean(false), kept = mean(true);

	assert_int_equal(left.count, 15);
	assert_true(!left.summed[0] && left.summed[1] && !left.summed[2] && left.summed[3]);
	assert_memory_equal(left.kept.dims, ((const int64_t[]){2, 1, 4, 1}), 4 * sizeof(int64_t));
	assert_memory_equal(left.axes, ((const int[]){0, 2}), 2 * sizeof(int));
	assert_memory_equal(kept.axes, ((const int[]){0, 1, 2, 3}), 4 * sizeof(int));
}

/* Shapes are aligned at their ends; a missing axis is summed up even if it has one element. */
TEST(test_broadcast)
{
	const struct shape whole = {.rank = 4, .dims = {1, 3, 4, 5}};
	const struct shape part = {.rank = 2, .dims = {4, 1}};
	struct reduction r = reduction_of_broadcast(&whole, &part);

	assert_int_equal(r.count, 15);
	assert_true(r.summed[0] && r.summed[1] && !r.summed[2] && r.summed[3]);
	assert_memory_equal(r.kept.dims, ((const int64_t[]){1, 1, 4, 1}), 4 * sizeof(int64_t));
	assert_memory_equal(r.axes, ((const int[]){2, 3}), 2 * sizeof(int));
}

/* Windows of 3 at stride 2, with one element of padding, over 6 elements: three fit, ceil_mode adds
 * one. */
TEST(test_windows)
{
	struct attributes a = {
		.kernel = {3, 3}, .strides = {2, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}};

	assert_int_equal(sliding_window_overhang(&a, 0, 6, 3), 0);
	assert_int_equal(sliding_window_overhang(&a, 1, 6, 4), 2);
	assert_int_equal(sliding_window_overhang(&a, 0, 9, 2), 0);
	assert_int_equal(sliding_window_divisor(&a, 0, 6, 0), 2);
	assert_int_equal(sliding_window_divisor(&a, 0, 6, 3), 1);
	a.count_include_pad = true;
	assert_int_equal(sliding_window_divisor(&a, 0, 6, 0), 3);
	assert_int_equal(sliding_window_divisor(&a, 0, 6, 3), 2);
	a.dilations[0] = 2;
	assert_int_equal(sliding_window_overhang(&a, 0, 6, 3), 2);
}
