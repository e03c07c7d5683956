/* Tests shapes, the operator table, published figures, digests, cost. */
#include "draw/picture.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "unit_test.h"
#include "zoo/zoo.h"

TEST(dtypes_have_names_and_sizes)
{
	static const size_t sizes[DTYPE_COUNT] = {4, 8, 2, 2, 4, 8, 1, 1};
	enum dtype dtype = DTYPE_U8;

	for (int i = 0; i < DTYPE_COUNT; i++) {
		assert_int_equal(dtype_parse(dtype_name((enum dtype)i), &dtype), 0);
		assert_int_equal(dtype, i);
		assert_int_equal(dtype_bytes((enum dtype)i), sizes[i]);
	}
	assert_int_equal(dtype_parse("f32", &dtype), -1);
}

TEST(shapes_are_counted_without_overflow)
{
	struct shape shape = shape_make(4, (const int64_t[]){64, 1, 28, 28});
	struct shape scalar = {.rank = 0};
	struct shape huge = shape_make(3, (const int64_t[]){INT64_MAX, 2, 1});
	struct shape negative = shape_make(2, (const int64_t[]){-2, -2});
	struct tensor tensor = {.dtype = DTYPE_F64, .shape = {1, {INT64_MAX / 4}}};
	char text[32], small[6];

	assert_int_equal(shape_elements(&shape), 50176);
	assert_int_equal(shape_elements(&scalar), 1);
	assert_int_equal(shape_elements(&huge), -1);
	assert_int_equal(shape_elements(&negative), -1);
	assert_int_equal(tensor_bytes(&tensor), -1);
	shape_text(&shape, text, sizeof(text));
	assert_string_equal(text, "64x1x28x28");
	shape_text(&shape, small, sizeof(small));
	assert_string_equal(small, "64x1x");
	shape_text(&scalar, text, sizeof(text));
	assert_string_equal(text, "scalar");
	assert_false(shape_equal(&shape, &scalar));
	assert_true(shape_equal(&shape, &shape));
}

TEST(tensors_are_zeroed_aligned_and_found)
{
	struct shape shape = shape_make(2, (const int64_t[]){3, 5});
	struct shape huge = shape_make(2, (const int64_t[]){INT64_MAX / 2, 3});
	struct tensor tensors[2] = {{.name = "a"}, {.name = NULL}};
	struct tensor_set set = {.tensors = tensors, .count = 2};
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	check(tensor_new(&arena, "b", DTYPE_F32, &shape, &tensors[1], &err), &err);
	assert_int_equal((uintptr_t)tensors[1].data % 64, 0);
	for (int i = 0; i < 15; i++)
		assert_true(((float *)tensors[1].data)[i] == 0.0f);
	assert_ptr_equal(tensor_find(&set, "b"), &tensors[1]);
	assert_null(tensor_find(&set, "c"));
	assert_int_equal(tensor_new(&arena, "c", DTYPE_F32, &huge, &tensors[0], &err),
			 PRONY_BAD_INPUT);
	assert_string_equal(tensors[0].name, "a");
	assert_has(err.text, "'c'");
}

TEST(rows_are_complete)
{
	for (int i = 0; i < OP_COUNT; i++) {
		const struct operator_row *row = operator_row((enum op)i);

		assert_int_equal(operator_from_name(operator_name((enum op)i)), i);
		assert_non_null(row->infer);
		assert_non_null(row->attributes);
		assert_true(row->min_inputs >= 1 && row->min_inputs <= row->max_inputs);
		assert_true(row->max_inputs <= NODE_MAX_INPUTS);
		assert_true(row->max_outputs >= 1 && row->max_outputs <= NODE_MAX_OUTPUTS);
	}
	assert_int_equal(operator_from_name("conv"), OP_COUNT);
}

/* One convolution or pooling in a graph of its own. */
struct window_case {
	const char *about;
	enum op op;
	int64_t x[4], w[4];
	struct attributes attributes;
	int64_t height, width; /* 0: refused with `message` */
	const char *message;
};

