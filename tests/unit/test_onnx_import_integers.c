/* Integer inputs of ONNX models: embeddings, masks and positions as exporters write them. */
#include <float.h>

#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"

#include "graph/batch.h"
#include "graph/input_fill.h"

enum { INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64, BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL };

/* Scores batch x 4 and a mask of the same shape; with `type`, the mask's. */
static void scores_and_mask(struct onnx_fixture *f, int32_t type)
{
	fixture_init(f, 17);
	fixture_input(f, "scores", DIMS(0, 4));
	fixture_input(f, "mask", DIMS(0, 4));
	fixture_input_type(f, type);
	fixture_number(f, "one", 1);
	fixture_number(f, "low", -FLT_MAX);
	fixture_number(f, "zero", 0);
}

/* The mask of the fixture is 0, 1, 0, 1: every other score is masked. */
static void expect_masked(struct onnx_fixture *f)
{
	int64_t count;
	const double *logits;

	fixture_output(f, "y");
	logits = fixture_logits(f, 2, &count);
	assert_int_equal(count, 8);
	for (int i = 0; i < 8; i++) {
		double score = (double)(float)sin(i + 1.0);

		if (i % 2 == 1)
			assert_float_equal(logits[i], score, 1e-12);
		else
			assert_true(logits[i] < -9e8 && isfinite(logits[i]));
	}
}

TEST(masks_are_added_to_scores)
{
	struct onnx_fixture f;

	/* bert before 2024: (1 - mask) * lowest */
	scores_and_mask(&f, INT64);
	fixture_node(&f, "Cast", "mask", "real");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
	fixture_node(&f, "Sub", "one,real", "not");
	fixture_node(&f, "Mul", "not,low", "add");
	fixture_node(&f, "Add", "scores,add", "y");
	expect_masked(&f);
	onnx_fixture_release(&f);
	/* Where of two numbers */
	scores_and_mask(&f, INT64);
	fixture_node(&f, "Cast", "mask", "is");
	fixture_int(&f, "to", BOOL);
	fixture_node(&f, "Where", "is,zero,low", "add");
	fixture_node(&f, "Add", "scores,add", "y");
	expect_masked(&f);
	onnx_fixture_release(&f);
	/* masked_fill of a boolean input */
	scores_and_mask(&f, BOOL);
	fixture_node(&f, "Where", "mask,scores,low", "y");
	expect_masked(&f);
	onnx_fixture_release(&f);
	scores_and_mask(&f, BOOL);
	fixture_node(&f, "Not", "mask", "not");
	fixture_node(&f, "Where", "not,low,scores", "y");
	expect_masked(&f);
	onnx_fixture_release(&f);
}

/* Where that keeps one operand or another is a sum of products. */
TEST(where_chooses)
{
	SCOPED(onnx_fixture) f;
	int64_t count;
	const double *logits;

	scores_and_mask(&f, BOOL);
	fixture_node(&f, "Neg", "scores", "n");
	fixture_node(&f, "Where", "mask,scores,n", "y");
	fixture_output(&f, "y");
	logits = fixture_logits(&f, 2, &count);
	for (int i = 0; i < 8; i++) {
		double score = i % 2 ? logits[i] : -logits[i];

		assert_float_equal(score, (double)(float)sin(i + 1.0), 1e-12);
	}
}

