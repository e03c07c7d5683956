/* Broken and hostile ONNX files: each gives one clear error that names the file, and the node if
 * there is one. */
#include "tests/fuzz/seed_corpus.h"
#include "tests/unit/onnx_fixture.h"
#include "unit_test.h"

/* Parsing or building returns this status, with a message that contains all parts. */
static void expect(struct onnx_fixture *f, enum prony_status expected, const char *const *parts,
		   size_t count)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	enum prony_status status = fixture_build(f, 1, &graph, NULL, &err);

	if (status == PRONY_OK)
		graph_release(&graph);
	if (status != expected)
		fail_msg("status %d instead of %d: %s", status, expected, err.text);
	assert_memory_equal(err.text, "model.onnx: ", 12);
	for (size_t i = 0; i < count; i++) {
		if (strstr(err.text, parts[i]) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.text, parts[i]);
	}
}
#define EXPECT(f, status, ...)                                                                     \
	expect(f, status, (const char *const[]){__VA_ARGS__},                                      \
	       COUNT(((const char *const[]){__VA_ARGS__})))

/* x (1 x 4) times w (4 x 3), then Relu. */
static void small_model(struct onnx_fixture *f)
{
	fixture_init(f, 17);
	fixture_input(f, "x", DIMS(1, 4));
	fixture_floats(f, "w", DIMS(4, 3));
	fixture_node(f, "MatMul", "x,w", "h");
	fixture_node(f, "Relu", "h", "y");
	fixture_output(f, "y");
}

TEST(files_that_are_cut_off_are_refused)
{
	SCOPED(onnx_fixture) f;
	const uint8_t *bytes;
	size_t length;
	int refused = 0;

	small_model(&f);
	bytes = fixture_pack(&f, &length);
	for (size_t i = 0; i < length; i++) {
		struct error err = ERROR_INIT;
		struct onnx_model *model = NULL;
		/* A buffer of the exact size, so that a sanitizer sees a read past the end. */
		uint8_t *part = malloc(i > 0 ? i : 1);

		memcpy(part, bytes, i);
		if (onnx_model_parse(part, i, "model.onnx", NULL, &model, &err) != PRONY_OK) {
			refused++;
			assert_memory_equal(err.text, "model.onnx: ", 12);
		}
		onnx_model_free(model);
		free(part);
	}
	assert_int_equal(refused, length);
}

TEST(wiring_that_is_wrong_is_named)
{
	SCOPED(onnx_fixture) f;

	small_model(&f);
	f.nodes[0]->input[0] = arena_strdup(&f.arena, "y");
	EXPECT(&f, PRONY_BAD_INPUT, "node 'n.MatMul.0' (MatMul) uses 'y'", "'n.Relu.1'", "cycle");
	f.nodes[0]->input[0] = arena_strdup(&f.arena, "h");
	EXPECT(&f, PRONY_BAD_INPUT, "node 'n.MatMul.0' (MatMul) uses 'h'", "cycle");
	f.nodes[0]->input[0] = arena_strdup(&f.arena, "ghost");
	EXPECT(&f, PRONY_BAD_INPUT, "node 'n.MatMul.0' (MatMul) uses 'ghost', which no node");
	f.nodes[0]->input[0] = arena_strdup(&f.arena, "x");
	f.nodes[0]->output[0] = arena_strdup(&f.arena, "w");
	EXPECT(&f, PRONY_BAD_INPUT, "have the name 'w'");
	f.nodes[0]->output[0] = arena_strdup(&f.arena, "h");
	f.outputs[0]->name = arena_strdup(&f.arena, "z");
	EXPECT(&f, PRONY_BAD_INPUT, "no node computes its output 'z'");
	f.outputs[0]->name = arena_strdup(&f.arena, "w");
	EXPECT(&f, PRONY_BAD_INPUT, "does not depend on any input");
	f.graph.n_output = 0;
	EXPECT(&f, PRONY_BAD_INPUT, "has no output");
}

/*
 * Duplicate node names, and names that are not text, are no error: the graph makes its own names.
 */
