/* The conversion of ONNX models to graphs: batches, shared weights, folding, operators and
 * refusals. */
#include "onnx/onnx.h"
#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* x (2 x 4 x 6 x 6) -> conv -> channel shuffle with the batch in its constants -> mean -> gemm */
static void shuffle_model(struct onnx_fixture *f, int64_t opset, int64_t batch, int64_t in_reshape)
{
	fixture_init(f, opset);
	fixture_input(f, "x", DIMS(batch, 4, 6, 6));
	fixture_floats(f, "w", DIMS(6, 4, 3, 3));
	fixture_floats(f, "b", DIMS(6));
	fixture_node(f, "Conv", "x,w,b", "c");
	fixture_ints(f, "five", 5, (const int64_t[]){in_reshape, 2, 3, 4, 4});
	fixture_ints(f, "four", 4, (const int64_t[]){in_reshape, -1, 4, 4});
	fixture_node(f, "Reshape", "c,five", "r5");
	fixture_node(f, "Transpose", "r5", "t");
	fixture_list(f, "perm", DIMS(0, 2, 1, 3, 4));
	fixture_node(f, "Reshape", "t,four", "r4");
	if (opset >= 18) {
		fixture_ints(f, "axes", 2, (const int64_t[]){2, -1});
		fixture_node(f, "ReduceMean", "r4,axes", "m");
	} else {
		fixture_node(f, "ReduceMean", "r4", "m");
		fixture_list(f, "axes", DIMS(-2, 3));
	}
	fixture_int(f, "keepdims", 0);
	fixture_floats(f, "gw", DIMS(6, 5));
	fixture_floats(f, "gb", DIMS(5));
	fixture_node(f, "MatMul", "m,gw", "mm");
	fixture_node(f, "Add", "gb,mm", "y");
	fixture_output(f, "y");
}

TEST(a_fixed_batch_is_replaced)
{
	static const int64_t opsets[] = {13, 17, 18, 20};

	for (size_t i = 0; i < COUNT(opsets); i++) {
		SCOPED(onnx_fixture) f;
		int64_t few, many;
		const double *two, *seven;

		shuffle_model(&f, opsets[i], 2, 2);
		two = fixture_logits(&f, 2, &few);
		seven = fixture_logits(&f, 7, &many);
		assert_int_equal(few, 2 * 5);
		assert_int_equal(many, 7 * 5);
		for (int64_t k = 0; k < few; k++)
			assert_float_equal(two[k], seven[k], 1e-12);
	}
}

TEST(an_open_batch_takes_any)
{
	struct onnx_fixture f;
	int64_t count;

	shuffle_model(&f, 17, 0, 0); /* 0 in a Reshape copies the dimension */
	fixture_logits(&f, 3, &count);
	assert_int_equal(count, 15);
	onnx_fixture_release(&f);
	/* The file leaves the batch open, but its constants fix it. */
	shuffle_model(&f, 17, 0, 2);
	REFUSED(&f, 3, PRONY_UNSUPPORTED, "n.Reshape.1",
		"shape 1x6x4x4 cannot be reshaped to 2x2x3x4x4");
	onnx_fixture_release(&f);
	/* Constants of a batch of 1 are adapted, like those of a file with a fixed batch. */
	shuffle_model(&f, 17, 0, 1);
	fixture_logits(&f, 3, &count);
	assert_int_equal(count, 15);
	onnx_fixture_release(&f);
}

/* Zeros of the input's shape are computed for the batch of the import. */
TEST(constants_of_the_shape_of_the_input_suit_every_batch)
{
	SCOPED(onnx_fixture) f;
	int64_t few, many;
	const double *two, *seven;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(0, 6));
	fixture_node(&f, "Shape", "x", "shape");
	fixture_node(&f, "ConstantOfShape", "shape", "zeros");
	fixture_node(&f, "Add", "x,zeros", "z");
	fixture_floats(&f, "w", DIMS(6, 2));
	fixture_node(&f, "Gemm", "z,w", "y");
	fixture_output(&f, "y");
	two = fixture_logits(&f, 2, &few);
	seven = fixture_logits(&f, 7, &many);
	assert_int_equal(few, 4);
	assert_int_equal(many, 14);
	for (int64_t i = 0; i < few; i++)
		assert_float_equal(two[i], seven[i], 1e-12);
}