/* Sizes as given by torch.nn.Conv2d and MaxPool2d of PyTorch 2.x. */
static const struct window_case windows[] = {
	{.about = "5x5",
	 .op = OP_CONV,
	 .x = {2, 1, 28, 28},
	 .w = {20, 1, 5, 5},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}, .group = 1},
	 .height = 24,
	 .width = 24},
	{.about = "the first of AlexNet",
	 .op = OP_CONV,
	 .x = {1, 3, 224, 224},
	 .w = {64, 3, 11, 11},
	 .attributes = {.strides = {4, 4}, .dilations = {1, 1}, .pads = {2, 2, 2, 2}, .group = 1},
	 .height = 55,
	 .width = 55},
	{.about = "asymmetric pads and strides",
	 .op = OP_CONV,
	 .x = {1, 2, 9, 10},
	 .w = {4, 2, 3, 2},
	 .attributes = {.strides = {2, 3}, .dilations = {1, 1}, .pads = {0, 1, 1, 2}, .group = 1},
	 .height = 4,
	 .width = 4},
	{.about = "dilation",
	 .op = OP_CONV,
	 .x = {1, 2, 16, 16},
	 .w = {4, 2, 3, 3},
	 .attributes = {.strides = {1, 2}, .dilations = {2, 3}, .group = 1},
	 .height = 12,
	 .width = 5},
	{.about = "two groups",
	 .op = OP_CONV,
	 .x = {1, 6, 8, 8},
	 .w = {4, 3, 3, 3},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .group = 2},
	 .height = 8,
	 .width = 8},
	{.about = "depthwise",
	 .op = OP_CONV,
	 .x = {1, 6, 8, 8},
	 .w = {6, 1, 3, 3},
	 .attributes = {.strides = {2, 2}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}, .group = 6},
	 .height = 4,
	 .width = 4},
	{.about = "groups that do not divide",
	 .op = OP_CONV,
	 .x = {1, 6, 8, 8},
	 .w = {4, 3, 3, 3},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}, .group = 4},
	 .message = "group 4 must divide"},
	{.about = "wrong channels",
	 .op = OP_CONV,
	 .x = {1, 6, 8, 8},
	 .w = {4, 3, 3, 3},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}, .group = 1},
	 .message = "for 3 input channels per group, but the input has 6"},
	{.about = "kernel against weights",
	 .op = OP_CONV,
	 .x = {1, 3, 8, 8},
	 .w = {4, 3, 3, 3},
	 .attributes = {.kernel = {3, 5}, .strides = {1, 1}, .dilations = {1, 1}, .group = 1},
	 .message = "kernel_shape says 5, but the weights have 3"},
	{.about = "too large",
	 .op = OP_CONV,
	 .x = {1, 3, 4, 4},
	 .w = {4, 3, 5, 3},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}, .group = 1},
	 .message = "the kernel spans 5 elements, but the padded height is 4"},
	{.about = "stride 0",
	 .op = OP_CONV,
	 .x = {1, 3, 4, 4},
	 .w = {4, 3, 3, 3},
	 .attributes = {.strides = {1, 0}, .dilations = {1, 1}, .group = 1},
	 .message = "strides contains 0"},
	{.about = "pool 3/2 rounds down",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 112, 7},
	 .attributes = {.kernel = {3, 3}, .strides = {2, 2}, .dilations = {1, 1}},
	 .height = 55,
	 .width = 3},
	{.about = "pool 3/2 rounds up",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 112, 7},
	 .attributes =
		 {.kernel = {3, 3}, .strides = {2, 2}, .dilations = {1, 1}, .ceil_mode = true},
	 .height = 56,
	 .width = 3},
	{.about = "no window starts behind the input",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 4, 5},
	 .attributes = {.kernel = {2, 2},
			.strides = {3, 3},
			.dilations = {1, 1},
			.pads = {1, 1, 1, 1},
			.ceil_mode = true},
	 .height = 2,
	 .width = 2},
	{.about = "dilated pool",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 10, 10},
	 .attributes =
		 {.kernel = {3, 2}, .strides = {1, 2}, .dilations = {2, 3}, .pads = {1, 0, 2, 1}},
	 .height = 9,
	 .width = 4},
	{.about = "windows of padding only",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 8, 8},
	 .attributes =
		 {.kernel = {2, 2}, .strides = {2, 2}, .dilations = {1, 1}, .pads = {2, 0, 0, 0}},
	 .message = "padding must be smaller than the kernel"},
	{.about = "taps on both sides of the input",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 1, 8},
	 .attributes =
		 {.kernel = {2, 2}, .strides = {1, 1}, .dilations = {2, 1}, .pads = {1, 0, 1, 0}},
	 .message = "dilation 2 is larger than the input"},
	{.about = "no kernel",
	 .op = OP_MAX_POOL,
	 .x = {1, 2, 8, 8},
	 .attributes = {.strides = {1, 1}, .dilations = {1, 1}},
	 .message = "kernel_shape contains 0"},
};

