/* Messages about unusable plug-ins, and the program's text, which needs no plug-in. */
#include "adapters/xla/emit.h"
#include "adapters/xla/xla.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* Probes a library and returns the result; `how` makes our own plug-in fail in that way. */
static enum prony_status probe_for(const char *library, const char *how, struct probe *found,
				   struct error *err)
{
	void *data = calloc(1, adapter_xla.private_size);
	struct session session = {.library = library, .private_data = data};
	enum prony_status status;

	*err = (struct error)ERROR_INIT;
	setenv("FAKE_PJRT", how, 1);
	status = adapter_xla.probe(&session, found, err);
	adapter_xla.close(&session);
	free(data);
	return status;
}

static enum prony_status probe(const char *library, const char *how, struct error *err)
{
	struct probe found;

	return probe_for(library, how, &found, err);
}

TEST(test_wrong_plugins)
{
	static const struct {
		const char *how, *says;
		enum prony_status status;
	} cases[] = {
		{"null", "GetPjrtApi returned no interface", PRONY_MISSING},
		{"major", "version 7.42 of the PJRT interface; version 0.x is needed",
		 PRONY_MISSING},
		{"short", "table has 200 bytes", PRONY_MISSING},
		{"initialize", "(initialise the plug-in): no such accelerator", PRONY_UNSUPPORTED},
		{"client", "(start a client): no such accelerator", PRONY_MISSING},
		{"devices", "XLA has no device", PRONY_MISSING},
		{"option", "not accept cpu_device_count=1: XLA failed (start a client): no such",
		 PRONY_MISSING},
	};
	const char *library = getenv("FAKE_PJRT_PLUGIN");

	assert_non_null(library);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error err;

		assert_int_equal(probe(library, cases[i].how, &err), cases[i].status);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].how, err.text);
		assert_lacks(err.text, "more that is not part of it");
	}
}

/* Devices are named after the plug-in's platform, with a number. */
TEST(test_devices)
{
	struct probe found;
	struct error err;

	check(probe_for(getenv("FAKE_PJRT_PLUGIN"), "", &found, &err), &err);
	assert_int_equal(found.device_count, 2);
	assert_string_equal(found.devices[0], "abacus:0");
	assert_string_equal(found.devices[1], "abacus:1");
}

/* A file that is not a library, and a library that is not a plug-in: the loader's message, with the
 * path. */
TEST(test_no_plugins)
{
	struct error err = ERROR_INIT;
	char *folder = NULL, *damaged;

	check(directory_make_temporary("xla", &folder, &err), &err);
	damaged = test_keep(path_join(folder, "damaged.so"));
	check(file_write_atomic(damaged, "\177ELF", 4, &err), &err);
	assert_int_equal(probe(damaged, "", &err), PRONY_MISSING);
	assert_has(err.text, damaged);
	assert_has(err.text, "file too short");
	expect_error(probe("/nonexistent/plugin.so", "", &err), PRONY_MISSING, &err,
		     "/nonexistent/plugin.so");
	expect_error(probe("libm.so.6", "", &err), PRONY_MISSING, &err, "GetPjrtApi");
	expect_error(probe(NULL, "", &err), PRONY_MISSING, &err, "PRONY_XLA_LIBRARY");
	directory_remove(folder, NULL);
	free(folder);
}

static int occurrences(const char *text, const char *word)
{
	int count = 0;

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		count++;
	return count;
}

static char *text_of_network(const struct network *network, enum stage stage,
			     enum precision precision, bool exact)
{
	struct program program;
	struct recipe recipe;
	struct arena arena;
	struct graph graph;

	recipe_defaults(&recipe);
	recipe.stage = stage;
	recipe.precision = precision;
	arena_init(&arena, 0);
	assert_int_equal(zoo_build(network, 4, &graph, NULL), PRONY_OK);
	assert_int_equal(emit_program(&graph, &recipe, exact, &arena, &program, NULL), PRONY_OK);
	assert_int_equal(program.macs, graph_macs(&graph));
	assert_int_equal(program.bytes, strlen(program.text));
	graph_release(&graph);
	arena_release(&arena);
	return program.text;
}

static char *text_of(enum stage stage, enum precision precision, bool exact)
{
	return text_of_network(zoo_find("lenet", NULL), stage, precision, exact);
}

static bool is_supported(const struct network *network)
{
	SCOPED(graph) graph;
	struct target target;
	struct recipe recipe;
	struct error why = ERROR_INIT;

	target_defaults(&target);
	recipe_defaults(&recipe);
	assert_int_equal(zoo_build(network, 4, &graph, NULL), PRONY_OK);
	return adapter_xla.supports(&target, &graph, &recipe, &why) == PRONY_OK;
}

/* Every network that is supported can be written, with all its products. */
TEST(test_networks)
{
	size_t supported = 0;

	for (size_t i = 0; i < zoo_network_count; i++) {
		if (!is_supported(zoo_networks[i]))
			continue;
		supported++;
		free(text_of_network(zoo_networks[i], STAGE_TRAIN, PRECISION_BF16, false));
		free(text_of_network(zoo_networks[i], STAGE_FORWARD, PRECISION_FP32, true));
	}
	assert_int_equal(supported, zoo_network_count);
}

/* Training overwrites eight parameters with one moment each; the other stages overwrite nothing. */
TEST(test_donation)
{
	char *train = test_keep(text_of(STAGE_TRAIN, PRECISION_FP32, false));
	char *gradients = test_keep(text_of(STAGE_FORWARD_BACKWARD, PRECISION_FP32, false));
	char *forward = test_keep(text_of(STAGE_FORWARD, PRECISION_FP32, false));

	assert_int_equal(occurrences(train, "tf.aliasing_output"), 16);
	assert_int_equal(occurrences(gradients, "tf.aliasing_output"), 0);
	assert_int_equal(occurrences(forward, "tf.aliasing_output"), 0);
	/* Two forward, two of the weights, one of the inputs; the gradient of the batch is not
	 * needed. */
	assert_int_equal(occurrences(train, "stablehlo.convolution"), 5);
	assert_int_equal(occurrences(forward, "stablehlo.convolution"), 2);
}

/* On a device with faster products than fp32, each product requests exact precision. */
TEST(test_precision)
{
	char *exact = test_keep(text_of(STAGE_TRAIN, PRECISION_FP32, true));
	char *narrow = test_keep(text_of(STAGE_FORWARD, PRECISION_BF16, false));

	assert_int_equal(occurrences(exact, "HIGHEST"), 2 * (5 + 6));
	assert_lacks(narrow, "HIGHEST");
	assert_has(narrow, "tensor<5x5x1x20xbf16>, %");
}