TEST(a_batch_that_cannot_be_replaced_names_its_node)
{
	SCOPED(onnx_fixture) f;

	/* The batch as a factor of the rows of the samples. */
	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(4, 6));
	fixture_ints(&f, "rows", 2, (const int64_t[]){3, 8});
	fixture_ints(&f, "batch", 2, (const int64_t[]){4, 6});
	fixture_node(&f, "Reshape", "x,rows", "r");
	fixture_node(&f, "Reshape", "r,batch", "b");
	fixture_floats(&f, "w", DIMS(6, 2));
	fixture_node(&f, "Gemm", "b,w", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 8, PRONY_UNSUPPORTED, "n.Reshape.0", "the file has a fixed batch", "batch 8");
}

/* Initializers with several users: a matrix, once through an Identity, and a bias of zeros. */
static void shared_model(struct onnx_fixture *f)
{
	fixture_init(f, 17);
	fixture_input(f, "x", DIMS(0, 5));
	fixture_floats(f, "w", DIMS(5, 5));
	memset(fixture_floats(f, "b", DIMS(5))->float_data, 0, 5 * sizeof(float));
	fixture_node(f, "Identity", "w", "same");
	fixture_node(f, "Gemm", "x,w,b", "h1");
	fixture_node(f, "Relu", "h1", "r1");
	fixture_node(f, "Gemm", "r1,same,b", "h2");
	fixture_node(f, "Gemm", "h2,w", "y");
	fixture_output(f, "y");
}

/* Exporters merge tensors of equal numbers, so these are parameters of their own. */
TEST(an_initializer_with_several_users_is_one_parameter)
{
	SCOPED(onnx_fixture) f;
	struct onnx_notes notes;
	struct graph graph;
	struct error err = ERROR_INIT;
	int64_t count;

	shared_model(&f);
	check(fixture_build(&f, 2, &graph, &notes, &err), &err);
	assert_int_equal(graph_parameter_count(&graph), 25 + 2 * 5);
	assert_int_equal(notes.file_parameters, 25 + 5);
	assert_int_equal(notes.shared_initializers, 1);
	assert_int_equal(graph_forward_readers(&graph, graph_find_value(&graph, "w")), 3);
	assert_true(graph_find_value(&graph, "b") >= 0);
	assert_true(graph_find_value(&graph, "b.2") >= 0);
	check(graph_add_backward(&graph, &err), &err);
	graph_release(&graph);
	fixture_logits(&f, 2, &count);
	assert_int_equal(count, 10);
}

/* The nodes that exporters write for x.view(x.shape[0], -1), and many foldable operators. */
TEST(shapes_are_folded)
{
	SCOPED(onnx_fixture) f;
	int64_t count;

	fixture_init(&f, 15);
	fixture_input(&f, "x", DIMS(0, 2, 3, 4));
	fixture_ints(&f, "zero", 1, (const int64_t[]){0});
	fixture_ints(&f, "one", 1, (const int64_t[]){1});
	fixture_ints(&f, "four", 1, (const int64_t[]){4});
	fixture_node(&f, "Shape", "x", "shape");
	fixture_node(&f, "Gather", "shape,zero", "n");
	fixture_node(&f, "Slice", "shape,one,four,zero", "rest");
	fixture_node(&f, "ReduceProd", "rest", "features");
	fixture_node(&f, "Cast", "features", "cast");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
	fixture_node(&f, "Cast", "cast", "whole");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
	fixture_node(&f, "ConstantOfShape", "one", "filled");
	fixture_node(&f, "Cast", "filled", "nothing");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64);
	fixture_node(&f, "Add", "whole,nothing", "sum");
	fixture_node(&f, "Concat", "n,sum", "target");
	fixture_int(&f, "axis", 0);
	fixture_node(&f, "Shape", "x", "tail");
	fixture_int(&f, "start", -2);
	fixture_node(&f, "Equal", "tail,tail", "same");
	fixture_node(&f, "Where", "same,target,tail", "chosen");
	fixture_node(&f, "Reshape", "x,chosen", "flat");
	fixture_floats(&f, "w", DIMS(24, 3));
	fixture_node(&f, "MatMul", "flat,w", "y");
	fixture_output(&f, "y");
	fixture_logits(&f, 5, &count);
	assert_int_equal(count, 15);
}