static void check_window(const struct window_case *c)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	int inputs[2], y;

	graph_init(&graph, "window");
	inputs[0] = build_input(&b, "input", DTYPE_F32, c->x[0], 3, &c->x[1]);
	if (c->op == OP_CONV)
		inputs[1] = build_parameter(&b, "w", 4, c->w, FILL_HE_NORMAL, 1);
	y = build_node(&b, c->op, "node", inputs, c->op == OP_CONV ? 2 : 1, &c->attributes);
	if (c->message != NULL) {
		assert_int_equal(y, VALUE_NONE);
		assert_int_equal(b.error.code, PRONY_BAD_INPUT);
		if (strstr(b.error.text, c->message) == NULL)
			fail_msg("%s: '%s' lacks '%s'", c->about, b.error.text, c->message);
		assert_has(b.error.text, "'node'");
	} else {
		const struct shape *shape;

		if (y == VALUE_NONE)
			fail_msg("%s: %s", c->about, b.error.text);
		shape = &graph.values[y].shape;
		assert_int_equal(shape->rank, 4);
		assert_int_equal(shape->dims[0], c->x[0]);
		assert_int_equal(shape->dims[1], c->op == OP_CONV ? c->w[0] : c->x[1]);
		if (shape->dims[2] != c->height || shape->dims[3] != c->width)
			fail_msg("%s: %d x %d", c->about, (int)shape->dims[2], (int)shape->dims[3]);
	}
}

TEST(windows_have_known_sizes)
{
	for (size_t i = 0; i < COUNT(windows); i++)
		check_window(&windows[i]);
}

TEST(grouped_convolutions_count_their_macs)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct attributes attributes;
	int inputs[2];

	graph_init(&graph, "depthwise");
	operator_default_attributes(OP_CONV, &attributes);
	attributes.group = 6;
	inputs[0] = build_input(&b, "input", DTYPE_F32, 2, 3, (const int64_t[]){6, 8, 8});
	inputs[1] = build_parameter(&b, "w", 4, (const int64_t[]){6, 1, 3, 3}, FILL_ZERO, 0);
	build_node(&b, OP_CONV, "node", inputs, 2, &attributes);
	assert_int_equal(b.error.code, PRONY_OK);
	assert_int_equal(graph.nodes[0].attributes.kernel[0], 3); /* filled in from the weights */
	assert_int_equal(graph_macs(&graph), 2 * 6 * 6 * 6 * 9);
}

