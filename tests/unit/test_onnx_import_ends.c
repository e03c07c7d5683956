/* ONNX models with other endings, batches that can or cannot be replaced, and messages about
 * unsupported operators. */
#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"

static void begin(struct onnx_fixture *f, int rank, const int64_t *dims)
{
	fixture_init(f, 17);
	fixture_input(f, "x", rank, dims);
}

static void end(struct onnx_fixture *f, const char *last, int64_t features)
{
	char inputs[32];

	snprintf(inputs, sizeof(inputs), "%s,last", last);
	fixture_floats(f, "last", DIMS(features, 2));
	fixture_node(f, "Gemm", inputs, "y");
	fixture_output(f, "y");
}

/* Two samples with the file's batch, and as the first two of six. */
static void expect_same_samples(struct onnx_fixture *f)
{
	int64_t few, many;
	const double *two = fixture_logits(f, 2, &few), *six = fixture_logits(f, 6, &many);

	assert_int_equal(few, 4);
	assert_int_equal(many, 12);
	for (int64_t i = 0; i < few; i++) {
		assert_float_equal(two[i], six[i], 1e-12);
		assert_true(fabs(two[i]) > 1e-9);
	}
}

/* The batch may move to any axis, and be one of several factors of it. */
TEST(samples_are_followed_through_the_graph)
{
	struct onnx_fixture f;

	begin(&f, DIMS(2, 5, 6));
	fixture_node(&f, "Transpose", "x", "t");
	fixture_list(&f, "perm", DIMS(1, 0, 2));
	fixture_node(&f, "Softmax", "t", "s");
	fixture_int(&f, "axis", 0);
	fixture_ints(&f, "minus", 1, (const int64_t[]){-1});
	fixture_node(&f, "Gather", "s,minus", "g");
	fixture_ints(&f, "rows", 2, (const int64_t[]){2, 6});
	fixture_node(&f, "Reshape", "g,rows", "r");
	end(&f, "r", 6);
	expect_same_samples(&f);
	onnx_fixture_release(&f);
	/* Two groups of samples, one after the other, are separated again. */
	begin(&f, DIMS(2, 3));
	fixture_node(&f, "Neg", "x", "n");
	fixture_node(&f, "Concat", "x,n", "c");
	fixture_int(&f, "axis", 0);
	fixture_floats(&f, "w", DIMS(3, 4));
	fixture_node(&f, "MatMul", "c,w", "m");
	fixture_node(&f, "Split", "m", "a,b");
	fixture_node(&f, "Sigmoid", "a", "z");
	fixture_node(&f, "Concat", "z,b", "j");
	fixture_int(&f, "axis", 1);
	end(&f, "j", 8);
	expect_same_samples(&f);
	onnx_fixture_release(&f);
	/* A computed scale per sample; one bias for all. */
	begin(&f, DIMS(2, 3, 4, 4));
	fixture_node(&f, "GlobalAveragePool", "x", "g");
	fixture_node(&f, "Mul", "g,x", "z");
	fixture_node(&f, "ReduceMean", "z", "m");
	fixture_list(&f, "axes", DIMS(2, 3));
	fixture_int(&f, "keepdims", 0);
	fixture_floats(&f, "k", DIMS(1, 3));
	fixture_node(&f, "Sum", "k,k,m", "b");
	end(&f, "b", 3);
	expect_same_samples(&f);
	onnx_fixture_release(&f);
}

static void softmax_over_samples(struct onnx_fixture *f)
{
	fixture_node(f, "Transpose", "x", "t");
	fixture_node(f, "Softmax", "t", "s");
	fixture_node(f, "Transpose", "s", "z");
}

static void rows_of_two_groups(struct onnx_fixture *f)
{
	fixture_node(f, "Concat", "x,x", "c");
	fixture_int(f, "axis", 0);
	fixture_ints(f, "rows", 2, (const int64_t[]){2, 6});
	fixture_node(f, "Reshape", "c,rows", "r");
	fixture_ints(f, "from", 1, (const int64_t[]){0});
	fixture_ints(f, "to", 1, (const int64_t[]){3});
	fixture_ints(f, "axis", 1, (const int64_t[]){1});
	fixture_node(f, "Slice", "r,from,to,axis", "z");
}

