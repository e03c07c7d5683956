/* ONNX files that are expensive to decode, and numbers that no network has. */
#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"

/* Field numbers of ModelProto and GraphProto, with wire type 2 (length-delimited). */
enum { TAG_GRAPH = 7 << 3 | 2, TAG_NODE = 1 << 3 | 2, TAG_UNKNOWN = 14 << 3 | 2 };

static enum prony_status parse(const uint8_t *bytes, size_t length, struct error *err)
{
	struct onnx_model *model = NULL;
	enum prony_status status = onnx_model_parse(bytes, length, "model.onnx", NULL, &model, err);

	onnx_model_free(model);
	return status;
}

static void expect(const uint8_t *bytes, size_t length, const char *part)
{
	struct error err = ERROR_INIT;

	expect_error(parse(bytes, length, &err), PRONY_BAD_INPUT, &err, part);
}

/* Returns the tag and a length of 0, repeated `count` times; `inside` puts them into a graph. */
static uint8_t *empty_fields(uint8_t tag, size_t count, bool inside, size_t *length)
{
	size_t body = 2 * count, head = inside ? 6 : 0;
	uint8_t *bytes = memory_alloc(head + body);

	for (size_t i = 0; i < count; i++) {
		bytes[head + 2 * i] = tag;
		bytes[head + 2 * i + 1] = 0;
	}
	if (inside) {
		bytes[0] = TAG_GRAPH;
		for (int i = 0; i < 5; i++)
			bytes[1 + i] = (uint8_t)((body >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
	}
	*length = head + body;
	return bytes;
}

/* protobuf-c merges repeated graphs: 2 million of them in a file of 4 MB would take hours. */
TEST(a_graph_stands_once)
{
	size_t length;
	uint8_t *bytes = empty_fields(TAG_GRAPH, 2, false, &length);

	expect(bytes, length, "the field 'graph' occurs more than once in a ModelProto");
	free(bytes);
	bytes = empty_fields(TAG_GRAPH, 2000000, false, &length);
	expect(bytes, length, "'graph' occurs more than once");
	free(bytes);
}

TEST(a_pointer_is_not_the_model)
{
	const char text[] =
		"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";

	expect((const uint8_t *)text, sizeof(text) - 1, "get the file with git lfs pull");
}

/* 10 MB of empty nodes or of unknown fields. */
TEST(messages_are_counted_first)
{
	static const struct {
		uint8_t tag;
		bool inside;
	} rows[] = {{TAG_NODE, true}, {TAG_UNKNOWN, true}, {TAG_UNKNOWN, false}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t length;
		uint8_t *bytes = empty_fields(rows[i].tag, 5000000, rows[i].inside, &length);

		expect(bytes, length, "needs more than 256 MiB");
		free(bytes);
	}
}

TEST(damage_is_damage)
{
	static const struct {
		uint8_t bytes[12];
		size_t length;
	} rows[] = {
		{{TAG_GRAPH, 5, 0}, 3}, /* longer than the file */
		{{TAG_GRAPH}, 1},	/* no length */
		{{TAG_GRAPH, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 12},
		{{1 << 3 | 3}, 1},		  /* a group */
		{{1 << 3 | 1, 1, 2, 3}, 4},	  /* an 8-byte number */
		{{TAG_GRAPH, 2, TAG_NODE, 4}, 4}, /* a node longer than its graph */
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		expect(rows[i].bytes, rows[i].length, "truncated or damaged");
}

/* x (1 x 4) times w (4 x 3), scaled by batch normalisation, then Clip. */
static void small_model(struct onnx_fixture *f)
{
	static const char *const vectors[] = {"scale", "bias", "mean", "variance"};

	fixture_init(f, 17);
	fixture_input(f, "x", DIMS(1, 4));
	fixture_floats(f, "w", DIMS(4, 3));
	for (size_t i = 0; i < 4; i++)
		fixture_floats(f, vectors[i], DIMS(3));
	fixture_number(f, "low", -INFINITY);
	fixture_number(f, "high", INFINITY);
	fixture_node(f, "MatMul", "x,w", "h");
	fixture_node(f, "BatchNormalization", "h,scale,bias,mean,variance", "n");
	fixture_node(f, "Clip", "n,low,high", "y");
	fixture_output(f, "y");
}

TEST(bounds_may_be_infinite)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;

	small_model(&f);
	check(fixture_build(&f, 1, &graph, NULL, &err), &err);
}

TEST(weights_are_finite)
{
	static const struct {
		int tensor, element;
		float value;
		const char *name, *what;
	} rows[] = {
		{0, 7, NAN, "NaN in its", "(tensor 'w', element 7 of 12)"},
		{0, 0, -INFINITY, "infinity in its", "(tensor 'w', element 0 of 12)"},
		{1, 2, INFINITY, "infinity in its", "(tensor 'scale', element 2 of 3)"},
		{3, 1, NAN, "NaN in its mean", "(tensor 'mean'"},
		{4, 1, -0.5f, "variance", "negative (element 1 is -0.5)"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(onnx_fixture) f;

		small_model(&f);
		f.initializers[rows[i].tensor]->float_data[rows[i].element] = rows[i].value;
		REFUSED(&f, 1, PRONY_UNSUPPORTED, rows[i].name, rows[i].what);
	}
}

/* A double that exceeds the range of a float, and one that is computed. */
TEST(numbers_that_become_infinite)
{
	struct onnx_fixture f;
	double wide[12] = {1, 2, 1e300};

	small_model(&f);
	f.initializers[0]->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
	f.initializers[0]->n_float_data = 0;
	f.initializers[0]->n_double_data = 12;
	f.initializers[0]->double_data = wide;
	REFUSED(&f, 1, PRONY_UNSUPPORTED, "infinity in its", "(tensor 'w', element 2 of 12)");
	onnx_fixture_release(&f);

	fixture_init(&f, 17);
	fixture_input(&f, "x", DIMS(1, 4));
	fixture_floats(&f, "w", DIMS(4, 3));
	fixture_number(&f, "zero", 0);
	fixture_node(&f, "Div", "w,zero", "v");
	fixture_node(&f, "MatMul", "x,v", "y");
	fixture_output(&f, "y");
	REFUSED(&f, 1, PRONY_UNSUPPORTED, "n.MatMul.1", "infinity");
	onnx_fixture_release(&f);
}

/* Raw data is borrowed from the file's bytes at any alignment, and read unchanged. */
TEST(raw_data_stays_in_the_file)
{
	static const char *const names[] = {"w", "wx", "wxy", "wxyz"};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct error err = ERROR_INIT;
		struct onnx_model *model = NULL;
		SCOPED(onnx_fixture) f;
		float numbers[64], two[2] = {1, 2};
		char inputs[16];

		for (int k = 0; k < 64; k++)
			numbers[k] = (float)k - 31.5f;
		fixture_init(&f, 17);
		fixture_input(&f, "x", DIMS(1, 32));
		for (int large = 0; large < 2; large++) {
			Onnx__TensorProto *tensor =
				large ? fixture_floats(&f, names[i], DIMS(32, 2))
				      : fixture_floats(&f, "small", DIMS(2));

			tensor->n_float_data = 0;
			tensor->has_raw_data = true;
			tensor->raw_data.len = large ? sizeof(numbers) : sizeof(two);
			tensor->raw_data.data = large ? (uint8_t *)numbers : (uint8_t *)two;
		}
		snprintf(inputs, sizeof(inputs), "x,%s,small", names[i]);
		fixture_node(&f, "Gemm", inputs, "y");
		fixture_output(&f, "y");
		if (fixture_parse(&f, &model, &err) != PRONY_OK ||
		    onnx_model_import(model, &err) != PRONY_OK)
			fail_msg("%s", err.text);
		const struct tensor_set *weights = onnx_model_weights(model);

		assert_int_equal(weights->count, 2);
		assert_int_equal((uintptr_t)weights->tensors[0].data % _Alignof(float), 0);
		assert_memory_equal(weights->tensors[0].data, numbers, sizeof(numbers));
		assert_memory_equal(weights->tensors[1].data, two, sizeof(two));
		onnx_model_free(model);
	}
}