TEST(matrices_may_be_transposed)
{
	struct attributes attributes;
	int64_t dims[2] = {5, 7};

	for (int i = 0; i < 4; i++) {
		bool fits = i == 2; /* A' (3 x 2)' is 2 x 3; B must be 3 x n */
		SCOPED(graph) graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};
		int inputs[2], y;

		dims[0] = fits ? 3 : 5;
		graph_init(&graph, "gemm");
		operator_default_attributes(OP_GEMM, &attributes);
		attributes.trans_a = i & 2;
		attributes.trans_b = i & 1;
		inputs[0] = build_input(&b, "input", DTYPE_F32, 3, 1, (const int64_t[]){2});
		inputs[1] = build_parameter(&b, "b", 2, dims, FILL_ZERO, 0);
		y = build_node(&b, OP_GEMM, "gemm", inputs, 2, &attributes);
		assert_true((y != VALUE_NONE) == fits);
		if (fits) {
			assert_int_equal(graph.values[y].shape.dims[0], 2);
			assert_int_equal(graph.values[y].shape.dims[1], 7);
			assert_int_equal(graph_macs(&graph), 2 * 3 * 7);
		}
	}
}

TEST(flatten_splits_at_its_axis)
{
	static const struct {
		int64_t axis, rows, columns; /* rows 0: refused */
	} cases[] = {{0, 1, 120}, {1, 2, 60}, {2, 6, 20}, {4, 120, 1},
		     {-1, 24, 5}, {-5, 0, 0}, {5, 0, 0}};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct attributes attributes = {.axis = cases[i].axis};
		SCOPED(graph) graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};
		int x, y;

		graph_init(&graph, "flatten");
		x = build_input(&b, "input", DTYPE_F32, 2, 3, (const int64_t[]){3, 4, 5});
		y = build_node(&b, OP_FLATTEN, "flatten", &x, 1, &attributes);
		assert_int_equal(y == VALUE_NONE, cases[i].rows == 0);
		if (y != VALUE_NONE) {
			assert_int_equal(graph.values[y].shape.dims[0], cases[i].rows);
			assert_int_equal(graph.values[y].shape.dims[1], cases[i].columns);
		}
	}
}

TEST(inputs_have_any_type_and_one_batch)
{
	static const enum dtype types[] = {DTYPE_F16, DTYPE_I32, DTYPE_BOOL, DTYPE_F32};
	static const char *const names[] = {"half", "rows", "mask", "more"};

	for (int64_t batch = 2; batch <= 3; batch++) {
		SCOPED(graph) graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};
		struct error err = ERROR_INIT;
		int inputs[4], x;

		graph_init(&graph, "inputs");
		for (int i = 0; i < 4; i++)
			build_input(&b, names[i], types[i], i < 3 ? 2 : batch, 1,
				    (const int64_t[]){1});
		assert_int_equal(graph_inputs(&graph, inputs, 4), 4);
		x = build_flatten(&b, "flat", build_embedding(&b, "e", inputs[1], 5, 3));
		if (batch == 2) {
			check(build_finish(&b, x, 0, NULL, &err), &err);
			assert_int_equal(graph_index_bound(&graph, inputs[1]), 5);
			assert_int_equal(graph_index_bound(&graph, inputs[0]), 0);
		} else {
			expect_error(build_finish(&b, x, 0, NULL, &err), PRONY_BAD_INPUT, &err,
				     "'more': the first dimension of all inputs");
		}
	}
}

TEST(the_builder_keeps_its_first_error)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x;

	graph_init(&graph, "broken");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){8});
	x = build_linear(&b, "fc", x, 4);
	x = build_linear(&b, "fc", x, 4);
	x = build_dropout(&b, "drop", x, 1.0);
	assert_int_equal(x, VALUE_NONE);
	assert_int_equal(build_finish(&b, x, 0, NULL, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "network 'broken': two values have the name 'fc.weight'");
	graph_release(&graph);
	graph_release(NULL);
}