TEST(batch_normalisation_trains)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	struct graph graph;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(0, 3, 4, 4));
	for (int i = 0; i < 4; i++)
		fixture_floats(&f, (const char *[]){"scale", "bias", "mean", "var"}[i], DIMS(3));
	fixture_node(&f, "BatchNormalization", "x,scale,bias,mean,var", "bn,m,v");
	fixture_int(&f, "training_mode", 1);
	fixture_real(&f, "momentum", 0.75f);
	fixture_node(&f, "GlobalMaxPool", "bn", "p");
	fixture_node(&f, "Flatten", "p", "y");
	fixture_output(&f, "y");
	if (fixture_build(&f, 2, &graph, NULL, &err) != PRONY_OK ||
	    graph_add_backward(&graph, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	assert_int_equal(graph_parameter_count(&graph), 6);
	assert_int_equal(graph.values[graph_find_value(&graph, "mean")].kind, VALUE_STATE);
	assert_int_equal(graph.nodes[0].op, OP_BATCH_NORM);
	assert_float_equal(graph.nodes[0].attributes.momentum, 0.75, 1e-9);
	graph_release(&graph);
	fixture_node(&f, "Add", "m,v", "z");
	f.outputs[0]->name = arena_strdup(&f.arena, "z");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "n.BatchNormalization.0", "statistic");
}

/* One operator on 1 x 2 x 2 x 3, followed by a Reshape; expected numbers by hand from sin(1)... */
struct small {
	const char *op, *inputs;
	void (*prepare)(struct onnx_fixture *f);
	int64_t opset;
	int count;
	double (*expected)(int i);
};

static double x_at(int i)
{
	return (double)(float)sin((double)i + 1);
}

static double hard_swish(int i)
{
	double x = x_at(i), gate = x / 6 + 0.5;

	return x * (gate < 0 ? 0 : gate > 1 ? 1 : gate);
}

static double hard_sigmoid(int i)
{
	double y = 0.25 * x_at(i) + 0.125;

	return y < 0 ? 0 : y > 1 ? 1 : y;
}

static void prepare_hard_sigmoid(struct onnx_fixture *f)
{
	fixture_real(f, "alpha", 0.25f);
	fixture_real(f, "beta", 0.125f);
}

static double clipped(int i)
{
	double x = x_at(i);

	return x < -0.5 ? -0.5 : x > 0.75 ? 0.75 : x;
}

static void prepare_clip(struct onnx_fixture *f)
{
	fixture_number(f, "low", -0.5f);
	fixture_number(f, "high", 0.75f);
}

static double minus_three(int i)
{
	return x_at(i) - 3;
}

static double three_minus(int i)
{
	return 3 - x_at(i);
}

static void prepare_three(struct onnx_fixture *f)
{
	fixture_number(f, "three", 3);
}

static double squared(int i)
{
	return x_at(i) * x_at(i);
}

static void prepare_two(struct onnx_fixture *f)
{
	fixture_number(f, "two", 2);
}

static void prepare_whole_two(struct onnx_fixture *f)
{
	fixture_ints(f, "whole", 1, (const int64_t[]){2});
}

static double cubed(int i)
{
	return x_at(i) * x_at(i) * x_at(i);
}

static double error_function(int i)
{
	return erf(x_at(i));
}

/* The middle column is not x, or it alone is. */
static double masked(int i)
{
	return i % 3 == 1 ? 3 : x_at(i);
}

static double masked_otherwise(int i)
{
	return i % 3 == 1 ? x_at(i) : 3;
}

/* A softmax of three columns without the middle one. */
static double softmax_of_two(int i)
{
	int row = i / 3 * 3;

	return i % 3 == 1 ? 0 : exp(x_at(i)) / (exp(x_at(row)) + exp(x_at(row + 2)));
}