static void number_for_each_sample(struct onnx_fixture *f)
{
	fixture_floats(f, "k", DIMS(2, 1));
	fixture_node(f, "Mul", "x,k", "z");
}

static void mean_of_samples(struct onnx_fixture *f)
{
	fixture_node(f, "ReduceMean", "x", "m");
	fixture_list(f, "axes", DIMS(0));
	fixture_node(f, "Sub", "x,m", "z");
}

TEST(a_batch_whose_samples_are_mixed_is_not_replaced)
{
	static const struct {
		void (*middle)(struct onnx_fixture *f);
		const char *node;
	} cases[] = {
		{softmax_over_samples, "node 'n.Softmax.1' (Softmax)"},
		{rows_of_two_groups, "node 'n.Slice.2' (Slice)"},
		{number_for_each_sample, "node 'n.Mul.0' (Mul)"},
		{mean_of_samples, "node 'n.ReduceMean.0' (ReduceMean)"},
	};
	int64_t count;

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(onnx_fixture) f;

		begin(&f, DIMS(2, 3));
		cases[i].middle(&f);
		end(&f, "z", 3);
		fixture_logits(&f, 2, &count);
		REFUSED(&f, 1, PRONY_UNSUPPORTED, cases[i].node, "the file has a fixed batch");
		REFUSED(&f, 6, PRONY_UNSUPPORTED, cases[i].node, "the file has a fixed batch");
	}
	/* With the file's one sample nothing mixes; with more, height would become the batch. */
	SCOPED(onnx_fixture) f;

	begin(&f, DIMS(1, 2, 3, 3));
	fixture_node(&f, "Transpose", "x", "t");
	fixture_list(&f, "perm", DIMS(2, 1, 0, 3));
	fixture_floats(&f, "w", DIMS(2, 2, 3, 3));
	fixture_node(&f, "Conv", "t,w", "c");
	fixture_list(&f, "pads", DIMS(1, 1, 1, 1));
	fixture_node(&f, "Transpose", "c", "u");
	fixture_list(&f, "perm", DIMS(2, 1, 0, 3));
	fixture_node(&f, "Flatten", "u", "z");
	end(&f, "z", 18);
	fixture_logits(&f, 1, &count);
	REFUSED(&f, 3, PRONY_UNSUPPORTED, "node 'n.Conv.1' (Conv)");
}

TEST(the_last_softmax_is_part_of_the_loss)
{
	static const char *const ops[] = {"Softmax", "LogSoftmax", "Softmax"};

	for (size_t i = 0; i < COUNT(ops); i++) {
		SCOPED(onnx_fixture) f;
		struct error err = ERROR_INIT;
		struct onnx_notes notes;
		SCOPED(graph) graph;

		fixture_init(&f, 13);
		fixture_input(&f, "x", DIMS(1, 6));
		fixture_floats(&f, "w", DIMS(6, 3));
		fixture_node(&f, "MatMul", "x,w", "h");
		fixture_node(&f, ops[i], "h", i == 2 ? "p" : "y");
		if (i == 2)
			fixture_node(&f, "Identity", "p", "y");
		fixture_output(&f, "y");
		check(fixture_build(&f, 1, &graph, &notes, &err), &err);
		assert_true(notes.softmax_left_out);
		assert_int_equal(graph.forward_count, 2);
	}
}

/* N x 1 x 1 x classes, as in channels-last layouts. */
TEST(classes_may_stand_last)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	struct onnx_notes notes;
	SCOPED(graph) graph;

	begin(&f, DIMS(0, 4, 3, 3));
	fixture_node(&f, "GlobalAveragePool", "x", "g");
	fixture_node(&f, "Transpose", "g", "t");
	fixture_list(&f, "perm", DIMS(0, 2, 3, 1));
	fixture_node(&f, "Softmax", "t", "y");
	fixture_output(&f, "y");
	check(fixture_build(&f, 3, &graph, &notes, &err), &err);
	assert_true(notes.softmax_left_out);
	assert_int_equal(graph_classes(&graph), 4);
}