/* Names and numbers that JSON cannot represent are refused before they are written. */
TEST(names_and_numbers_must_fit_json)
{
	static const char *const bad_names[] = {"", "a\nb", "\xff\xfe", "caf\xc3"};
	struct attributes attributes;

	for (size_t i = 0; i < COUNT(bad_names) + 1; i++) {
		SCOPED(graph) graph;
		struct builder b = {.graph = &graph, .error = ERROR_INIT};
		int x, y;

		graph_init(&graph, "json");
		operator_default_attributes(OP_GEMM, &attributes);
		attributes.alpha = i == COUNT(bad_names) ? (double)INFINITY : 1;
		x = build_input(&b, "input", DTYPE_F32, 3, 1, (const int64_t[]){3});
		y = build_node(&b, OP_GEMM, i < COUNT(bad_names) ? bad_names[i] : "gemm",
			       (const int[]){x, x}, 2, &attributes);
		assert_int_equal(y, VALUE_NONE);
		assert_int_equal(b.error.code, PRONY_BAD_INPUT);
	}
}

TEST(the_zoo_has_its_published_figures)
{
	static const int64_t batches[] = {1, 64};

	for (size_t i = 0; i < zoo_network_count * COUNT(batches); i++) {
		const struct network *network = zoo_networks[i / COUNT(batches)];
		int64_t batch = batches[i % COUNT(batches)];
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;

		check(zoo_build(network, batch, &graph, &err), &err);
		check(graph_check(&graph, &err), &err);
		assert_int_equal(graph_parameter_count(&graph), network->parameters);
		assert_int_equal(graph_macs(&graph), batch * network->macs);
		assert_int_equal(graph_classes(&graph), network->classes);
		assert_int_equal(graph_batch(&graph), batch);
	}
	assert_int_equal(zoo_find("mlp", NULL)->parameters, 669706);
	assert_int_equal(zoo_find("mlp", NULL)->macs, 668672);
	assert_int_equal(zoo_find("lenet", NULL)->parameters, 431080);
	assert_int_equal(zoo_find("lenet", NULL)->macs, 2293000);
}

TEST(unknown_networks_get_a_suggestion)
{
	const char *nearest = NULL;
	struct error err = ERROR_INIT;
	struct graph graph;

	assert_null(zoo_find("lnet", &nearest));
	assert_string_equal(nearest, "lenet");
	assert_null(zoo_find("transformer-xl", &nearest));
	assert_null(nearest);
	expect_error(zoo_build(zoo_find("lenet", NULL), 0, &graph, &err), PRONY_BAD_INPUT, &err,
		     "'input'");
	assert_int_equal(zoo_build(zoo_find("lenet", NULL), INT64_MAX, &graph, &err),
			 PRONY_BAD_INPUT);
}

static void build_zoo(const char *name, int64_t batch, struct graph *graph)
{
	struct error err = ERROR_INIT;

	check(zoo_build(zoo_find(name, NULL), batch, graph, &err), &err);
}