static void prepare_mask(struct onnx_fixture *f)
{
	fixture_ints(f, "mask", 3, (const int64_t[]){1, 0, 1});
	fixture_number(f, "three", 3);
	fixture_number(f, "least", -INFINITY);
}

/* Twice as high and as wide. */
static double repeated(int i)
{
	int column = i % 6 / 2, row = i / 6 % 4 / 2, channel = i / 24;

	return x_at(channel * 6 + row * 3 + column);
}

static void prepare_scales(struct onnx_fixture *f)
{
	float *scales = fixture_floats(f, "scales", DIMS(4))->float_data;

	for (int i = 0; i < 4; i++)
		scales[i] = i < 2 ? 1 : 2;
}

static double second_channel(int i)
{
	return x_at(6 + i);
}

static void prepare_gather(struct onnx_fixture *f)
{
	fixture_ints(f, "minus", 1, (const int64_t[]){-1});
	fixture_int(f, "axis", 1);
}

/* 0 0 x x x 0 along the width. */
static double padded(int i)
{
	int place = i % 6;

	return place < 2 || place == 5 ? 0.5 : x_at(i / 6 * 3 + place - 2);
}

static void prepare_pad(struct onnx_fixture *f)
{
	fixture_ints(f, "pads", 2, (const int64_t[]){2, 1});
	fixture_ints(f, "axes", 1, (const int64_t[]){-1});
	fixture_number(f, "half", 0.5f);
}

/* SAME_LOWER, window 2: the odd padding is at the beginning and does not count. */
static double pooled(int i)
{
	int row = i / 3 % 2, column = i % 3, base = i / 6 * 6, count = 0;
	double sum = 0;

	for (int r = row - 1; r <= row; r++) {
		for (int c = column - 1; c <= column; c++) {
			if (r < 0 || c < 0)
				continue;
			sum += x_at(base + r * 3 + c);
			count++;
		}
	}
	return sum / count;
}

static void prepare_pool(struct onnx_fixture *f)
{
	fixture_list(f, "kernel_shape", DIMS(2, 2));
	fixture_text(f, "auto_pad", "SAME_LOWER");
}

static double row_mean(int i)
{
	return (x_at(3 * i) + x_at(3 * i + 1) + x_at(3 * i + 2)) / 3;
}

static double row_sum(int i)
{
	return 3 * row_mean(i);
}

static void prepare_mean(struct onnx_fixture *f)
{
	fixture_list(f, "axes", DIMS(-1));
}

static double summed(int i)
{
	return x_at(i) + 3 + x_at(i);
}

/* Attributes that are inputs in newer opsets. */

static void prepare_old_clip(struct onnx_fixture *f)
{
	fixture_real(f, "max", 0.75f);
	fixture_real(f, "min", -0.5f);
}

static double capped(int i)
{
	return x_at(i) > 0.75 ? 0.75 : x_at(i);
}

static void prepare_old_cap(struct onnx_fixture *f)
{
	fixture_real(f, "max", 0.75f);
}

static void prepare_old_pad(struct onnx_fixture *f)
{
	fixture_list(f, "pads", DIMS(0, 0, 0, 2, 0, 0, 0, 1));
	fixture_real(f, "value", 0.5f);
}

static void prepare_old_slice(struct onnx_fixture *f)
{
	fixture_list(f, "starts", DIMS(1));
	fixture_list(f, "ends", DIMS(INT64_MAX));
	fixture_list(f, "axes", DIMS(1));
}

static void prepare_old_dropout(struct onnx_fixture *f)
{
	fixture_real(f, "ratio", 0.25f);
}

static void prepare_old_unsqueeze(struct onnx_fixture *f)
{
	fixture_list(f, "axes", DIMS(0, 2));
}

/* Over all twelve, as a matrix of one row; the current definition would be over two channels. */
static double old_softmax(int i)
{
	double sum = 0;

	for (int k = 0; k < 12; k++)
		sum += exp(x_at(k));
	return exp(x_at(i)) / sum;
}