/* batch x 1 x 1 x 4 and a causal 4 x 4: the mask is a blend of two constants. */
TEST(a_padding_mask_joins_a_causal_one)
{
	SCOPED(onnx_fixture) f;
	int64_t count;
	const double *logits;

	fixture_init(&f, 17);
	fixture_input(&f, "scores", DIMS(0, 1, 4, 4));
	fixture_input(&f, "attention_mask", DIMS(0, 4));
	fixture_input_type(&f, INT64);
	fixture_number(&f, "zero", 0);
	fixture_number(&f, "low", -(float)INFINITY);
	fixture_ints(&f, "axes", 2, (const int64_t[]){1, 2});
	fixture_ints(&f, "square", 2, (const int64_t[]){4, 4});
	fixture_node(&f, "ConstantOfShape", "square", "ones");
	fixture_node(&f, "Cast", "attention_mask", "is");
	fixture_int(&f, "to", BOOL);
	fixture_node(&f, "Unsqueeze", "is,axes", "wide");
	fixture_ints(&f, "here", 4, (const int64_t[]){0, 1, 2, 3});
	fixture_ints(&f, "column", 2, (const int64_t[]){4, 1});
	fixture_node(&f, "Reshape", "here,column", "rows");
	fixture_node(&f, "LessOrEqual", "here,rows", "causal");
	fixture_node(&f, "And", "causal,wide", "seen");
	fixture_node(&f, "Where", "seen,zero,low", "add");
	fixture_node(&f, "Add", "scores,add", "m");
	fixture_ints(&f, "flat", 2, (const int64_t[]){-1, 16});
	fixture_node(&f, "Reshape", "m,flat", "y");
	fixture_output(&f, "y");
	logits = fixture_logits(&f, 2, &count);
	assert_int_equal(count, 32);
	for (int i = 0; i < 32; i++) {
		int row = i / 4 % 4, column = i % 4;

		/* The mask is 0, 1, 0, 1. */
		if (column <= row && column % 2 == 1)
			assert_float_equal(logits[i], (double)(float)sin(i + 1.0), 1e-12);
		else
			assert_true(logits[i] < -9e8 && isfinite(logits[i]));
	}
}

/* Sines of a time step, as diffusion models have them, are rows of a table. */
TEST(functions_of_a_time_step_are_a_table)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	struct graph graph;
	int64_t count;
	const double *logits;

	fixture_init(&f, 17);
	fixture_input(&f, "t", DIMS(0));
	fixture_input_type(&f, INT64);
	fixture_ints(&f, "axis", 1, (const int64_t[]){1});
	Onnx__TensorProto *speeds = fixture_floats(&f, "speeds", DIMS(1, 3));
	fixture_node(&f, "Unsqueeze", "t,axis", "u");
	fixture_node(&f, "Cast", "u", "real");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
	fixture_node(&f, "Mul", "real,speeds", "angle");
	fixture_node(&f, "Sin", "angle", "s");
	fixture_node(&f, "Cos", "angle", "c");
	fixture_node(&f, "Concat", "s,c", "both");
	fixture_int(&f, "axis", 1);
	fixture_node(&f, "Tanh", "both", "y");
	fixture_output(&f, "y");
	logits = fixture_logits(&f, 3, &count);
	assert_int_equal(count, 18);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			double angle = i * (double)speeds->float_data[k];

			assert_float_equal(logits[6 * i + k], tanh(sin(angle)), 1e-6);
			assert_float_equal(logits[6 * i + 3 + k], tanh(cos(angle)), 1e-6);
		}
	check(fixture_build(&f, 1, &graph, NULL, &err), &err);
	assert_int_equal(graph_index_bound(&graph, graph_input(&graph, 0)), 1000);
	graph_release(&graph);
}

/* A language model: the table of words is read by Gather and, transposed, by MatMul; positions are
 * the first rows of theirs. */
static void language_model(struct onnx_fixture *f, const char *positions)
{
	char gather[32];

	fixture_init(f, 17);
	fixture_input(f, "ids", DIMS(0, 3));
	fixture_input_type(f, INT64);
	fixture_floats(f, "words", DIMS(7, 5));
	fixture_floats(f, "places", DIMS(8, 5));
	fixture_ints(f, "first", 3, (const int64_t[]){0, 1, 2});
	fixture_ints(f, "mixed", 3, (const int64_t[]){4, -1, 4});
	snprintf(gather, sizeof(gather), "places,%s", positions);
	fixture_node(f, "Gather", "words,ids", "w");
	fixture_node(f, "Gather", gather, "p");
	fixture_node(f, "Add", "w,p", "x");
	fixture_node(f, "Transpose", "words", "t");
	fixture_node(f, "MatMul", "x,t", "y");
	fixture_output(f, "y");
}