TEST(odd_names_get_others)
{
	SCOPED(onnx_fixture) f;
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	char *letters;

	small_model(&f);
	letters = arena_alloc(&f.arena, 1000);
	memset(letters, 'n', 999);
	fixture_node(&f, "Neg", "y", "z");
	fixture_node(&f, "Neg", "z", "last");
	f.nodes[0]->name = arena_strdup(&f.arena, "same");
	f.nodes[1]->name = arena_strdup(&f.arena, "same");
	f.nodes[2]->name = arena_strdup(&f.arena, "\xff\x01");
	f.nodes[3]->name = letters;
	f.initializers[0]->name = arena_strdup(&f.arena, "loss");
	f.nodes[0]->input[1] = arena_strdup(&f.arena, "loss");
	f.outputs[0]->name = arena_strdup(&f.arena, "last");
	check(fixture_build(&f, 1, &graph, NULL, &err), &err);
	assert_string_equal(graph.nodes[0].name, "same");
	assert_string_equal(graph.nodes[1].name, "same.n1.0");
	assert_string_equal(graph.nodes[2].name, "node.2");
	assert_string_equal(graph.nodes[3].name, "node.3");
}

TEST(inputs_that_are_wrong_are_refused)
{
	static const struct {
		int rank;
		int64_t dims[6];
		enum prony_status status;
		const char *says;
	} rows[] = {
		{2, {1, -4}, PRONY_BAD_INPUT, "dimension 1 of its input 'x' is -4"},
		{2, {INT64_MAX, 4}, PRONY_BAD_INPUT, "dimension 0 of its input 'x'"},
		{2, {1, INT64_MAX}, PRONY_BAD_INPUT, "dimension 1 of its input 'x'"},
		{5,
		 {1, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX},
		 PRONY_BAD_INPUT,
		 "is too large"},
		{4, {1, 3, 0, 4}, PRONY_UNSUPPORTED, "is not fixed"},
		{0, {0}, PRONY_UNSUPPORTED, "has 0 dimensions"},
		{6, {1, 1, 1, 1, 1, 1}, PRONY_UNSUPPORTED, "has 6 dimensions"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(onnx_fixture) f;

		fixture_init(&f, 17);
		fixture_input(&f, "x", rows[i].rank, rows[i].dims);
		fixture_node(&f, "Flatten", "x", "y");
		fixture_output(&f, "y");
		EXPECT(&f, rows[i].status, rows[i].says);
	}
}

TEST(other_opsets_and_unlike_batches_are_unsupported)
{
	struct onnx_fixture f;

	small_model(&f);
	f.opset.version = 6;
	EXPECT(&f, PRONY_UNSUPPORTED, "opset 6", "7 to 24");
	f.opset.version = 25;
	EXPECT(&f, PRONY_UNSUPPORTED, "opset 25", "7 to 24");
	f.model.n_opset_import = 0;
	EXPECT(&f, PRONY_UNSUPPORTED, "opset 0");
	onnx_fixture_release(&f);
	small_model(&f);
	fixture_input(&f, "x2", DIMS(7, 3));
	fixture_node(&f, "Add", "y,x2", "z");
	f.outputs[0]->name = arena_strdup(&f.arena, "z");
	EXPECT(&f, PRONY_UNSUPPORTED, "its input 'x2' has another batch");
	onnx_fixture_release(&f);
}

TEST(tensors_that_lie_are_refused)
{
	SCOPED(onnx_fixture) f;

	small_model(&f);
	f.initializers[0]->dims[0] = 5;
	EXPECT(&f, PRONY_BAD_INPUT, "tensor 'w' has 12 numbers, but its shape needs 15");
	f.initializers[0]->dims[0] = -4;
	EXPECT(&f, PRONY_BAD_INPUT, "tensor 'w'", "negative");
	f.initializers[0]->dims[0] = INT64_C(1) << 62;
	EXPECT(&f, PRONY_BAD_INPUT, "tensor 'w'", "overflows");
	f.initializers[0]->dims[0] = 4;
	f.initializers[0]->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
	EXPECT(&f, PRONY_UNSUPPORTED, "'w'");
	f.initializers[0]->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
	EXPECT(&f, PRONY_BAD_INPUT, "tensor 'w' has 0 numbers");
	f.initializers[0]->has_raw_data = true;
	f.initializers[0]->raw_data.len = 7;
	f.initializers[0]->raw_data.data = (uint8_t *)arena_alloc(&f.arena, 8);
	EXPECT(&f, PRONY_BAD_INPUT, "tensor 'w' has 7 bytes, but its shape needs 96");
}

/* Constants that would use all memory, and arithmetic that overflows. */
TEST(bombs_do_not_go_off)
{
	static const struct {
		const char *op, *inputs, *says;
	} rows[] = {
		{"ConstantOfShape", "big", "n.ConstantOfShape.0"},
		{"Range", "zero,most,one", "its range has more than"},
		{"Add", "most,one", "overflow"},
		{"Mul", "most,most", "overflow"},
		{"Div", "one,zero", "division by zero"},
		{"Expand", "most,big", "n.Expand.0"},
		{"Gather", "one,most", "is outside"},
		{"Slice", "one,zero,one,most", "axis 9223372036854775807"},
		{"Reshape", "one,most", "shape 1 cannot be reshaped"},
		{"Concat", "one,zero", "axis 7"},
		{"Unsqueeze", "one,many", "n.Unsqueeze.0"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		SCOPED(onnx_fixture) f;

		fixture_init(&f, 17);
		fixture_input(&f, "x", DIMS(1, 4));
		fixture_ints(&f, "zero", 1, (const int64_t[]){0});
		fixture_ints(&f, "one", 1, (const int64_t[]){1});
		fixture_ints(&f, "most", 1, (const int64_t[]){INT64_MAX});
		fixture_ints(&f, "big", 3, (const int64_t[]){1 << 20, 1 << 20, 1 << 20});
		fixture_ints(&f, "many", 9, (const int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8});
		fixture_node(&f, rows[i].op, rows[i].inputs, "c");
		if (strcmp(rows[i].op, "Concat") == 0)
			fixture_int(&f, "axis", 7);
		fixture_node(&f, "Reshape", "x,c", "y");
		fixture_output(&f, "y");
		EXPECT(&f, PRONY_UNSUPPORTED, rows[i].says);
	}
}

/* Attributes that would overflow in shape arithmetic. */
TEST(windows_that_are_wrong_name_their_node)
{
	static const char *const names[] = {"strides", "dilations", "kernel_shape"};
	static const int64_t bad[] = {0, -1, INT64_MAX, INT64_MIN};

	for (size_t i = 0; i < COUNT(names) * COUNT(bad) * 2; i++) {
		SCOPED(onnx_fixture) f;
		int64_t value = bad[i / 2 % COUNT(bad)];

		fixture_init(&f, 17);
		fixture_input(&f, "x", DIMS(1, 2, 5, 5));
		fixture_floats(&f, "w", DIMS(2, 2, 3, 3));
		fixture_node(&f, "Conv", "x,w", "c");
		fixture_list(&f, names[i / 2 / COUNT(bad)], DIMS(value, 1));
		if (i % 2)
			fixture_text(&f, "auto_pad", "SAME_UPPER");
		fixture_node(&f, "Flatten", "c", "y");
		fixture_output(&f, "y");
		EXPECT(&f, PRONY_UNSUPPORTED, "node 'n.Conv.0' (Conv): ");
	}
}

/* A model on disk with its weights in a separate file. */
struct outside {
	struct onnx_fixture f;
	char *folder, *inner, *model, *weights, *secret;
	Onnx__StringStringEntryProto entries[3], *list[3];
};

static void write_file(const char *path, const void *bytes, size_t length)
{
	struct error err = ERROR_INIT;

	check(file_write_atomic(path, bytes, length, &err), &err);
}

static void outside_init(struct outside *o)
{
	static const char *const keys[] = {"location", "offset", "length"};
	struct error err = ERROR_INIT;
	Onnx__TensorProto *w;
	float numbers[14];

	for (int i = 0; i < 14; i++)
		numbers[i] = (float)i;
	small_model(&o->f);
	check(directory_make_temporary("onnx", &o->folder, &err), &err);
	o->inner = path_join(o->folder, "models");
	check(directory_make(o->inner, &err), &err);
	o->model = path_join(o->inner, "model.onnx");
	o->weights = path_join(o->inner, "weights.bin");
	o->secret = path_join(o->folder, "secret");
	write_file(o->weights, numbers, sizeof(numbers));
	write_file(o->secret, numbers, sizeof(numbers));
	w = o->f.initializers[0];
	w->n_float_data = 0;
	w->has_data_location = true;
	w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	w->n_external_data = 3;
	w->external_data = o->list;
	for (int i = 0; i < 3; i++) {
		onnx__string_string_entry_proto__init(&o->entries[i]);
		o->entries[i].key = arena_strdup(&o->f.arena, keys[i]);
		o->list[i] = &o->entries[i];
	}
}

static void outside_release(struct outside *o)
{
	struct error err = ERROR_INIT;

	directory_remove(o->folder, &err);
	free(o->folder);
	free(o->inner);
	free(o->model);
	free(o->weights);
	free(o->secret);
	onnx_fixture_release(&o->f);
}

static enum prony_status outside_open(struct outside *o, const char *location, const char *offset,
				      const char *length, struct onnx_model **model,
				      struct error *err)
{
	const char *values[] = {location, offset, length};
	const uint8_t *bytes;
	size_t size;

	for (int i = 0; i < 3; i++)
		o->entries[i].value = arena_strdup(&o->f.arena, values[i]);
	bytes = fixture_pack(&o->f, &size);
	write_file(o->model, bytes, size);
	*model = NULL;
	return onnx_model_open(o->model, NULL, model, err);
}

TEST(external_data_is_read_beside_the_model)
{
	SCOPED(outside) o;
	struct error err = ERROR_INIT;
	struct onnx_model *model;
	const struct tensor_set *weights;
	char digest[65];

	outside_init(&o);
	if (outside_open(&o, "weights.bin", "8", "48", &model, &err) != PRONY_OK ||
	    onnx_model_import(model, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	weights = onnx_model_weights(model);
	assert_int_equal(weights->count, 1);
	for (int i = 0; i < 12; i++)
		assert_float_equal(((const float *)weights->tensors[0].data)[i], i + 2, 0);
	memcpy(digest, onnx_model_facts(model)->digest, sizeof(digest));
	onnx_model_free(model);
	/* Different weights make a different model, even if the file is the same. */
	write_file(o.weights, "0123456789012345678901234567890123456789012345678901234567890", 60);
	check(outside_open(&o, "weights.bin", "8", "48", &model, &err), &err);
	assert_string_not_equal(digest, onnx_model_facts(model)->digest);
	onnx_model_free(model);
}

TEST(external_data_outside_the_folder_is_refused)
{
	SCOPED(outside) o;
	const char *rows[][4] = {
		{"../secret", "0", "48", "outside the model's folder"},
		{"/etc/passwd", "0", "48", "outside the model's folder"},
		{"sub/../../secret", "0", "48", "outside the model's folder"},
		{"link", "0", "48", "is a link to a file outside"},
		{"links/secret", "0", "48", "is a link to a file outside"},
		{".", "0", "48", "is a link to a file outside"},
		{"pipe", "0", "48", "the file or the range is too short"},
		{"nothing", "0", "48", "No such file"},
		{"", "0", "48", "no location"},
		{"weights.bin", "9", "48", "48 bytes from byte 9"},
		{"weights.bin", "0", "47", "48 bytes from byte 0"},
		{"weights.bin", "-1", "48", "offset '-1'"},
		{"weights.bin", "99999999999999999999", "48", "offset '9999"},
		{"weights.bin", "9223372036854775807", "48", "the file or the range is too short"},
		{"weights.bin", "x", "48", "offset 'x'"},
	};

	outside_init(&o);
	char *link = test_keep(path_join(o.inner, "link")),
	     *links = test_keep(path_join(o.inner, "links"));
	char *pipe = test_keep(path_join(o.inner, "pipe"));

	assert_int_equal(symlink("../secret", link), 0);
	assert_int_equal(symlink("..", links), 0);
	assert_int_equal(directory_make(pipe, NULL), PRONY_OK);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct error err = ERROR_INIT;
		struct onnx_model *model;

		if (outside_open(&o, rows[i][0], rows[i][1], rows[i][2], &model, &err) !=
		    PRONY_BAD_INPUT)
			fail_msg("'%s' is not refused: %s", rows[i][0], err.text);
		if (strstr(err.text, rows[i][3]) == NULL || strstr(err.text, "'w'") == NULL ||
		    strstr(err.text, "model.onnx: ") == NULL)
			fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i][3]);
	}
}

/* Many tensors may share the bytes of one sparse file: the total is checked before any is read. */
TEST(external_data_has_a_total)
{
	SCOPED(outside) o;
	struct error err = ERROR_INIT;
	struct onnx_model *model;
	int64_t rows = memory_physical_bytes() / 12 / 10 * 3;
	Onnx__TensorProto *v;

	outside_init(&o);
	v = fixture_floats(&o.f, "v", DIMS(4, 3));
	*v = *o.f.initializers[0];
	v->name = arena_strdup(&o.f.arena, "v");
	v->dims = arena_array(&o.f.arena, 2, sizeof(*v->dims));
	v->dims[0] = rows;
	v->dims[1] = 3;
	o.f.initializers[0]->dims[0] = rows;
	fixture_node(&o.f, "MatMul", "x,v", "z");
	fixture_node(&o.f, "Add", "y,z", "sum");
	o.f.outputs[0]->name = arena_strdup(&o.f.arena, "sum");
	assert_int_equal(outside_open(&o, "weights.bin", "0", "0", &model, &err), PRONY_BAD_INPUT);
	if (!strstr(err.text, "external data exceeds") || !strstr(err.text, "at tensor '"))
		fail_msg("%s", err.text);
}

TEST(the_seed_corpus_runs)
{
	assert_true(corpus_run("onnx", NULL) >= 30);
}