static const struct small smalls[] = {
	{"Clip", "x", prepare_old_clip, 10, 12, clipped},
	{"Clip", "x", prepare_old_cap, 7, 12, capped},
	{"Pad", "x", prepare_old_pad, 10, 24, padded},
	{"Slice", "x", prepare_old_slice, 9, 6, second_channel},
	{"Dropout", "x", prepare_old_dropout, 11, 12, x_at},
	{"Unsqueeze", "x", prepare_old_unsqueeze, 12, 12, x_at},
	{"Softmax", "x", NULL, 12, 12, old_softmax},
	{"HardSwish", "x", NULL, 24, 12, hard_swish},
	{"HardSwish", "x", NULL, 14, 12, hard_swish},
	{"HardSigmoid", "x", prepare_hard_sigmoid, 13, 12, hard_sigmoid},
	{"Clip", "x,low,high", prepare_clip, 13, 12, clipped},
	{"Sub", "x,three", prepare_three, 13, 12, minus_three},
	{"Sub", "three,x", prepare_three, 13, 12, three_minus},
	{"Sum", "x,three,x", prepare_three, 13, 12, summed},
	{"Pow", "x,two", prepare_two, 13, 12, squared},
	{"Pow", "x,whole", prepare_whole_two, 13, 12, squared},
	{"Pow", "x,three", prepare_three, 13, 12, cubed},
	{"Erf", "x", NULL, 13, 12, error_function},
	{"Where", "mask,x,three", prepare_mask, 13, 12, masked},
	{"Where", "mask,three,x", prepare_mask, 13, 12, masked_otherwise},
	{"Resize", "x,,scales", prepare_scales, 13, 48, repeated},
	{"Upsample", "x,scales", prepare_scales, 9, 48, repeated},
	{"Gather", "x,minus", prepare_gather, 13, 6, second_channel},
	{"Pad", "x,pads,half,axes", prepare_pad, 18, 24, padded},
	{"AveragePool", "x", prepare_pool, 13, 12, pooled},
	{"ReduceMean", "x", prepare_mean, 13, 4, row_mean},
	{"ReduceSum", "x", prepare_mean, 12, 4, row_sum},
	{"Dropout", "x", NULL, 13, 12, x_at},
	{"CastLike", "x,three", prepare_three, 15, 12, x_at},
};

TEST(operators_are_translated)
{
	for (size_t i = 0; i < COUNT(smalls); i++) {
		const struct small *small = &smalls[i];
		SCOPED(onnx_fixture) f;
		const double *logits;
		int64_t count;

		fixture_init(&f, small->opset);
		fixture_input(&f, "x", DIMS(1, 2, 2, 3));
		fixture_node(&f, small->op, small->inputs, "z");
		if (small->prepare)
			small->prepare(&f);
		fixture_node(&f, "Flatten", "z", "y");
		fixture_output(&f, "y");
		logits = fixture_logits(&f, 1, &count);
		assert_int_equal(count, small->count);
		for (int k = 0; k < count; k++) {
			if (fabs(logits[k] - small->expected(k)) > 1e-6)
				fail_msg("%s: element %d is %g, not %g", small->op, k, logits[k],
					 small->expected(k));
		}
	}
}

TEST(a_mask_before_a_softmax_is_added)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	const double *logits;
	int64_t count;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(1, 2, 2, 3));
	prepare_mask(&f);
	fixture_node(&f, "Where", "mask,x,least", "w");
	fixture_node(&f, "Softmax", "w", "p");
	fixture_node(&f, "Flatten", "p", "y");
	fixture_output(&f, "y");
	logits = fixture_logits(&f, 1, &count);
	for (int k = 0; k < 12; k++)
		assert_float_equal(logits[k], softmax_of_two(k), 1e-6);
	assert_int_equal(fixture_build(&f, 1, &graph, NULL, &err), PRONY_OK);
	assert_int_equal(graph.nodes[0].op, OP_ADD);
	assert_int_equal(graph.nodes[1].op, OP_SOFTMAX);
}