TEST(tied_tables_stay_one_parameter)
{
	static const char *const positions[] = {"first", "mixed"};
	static const int rows[2][3] = {{0, 1, 2}, {4, 7, 4}};

	for (int c = 0; c < 2; c++) {
		SCOPED(onnx_fixture) f;
		struct error err = ERROR_INIT;
		struct graph graph;
		int64_t count;
		const double *logits;

		language_model(&f, positions[c]);
		logits = fixture_logits(&f, 2, &count);
		assert_int_equal(count, 2 * 3 * 7);
		for (int i = 0; i < 6; i++) {
			double sum = 0;

			for (int k = 0; k < 5; k++) {
				float word = 0.01F * (float)(i * 5 + k + 1);
				float place = 0.01F * (float)(rows[c][i % 3] * 5 + k + 1);

				sum += ((double)word + (double)place) *
				       (double)(0.01F * (float)(k + 1));
			}
			assert_float_equal(logits[7 * i], sum, 1e-6);
		}
		check(fixture_build(&f, 2, &graph, NULL, &err), &err);
		assert_int_equal(graph_parameter_count(&graph), 7 * 5 + 8 * 5);
		check(graph_add_backward(&graph, &err), &err);
		assert_true(graph.values[graph_find_value(&graph, "places")].gradient >= 0);
		graph_release(&graph);
	}
}

TEST(what_no_table_can_hold_is_refused)
{
	SCOPED(onnx_fixture) f;

	language_model(&f, "first");
	fixture_node(&f, "Mul", "ids,ids", "squares");
	fixture_node(&f, "Gather", "words,squares", "z");
	f.graph.n_output = 0;
	fixture_output(&f, "z");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "n.Gather.6", "its indices must be an input");
}

/* Types, shapes and operators are named in one message. */
TEST(all_that_is_missing_is_named_at_once)
{
	SCOPED(onnx_fixture) f;

	fixture_init(&f, 17);
	fixture_input(&f, "text", DIMS(0, 0));
	fixture_input_type(&f, ONNX__TENSOR_PROTO__DATA_TYPE__STRING);
	fixture_input(&f, "ids", DIMS(0, 0));
	fixture_input_type(&f, INT64);
	fixture_node(&f, "Tokenize", "text,ids", "a");
	fixture_node(&f, "Softplus", "a", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 2, PRONY_UNSUPPORTED, "'text' has the element type string",
		"dimension 1 of its input 'ids' is not fixed", "Tokenize ('n.Tokenize.0')",
		"Softplus ('n.Softplus.1')");
}

/* Real numbers of any type are read as float. */
TEST(half_precision_is_read)
{
	SCOPED(onnx_fixture) f;
	int64_t count;

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(0, 4));
	fixture_input_type(&f, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16);
	fixture_node(&f, "Cast", "x", "c");
	fixture_int(&f, "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16);
	fixture_node(&f, "Tanh", "c", "y");
	fixture_output(&f, "y");
	assert_float_equal(fixture_logits(&f, 2, &count)[0], tanh((double)(float)sin(1)), 1e-12);
}

/* Positions that are counted from a mask depend on several of its integers; a mask is all ones. */
TEST(an_input_that_no_table_can_hold_is_a_constant)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	struct onnx_notes notes;
	struct graph graph;
	int64_t count;

	fixture_init(&f, 17);
	fixture_input(&f, "ids", DIMS(0, 3));
	fixture_input_type(&f, INT64);
	fixture_input(&f, "attention_mask", DIMS(0, 3));
	fixture_input_type(&f, INT64);
	fixture_floats(&f, "words", DIMS(7, 5));
	fixture_floats(&f, "places", DIMS(9, 5));
	fixture_ints(&f, "along", 1, (const int64_t[]){1});
	fixture_node(&f, "CumSum", "attention_mask,along", "count");
	fixture_node(&f, "Gather", "places,count", "p");
	fixture_node(&f, "Gather", "words,ids", "w");
	fixture_node(&f, "Add", "w,p", "y");
	fixture_output(&f, "y");
	fixture_logits(&f, 2, &count);
	check(fixture_build(&f, 2, &graph, &notes, &err), &err);
	assert_int_equal(graph_inputs(&graph, NULL, 0), 1);
	assert_true(graph_find_value(&graph, "places") >= 0);
	graph_release(&graph);
}