TEST(lenet_is_caffes)
{
	static const char *const order[] = {"Conv",    "MaxPool", "Conv",
					    "MaxPool", "Flatten", "Gemm",
					    "Relu",    "Gemm",	  "SoftmaxCrossEntropyLoss"};
	struct graph graph;
	int w;

	build_zoo("lenet", 3, &graph);
	assert_int_equal(graph.forward_count, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(operator_name(graph.nodes[i].op), order[i]);
	w = graph_find_value(&graph, "ip1.weight");
	assert_int_equal(graph.values[w].shape.dims[0], 500); /* [out, in] */
	assert_int_equal(graph.values[w].shape.dims[1], 800);
	assert_int_equal(graph_parameters(&graph, NULL, 0), 8);
	assert_false(graph_has_dropout(&graph));
	graph_release(&graph);
	build_zoo("mlp", 3, &graph);
	assert_true(graph_has_dropout(&graph));
	graph_release(&graph);
}

TEST(digests_follow_the_meaning)
{
	char first[65], again[65], other[65];
	struct error err = ERROR_INIT;
	SCOPED(graph) graph, twin;

	build_zoo("lenet", 4, &graph);
	build_zoo("lenet", 4, &twin);
	check(graph_digest(&graph, first, &err), &err);
	/* A changed digest orphans stored results: change it only with the graph's schema. */
	assert_string_equal(first,
			    "a6642ae77896a0557ed9f845c9bed04f23aa9b02d80982eaea6797e1f55e6a1c");
	check(graph_add_backward(&graph, &err), &err);
	check(graph_digest(&graph, again, &err), &err);
	assert_string_equal(first, again);
	graph_digest(&twin, again, &err);
	assert_string_equal(first, again);
	twin.nodes[1].attributes.strides[0] = 1;
	graph_digest(&twin, other, &err);
	assert_string_not_equal(first, other);
}

TEST(memory_is_estimated)
{
	/* mlp, batch 2, floats: activations 4 x 512 and 2 masks of 512 and logits; see below. */
	int64_t parameters = 669706 * 4, input = 2 * 784 * 4, label = 2 * 8, row = 2 * 512 * 4;
	int64_t logits = 2 * 10 * 4, loss = 4;
	SCOPED(graph) graph;

	build_zoo("mlp", 2, &graph);
	/* Twice fc, relu, dropout, mask; the largest neighbourhood: relu, its dropout and mask. */
	assert_int_equal(graph_memory_estimate(&graph, true),
			 3 * parameters + input + label + 8 * row + logits + loss + 3 * row);
	/* At most a layer, the values it reads and, for dropout, its mask. */
	assert_int_equal(graph_memory_estimate(&graph, false),
			 parameters + input + label + 3 * row);
}

TEST(memory_has_a_least)
{
	/* mlp, batch 2: its backward pass reads relu and dropout of both layers, and the logits. */
	int64_t parameters = 669706 * 4, row = 2 * 512 * 4, logits = 2 * 10 * 4;
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;

	build_zoo("mlp", 2, &graph);
	/* The second layer reads and writes a row. */
	assert_int_equal(graph_memory_least(&graph, 0, 4), parameters + 2 * row);
	check(graph_add_backward(&graph, &err), &err);
	assert_int_equal(graph_memory_least(&graph, 0, 4), 2 * parameters + 4 * row + logits);
	assert_int_equal(graph_memory_least(&graph, 1, 2), 3 * parameters + (4 * row + logits) / 2);
}

/* Otherwise a cell that the estimate permits would be refused. */
TEST(least_is_below_the_estimate)
{
	for (size_t i = 0; i < zoo_network_count; i++) {
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;
		int64_t train, forward;

		build_zoo(zoo_networks[i]->name, 2, &graph);
		forward = graph_memory_estimate(&graph, false);
		train = graph_memory_estimate(&graph, true);
		assert_true(graph_memory_least(&graph, 0, 4) <= forward);
		check(graph_add_backward(&graph, &err), &err);
		assert_true(graph_memory_least(&graph, 1, 4) <= train);
		assert_true(graph_memory_least(&graph, 1, 4) > train / 3);
	}
}

/* Names come from files; a long one keeps its end. */
TEST(pictures_quote_names)
{
	static const char name[] = "<a&\"b\">/to/be/longer/than/what/a/box/holds/ends\xC3\xA9here";
	struct error err = ERROR_INIT;
	struct strbuf *text = test_strbuf();
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	int x;

	graph_init(&graph, "<a&\"b\">");
	x = build_input(&b, "input", DTYPE_F32, 3, 1, (const int64_t[]){3});
	x = build_linear(&b, name, x, 5);
	x = build_dropout(&b, "\\\"", x, 0.5);
	check(build_finish(&b, x, 0, NULL, &err), &err);
	check(picture_write(&graph, PICTURE_SVG, text, &err), &err);
	assert_has(strbuf_text(text), "<title>&lt;a&amp;&quot;b&quot;&gt;, batch 3");
	assert_has(strbuf_text(text), ">\xE2\x80\xA6/longer/than/what/a/box/holds/"
				      "ends\xC3\xA9here<");
	assert_has(strbuf_text(text), ">Gemm + Dropout<");
	strbuf_clear(text);
	check(picture_write(&graph, PICTURE_DOT, text, &err), &err);
	assert_has(strbuf_text(text), "digraph \"<a&\\\"b\\\">, batch 3");
}