/* Split by sizes, evenly, and with num_outputs of opset 18; with unused outputs. */
TEST(splits_become_slices)
{
	for (int form = 0; form < 3; form++) {
		SCOPED(onnx_fixture) f;
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;
		const double *logits;
		int64_t count;

		fixture_init(&f, form == 2 ? 18 : 13);
		fixture_input(&f, "x", DIMS(1, 6));
		if (form == 0)
			fixture_ints(&f, "sizes", 3, (const int64_t[]){2, 2, 2});
		fixture_node(&f, "Split", form == 0 ? "x,sizes" : "x", "a,b,c");
		fixture_int(&f, "axis", -1);
		fixture_node(&f, "Concat", "c,a", "y");
		fixture_int(&f, "axis", 1);
		fixture_output(&f, "y");
		logits = fixture_logits(&f, 1, &count);
		assert_int_equal(count, 4);
		for (int i = 0; i < 4; i++)
			assert_float_equal(logits[i], x_at((i + 4) % 6), 1e-12);
		check(fixture_build(&f, 1, &graph, NULL, &err), &err);
		assert_int_equal(graph.forward_count, 4); /* two slices, Concat, loss */
	}
}

/* A learned token for each sample, as exporters write it, and products of computed values. */
TEST(attention_with_a_token_is_translated)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	const double *two, *seven;
	SCOPED(graph) graph;
	int64_t count;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(0, 4, 6));
	fixture_ints(&f, "zero", 1, (const int64_t[]){0});
	fixture_ints(&f, "rest", 2, (const int64_t[]){1, 6});
	fixture_floats(&f, "token", DIMS(1, 1, 6));
	fixture_floats(&f, "left", DIMS(3, 5));
	fixture_node(&f, "Shape", "x", "shape");
	fixture_node(&f, "Gather", "shape,zero", "n");
	fixture_node(&f, "Concat", "n,rest", "target");
	fixture_int(&f, "axis", 0);
	fixture_node(&f, "Expand", "token,target", "tokens");
	fixture_node(&f, "Concat", "tokens,x", "c");
	fixture_int(&f, "axis", 1);
	fixture_node(&f, "Transpose", "c", "t");
	fixture_list(&f, "perm", DIMS(0, 2, 1));
	fixture_node(&f, "MatMul", "c,t", "s");
	fixture_node(&f, "Softmax", "s", "p");
	fixture_node(&f, "MatMul", "p,c", "m");
	fixture_node(&f, "MatMul", "left,m", "l");
	fixture_node(&f, "Flatten", "l", "y");
	fixture_output(&f, "y");
	two = fixture_logits(&f, 2, &count);
	assert_int_equal(count, 2 * 3 * 6);
	seven = fixture_logits(&f, 7, &count);
	for (int k = 0; k < 2 * 3 * 6; k++)
		assert_float_equal(two[k], seven[k], 1e-12);
	if (fixture_build(&f, 2, &graph, NULL, &err) != PRONY_OK ||
	    graph_add_backward(&graph, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	assert_int_equal(graph_parameter_count(&graph), 6 + 15);
	assert_int_equal(graph_macs(&graph), 2 * (5 * 5 * 6 * 2 + 3 * 5 * 6));
}

/* x * (1 + erf(x / sqrt(2))) * 0.5, in the orders that exporters write; `plus` is 1. */
static void erf_model(struct onnx_fixture *f, bool last, float plus)
{
	fixture_init(f, 17);
	fixture_input(f, "x", DIMS(0, 6));
	fixture_number(f, "root", last ? 1.41421356f : 0.70710678f);
	fixture_number(f, "one", plus);
	fixture_node(f, last ? "Div" : "Mul", "x,root", "d");
	fixture_node(f, "Erf", "d", "e");
	fixture_node(f, "Add", last ? "e,one" : "one,e", "a");
	fixture_number(f, "half", 0.5f);
	fixture_node(f, "Mul", last ? "x,a" : "a,half", "m");
	fixture_node(f, "Mul", last ? "m,half" : "x,m", "y");
	fixture_output(f, "y");
}

TEST(gelu_is_found)
{
	for (int last = 0; last < 2; last++) {
		SCOPED(onnx_fixture) f;
		SCOPED(onnx_fixture) other;
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;
		const double *y;
		int64_t count;

		erf_model(&f, last, 1);
		y = fixture_logits(&f, 2, &count);
		assert_int_equal(count, 12);
		for (int i = 0; i < 12; i++) {
			double x = x_at(i);

			assert_float_equal(y[i], (x * 0.5 * (1 + erf(x / sqrt(2)))), 1e-12);
		}
		assert_int_equal(fixture_build(&f, 2, &graph, NULL, &err), PRONY_OK);
		assert_int_equal(graph.forward_count, 2); /* Gelu, loss */
		assert_int_equal(graph.nodes[0].op, OP_GELU);
		erf_model(&other, last, 1.5f);
		fixture_logits(&other, 2, &count); /* x * (1.5 + erf(...)) * 0.5 is no Gelu */
	}
}

TEST(sums_over_the_batch_are_refused)
{
	SCOPED(onnx_fixture) f;

	fixture_init(&f, 12);
	fixture_input(&f, "x", DIMS(0, 6));
	fixture_node(&f, "ReduceSum", "x", "y");
	fixture_list(&f, "axes", DIMS(0));
	fixture_output(&f, "y");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "n.ReduceSum.0", "sums over the batch");
}