static void expect_fill(const char *text, enum dtype dtype, const double *expected)
{
	SCOPED(arena) arena;
	struct error err = ERROR_INIT;
	struct input_fill fill;
	struct tensor x;
	struct shape shape = {.rank = 2, .dims = {2, 3}};

	arena_init(&arena, 0);
	check(input_fill_parse(text, &fill, &err), &err);
	check(tensor_new(&arena, "x", dtype, &shape, &x, &err), &err);
	check(input_fill_apply(&fill, &x, 0, 1, "s", &err), &err);
	for (int i = 0; i < 6; i++) {
		double got = dtype == DTYPE_F32	  ? (double)((float *)x.data)[i]
			     : dtype == DTYPE_I64 ? (double)((int64_t *)x.data)[i]
						  : (double)((uint16_t *)x.data)[i];

		if (got != expected[i])
			fail_msg("%s, element %d: %g instead of %g", text, i, got, expected[i]);
	}
}

TEST(inputs_are_filled_as_asked)
{
	char npy[] = "\x93NUMPY\x01\0\x44\0{'descr': '<i4', 'fortran_order': False, "
		     "'shape': (3,), }          \n\x05\0\0\0\xff\xff\xff\xff\x07\0\0";
	struct error err = ERROR_INIT;
	struct input_fill fill;
	struct tensor x = {.name = "ids", .dtype = DTYPE_I64, .shape = {.rank = 1, .dims = {1}}};
	int64_t seven = 7, numbers[3];
	struct tensor three = {.name = "ids",
			       .dtype = DTYPE_I64,
			       .shape = {.rank = 1, .dims = {3}},
			       .data = numbers};
	char path[] = "/tmp/prony-fill-XXXXXX.npy";
	int fd = mkstemps(path, 4);

	assert_true(fd >= 0 && write(fd, npy, sizeof(npy)) == (ssize_t)sizeof(npy));
	close(fd);
	expect_fill("ones", DTYPE_F32, (const double[]){1, 1, 1, 1, 1, 1});
	expect_fill("zeros", DTYPE_I64, (const double[]){0, 0, 0, 0, 0, 0});
	expect_fill("positions", DTYPE_I64, (const double[]){0, 1, 2, 0, 1, 2});
	expect_fill("4..4", DTYPE_I64, (const double[]){4, 4, 4, 4, 4, 4});
	expect_fill("3..3", DTYPE_F16,
		    (const double[]){0x4200, 0x4200, 0x4200, 0x4200, 0x4200, 0x4200});
	expect_fill(path, DTYPE_I64, (const double[]){5, -1, 7, 5, -1, 7});
	/* As floats, the bytes of 5 are no integer. */
	strstr(npy + 10, "<i4")[1] = 'f';
	check(file_write_atomic(path, npy, sizeof(npy), &err), &err);
	check(input_fill_parse(path, &fill, &err), &err);
	expect_error(input_fill_apply(&fill, &three, 0, 1, "s", &err), PRONY_BAD_INPUT, &err,
		     "the input takes integers (I64)");
	unlink(path);
	assert_int_equal(input_fill_parse("3..1", &fill, NULL), PRONY_USAGE);
	assert_int_equal(input_fill_parse("-9223372036854775808..5", &fill, NULL), PRONY_USAGE);
	assert_int_equal(input_fill_parse("some", &fill, NULL), PRONY_USAGE);
	check(input_fill_parse("7..7", &fill, &err), &err);
	x.data = &seven;
	assert_int_equal(input_fill_apply(&fill, &x, 7, 1, "s", &err), PRONY_BAD_INPUT);
	assert_non_null(strstr(err.text, "the input takes 0 to 6"));
	assert_int_equal(input_fill_by_name("token_type_ids").kind, INPUT_ZEROS);
	assert_int_equal(input_fill_by_name("position_ids").kind, INPUT_POSITIONS);
}