/* ONNX broadcasts Gemm's third input, and the operand of an Add after a product; neither has to be
 * a row. */
TEST(biases_of_other_shapes)
{
	struct onnx_fixture f;
	int64_t with, without;

	for (int form = 0; form < 3; form++) {
		const double *sum, *product;

		begin(&f, DIMS(0, 3));
		fixture_floats(&f, "w", DIMS(3, 2));
		if (form == 0)
			fixture_number(&f, "b", 4);
		else
			fixture_floats(&f, "b", form == 1 ? 1 : 3, (const int64_t[]){1, 1, 1})
				->float_data[0] = 4;
		if (form < 2) {
			fixture_node(&f, "Gemm", "x,w,b", "y");
		} else {
			fixture_node(&f, "MatMul", "x,w", "m");
			fixture_node(&f, "Add", "m,b", "a"); /* 1 x N x 2 */
			fixture_node(&f, "Transpose", "a", "t");
			fixture_list(&f, "perm", DIMS(1, 0, 2));
			fixture_node(&f, "Flatten", "t", "y");
		}
		fixture_node(&f, "MatMul", "x,w", "z");
		fixture_output(&f, "y");
		sum = fixture_logits(&f, 3, &with);
		f.outputs[0]->name = arena_strdup(&f.arena, "z");
		product = fixture_logits(&f, 3, &without);
		assert_int_equal(with, 6);
		assert_int_equal(without, 6);
		for (int64_t i = 0; i < with; i++)
			assert_float_equal(sum[i], product[i] + 4, 1e-12);
		onnx_fixture_release(&f);
	}
}

TEST(all_that_is_unsupported_is_named_at_once)
{
	SCOPED(onnx_fixture) f;

	fixture_init(&f, 20);
	fixture_input(&f, "x", DIMS(1, 4, 8));
	fixture_node(&f, "Softplus", "x", "a");
	fixture_node(&f, "Relu", "a", "b");
	fixture_node(&f, "Softplus", "b", "c");
	fixture_floats(&f, "w", DIMS(4, 4, 3));
	fixture_node(&f, "Conv", "x,w", "d");
	fixture_node(&f, "FancyOperator", "c", "e")->domain = arena_strdup(&f.arena, "com.example");
	fixture_node(&f, "Concat", "e,d,b", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 1, PRONY_UNSUPPORTED,
		"model.onnx: unsupported operators: Softplus ('n.Softplus.0', "
		"'n.Softplus.2'); com.example.FancyOperator ('n.FancyOperator.4')",
		"node 'n.Conv.3' (Conv): input 0 has 3 dimensions; only 4 are supported");
}

/* After a refused operator: foldable operators are not named if they cannot be folded for that
 * reason; others are. */
TEST(what_follows_from_the_unsupported_is_named_once)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	struct graph graph;

	begin(&f, DIMS(0, 4));
	fixture_node(&f, "Softplus", "x", "a");
	fixture_node(&f, "Max", "a,x", "b");
	fixture_node(&f, "Shape", "b", "s");
	fixture_node(&f, "Range", "s,s,s", "r");
	fixture_node(&f, "Reshape", "b,r", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 1, PRONY_UNSUPPORTED, "Softplus ('n.Softplus.0'); Max ('n.Max.1')");
	assert_int_equal(fixture_build(&f, 1, &graph, NULL, &err), PRONY_UNSUPPORTED);
	assert_lacks(err.text, "Range");
}

/* The nodes of an If are in its subgraphs, which are not read. */
TEST(a_node_with_graphs_is_named)
{
	SCOPED(onnx_fixture) f;
	Onnx__NodeProto *node;

	begin(&f, DIMS(0, 4));
	fixture_node(&f, "Softplus", "x", "a");
	fixture_number(&f, "which", 1);
	node = fixture_node(&f, "If", "which", "y");
	fixture_int(&f, "then_branch", 0);
	node->attribute[0]->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
	node->attribute[0]->has_type = 1;
	fixture_output(&f, "y");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "Softplus ('n.Softplus.0')", "If ('n.If.1')");
}