/* Rows of classes: the last dimension of a sequence, the channels of an image. */
TEST(outputs_with_several_places_are_rows_of_classes)
{
	static const struct {
		int rank;
		int64_t dims[4], rows, classes;
		double second;
	} cases[] = {
		{3, {0, 4, 6}, 8, 6, 2},
		{4, {0, 3, 2, 2}, 8, 3, 5},
		{4, {0, 1, 1, 6}, 2, 6, 2},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(onnx_fixture) f;
		int64_t count;
		const double *logits;

		fixture_init(&f, 17);
		fixture_input(&f, "x", cases[i].rank, cases[i].dims);
		fixture_node(&f, "Identity", "x", "same");
		fixture_node(&f, "Tanh", "same", "y");
		fixture_output(&f, "y");
		logits = fixture_logits(&f, 2, &count);
		assert_int_equal(count, cases[i].rows * cases[i].classes);
		assert_float_equal(logits[1], tanh((double)(float)sin(cases[i].second)), 1e-12);
	}
}

TEST(outputs_that_are_no_logits_are_refused)
{
	struct onnx_fixture f;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(2, 4));
	fixture_node(&f, "Transpose", "x", "t");
	fixture_node(&f, "Relu", "t", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "output 'y'", "4x2", "must be the batch");
	onnx_fixture_release(&f);
	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(1, 4));
	fixture_output(&f, "x");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "does not depend on an input");
	onnx_fixture_release(&f);
}

/* The import of an exported network gives the same network. */
TEST(the_zoo_comes_back)
{
	for (size_t i = 0; i < zoo_network_count; i++) {
		const struct network *network = zoo_networks[i];
		struct error err = ERROR_INIT;
		struct graph graph, back;
		struct onnx_model *model = NULL;
		SCOPED(arena) arena;
		struct tensor_set weights;
		void *bytes = NULL;
		size_t length = 0;

		/* Skips networks with another loss, and those too large for a quick test. */
		if (network->half_squares || network->parameters > 10000000)
			continue;
		arena_init(&arena, 0);
		check(zoo_build(network, 2, &graph, &err), &err);
		check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
		if (onnx_export(&graph, &weights, &bytes, &length, &err) != PRONY_OK ||
		    onnx_model_parse(bytes, length, network->name, NULL, &model, &err) != PRONY_OK)
			fail_msg("%s", err.text);
		const struct tensor_set *read = onnx_model_weights(model);

		if (onnx_model_import(model, &err) != PRONY_OK ||
		    onnx_model_graph(model, 3, &back, &err) != PRONY_OK)
			fail_msg("%s", err.text);
		assert_int_equal(graph_parameter_count(&back), network->parameters);
		assert_int_equal(graph_macs(&back), 3 * network->macs);
		assert_int_equal(read->count, weights.count);
		for (size_t k = 0; k < read->count; k++) {
			const struct tensor *same = tensor_find(&weights, read->tensors[k].name);

			/* ONNX's names of a recurrent layer's weights are others. */
			same = same ? same : &weights.tensors[k];
			assert_memory_equal(read->tensors[k].data, same->data,
					    (size_t)tensor_bytes(&read->tensors[k]));
		}
		graph_release(&back);
		onnx_model_free(model);
		graph_release(&graph);
		free(bytes);
	}
}
