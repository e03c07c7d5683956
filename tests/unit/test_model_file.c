/* A model file run unchanged: its inputs and outputs, its bundle, and the comparison of two
 * engines. */
#include "bundle/bundle.h"
#include "onnx/onnx.h"
#include "onnx/ports.h"
#include "parity/agreement.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* LeNet as prony exports it: one input of 4 x 1 x 28 x 28. */
static void export_lenet(struct arena *arena, void **bytes, size_t *length)
{
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	SCOPED(graph) graph;

	check(zoo_build(zoo_find("lenet", NULL), 4, &graph, &err), &err);
	check(graph_initial_weights(&graph, 1, arena, &weights, &err), &err);
	check(onnx_export(&graph, &weights, bytes, length, &err), &err);
}

TEST(ports_of_a_file)
{
	struct error err = ERROR_INIT;
	struct onnx_ports ports;
	struct tensor_set inputs;
	SCOPED(arena) arena;
	void *bytes = NULL;
	size_t length = 0;

	arena_init(&arena, 0);
	export_lenet(&arena, &bytes, &length);
	check(onnx_ports_read(bytes, length, NULL, &arena, &ports, &err), &err);
	/* Weights are not inputs. */
	assert_int_equal(ports.inputs.count, 1);
	assert_string_equal(ports.inputs.tensors[0].name, "input");
	assert_int_equal(ports.outputs.count, 1);
	/* The file fixes the batch. */
	check(onnx_ports_inputs(&ports, 4, &arena, &inputs, &err), &err);
	assert_int_equal(inputs.tensors[0].shape.dims[0], 4);
	expect_error(onnx_ports_inputs(&ports, 3, &arena, &inputs, &err), PRONY_UNSUPPORTED, &err,
		     "use -b 4");
	/* A truncated file is refused, wherever it is cut. */
	for (size_t part = 1; part < 64; part++)
		assert_int_not_equal(
			onnx_ports_read(bytes, length * part / 64, NULL, &arena, &ports, NULL),
			PRONY_OK);
	free(bytes);
}

TEST(open_dimensions_are_filled)
{
	static const char *const texts[] = {"state=2x1x128", "input=1x576", "other=3"};
	static const char *const wrong[] = {"state=2x1x64"};
	struct tensor rows[] = {
		{.name = "input", .shape = {2, {ONNX_DIM_OPEN, ONNX_DIM_OPEN}}},
		{.name = "state", .shape = {3, {2, ONNX_DIM_OPEN, 128}}},
		{.name = "sr", .dtype = DTYPE_I64},
	};
	unsigned batched[] = {1u, 2u, 0};
	const char *symbols[3 * TENSOR_MAX_RANK] = {NULL};
	struct onnx_ports ports = {.inputs = {rows, 3}, .batched = batched, .symbols = symbols};
	struct tensor_set inputs;
	struct error err = ERROR_INIT;
	SCOPED(arena) arena;
	bool used[3] = {false};

	arena_init(&arena, 0);
	expect_error(onnx_ports_fix(&ports, wrong, 1, used, &err), PRONY_USAGE, &err,
		     "the file's shape is 2x?x128");
	assert_int_equal(onnx_ports_inputs(&ports, 2, &arena, &inputs, &err), PRONY_UNSUPPORTED);
	check(onnx_ports_fix(&ports, texts, 3, used, &err), &err);
	assert_true(used[0] && used[1] && !used[2]);
	check(onnx_ports_inputs(&ports, 5, &arena, &inputs, &err), &err);
	assert_true(shape_equal(&inputs.tensors[0].shape, &(struct shape){2, {5, 576}}));
	assert_true(shape_equal(&inputs.tensors[1].shape, &(struct shape){3, {2, 5, 128}}));
	assert_int_equal(inputs.tensors[2].shape.rank, 0);
}

TEST(written_files_have_their_shapes)
{
	struct error err = ERROR_INIT;
	struct onnx_ports ports;
	struct tensor_set inputs;
	SCOPED(arena) arena;
	void *bytes = NULL, *written = NULL;
	size_t length = 0, written_length = 0;

	arena_init(&arena, 0);
	export_lenet(&arena, &bytes, &length);
	check(onnx_ports_read(bytes, length, NULL, &arena, &ports, &err), &err);
	check(onnx_ports_inputs(&ports, 4, &arena, &inputs, &err), &err);
	inputs.tensors[0].shape.dims[0] = 9;
	check(onnx_ports_write(bytes, length, &inputs, &written, &written_length, &err), &err);
	check(onnx_ports_read(written, written_length, NULL, &arena, &ports, &err), &err);
	assert_int_equal(ports.inputs.tensors[0].shape.dims[0], 9);
	free(written);
	free(bytes);
}

TEST(bundles_of_files_come_back)
{
	char folder[] = "/tmp/prony-model-XXXXXX";
	int64_t rows[6] = {1, 2, 3, 4, 5, 6};
	float x[2] = {0.5f, -1};
	uint8_t file[] = {8, 8};
	struct tensor batches[] = {
		{"input.0.0", DTYPE_I64, {1, {3}}, rows},
		{"input.0.1", DTYPE_F32, {0}, x},
		{"input.1.0", DTYPE_I64, {1, {3}}, rows + 3},
		{"input.1.1", DTYPE_F32, {0}, x + 1},
	};
	struct tensor inputs[] = {{.name = "rows", .dtype = DTYPE_I64, .shape = {1, {3}}},
				  {.name = "x", .dtype = DTYPE_F32}};
	struct tensor outputs[] = {{.name = "y", .dtype = DTYPE_F32}};
	const struct model_file model = {.bytes = file,
					 .length = sizeof(file),
					 .inputs = {inputs, 2},
					 .outputs = {outputs, 1}};
	const struct tensor_set all = {batches, 4};
	struct error err = ERROR_INIT;
	struct recipe recipe;
	struct bundle bundle;

	recipe_defaults(&recipe);
	recipe.slots = 2;
	assert_non_null(mkdtemp(folder));
	check(bundle_write_model(folder, &recipe, &model, &all, NULL, NULL, &err), &err);
	check(bundle_open(folder, &bundle, &err), &err);
	assert_true(bundle.is_model && bundle.inputs.count == 4);
	assert_int_equal(bundle.model.length, 2);
	assert_string_equal(bundle.model.outputs.tensors[0].name, "y");
	assert_string_equal(bundle.inputs.tensors[2].name, "rows");
	assert_int_equal(((const int64_t *)bundle.inputs.tensors[2].data)[2], 6);
	assert_true(((const float *)bundle.inputs.tensors[3].data)[0] == -1);
	bundle_release(&bundle);
	/* One batch too few for the slots. */
	recipe.slots = 3;
	check(bundle_write_model(folder, &recipe, &model, &all, NULL, NULL, &err), &err);
	expect_error(bundle_open(folder, &bundle, &err), PRONY_BAD_INPUT, &err, "4 tensors");
	bundle_release(&bundle);
	check(directory_remove(folder, &err), &err);
}

TEST(outputs_agree_or_not)
{
	float a[] = {1, 2, 2}, b[] = {1, 2, 2.00001f}, c[] = {1, 2, 3}, none[] = {1, NAN, 2};
	float near[] = {1, 2, 2.1f};
	int64_t i[] = {1, 2, 3}, k[] = {1, 2, 4};
	uint16_t half[] = {0x3c00, 0xc000, 0x0001}, other[] = {0x3c00, 0x4000, 0x0001};
	uint16_t wide[] = {0x3f80, 0xbf80}; /* 1 and -1 in bfloat16 */
	struct tensor x = {"x", DTYPE_F32, {1, {3}}, a}, y = x;
	const struct tensor_set one = {&x, 1}, two = {&y, 1};

	y.data = b;
	assert_true(agreement_of(&one, &two, NULL).agrees &&
		    agreement_of(&one, &two, NULL).value > 1e-6);
	y.data = c;
	struct agreement found = agreement_of(&one, &two, NULL);
	assert_false(found.agrees);
	assert_string_equal(found.output, "x");
	assert_true(fabs(found.value - 2 / (3 + sqrt(14))) < 1e-7);
	/* In a quantised file, within a multiple of what noise in the inputs changes. */
	double change = 0;
	struct tensor noted = {"x", DTYPE_F64, {0}, &change};
	struct tensor_set changes = {&noted, 1};
	agreement_note_changes(&one, &two, &changes);
	assert_true(change == found.value);
	assert_false(agreement_of(&one, &two, &changes).agrees); /* above the largest bound */
	y.data = near;
	found = agreement_of(&one, &two, &changes);
	assert_true(found.agrees && found.bound == AGREEMENT_BOUND_MAX);
	change = found.value / (2 * AGREEMENT_CHANGES);
	assert_false(agreement_of(&one, &two, &changes).agrees);
	y.data = none;
	agreement_note_changes(&one, &two, &changes);
	assert_true(change == found.value / (2 * AGREEMENT_CHANGES)); /* not finite: nothing */
	assert_false(agreement_of(&one, &two, NULL).agrees || agreement_is_finite(&two));
	y = x;
	y.shape.dims[0] = 2;
	assert_false(agreement_of(&one, &two, NULL).agrees);
	y = x;
	y.name = "z";
	assert_false(agreement_of(&one, &two, NULL).agrees);
	x = (struct tensor){"x", DTYPE_I64, {1, {3}}, i};
	y = x;
	assert_true(agreement_of(&one, &two, NULL).agrees);
	y.data = k;
	assert_true(fabs(agreement_of(&one, &two, NULL).value - 1.0 / 3) < 1e-12);
	x = (struct tensor){"x", DTYPE_F16, {1, {3}}, half};
	y = x;
	y.data = other;
	assert_true(fabs(agreement_of(&one, &two, NULL).value - 4 / sqrt(5)) < 1e-6);
	x = (struct tensor){"x", DTYPE_BF16, {1, {2}}, wide};
	assert_true(agreement_is_finite(&one) && agreement_of(&one, &one, NULL).value == 0);
	wide[0] = 0x7f80;
	assert_false(agreement_is_finite(&one));
	y = x;
	assert_false(agreement_of(&one, &(struct tensor_set){&y, 0}, NULL).agrees);
}
