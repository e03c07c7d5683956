/* The reader of OpenVINO's compiled networks, on parts of OpenVINO 2026.4's exports of ResNet and
 * of an LSTM, and on broken input. */
#include "adapters/openvino/openvino_names.h"
#include "unit_test.h"
#include "zoo/zoo.h"

#define LAYER(id, name, type, parts)                                                               \
	"<layer id=\"" id "\" name=\"" name "\" type=\"" type "\" version=\"opset1\">"             \
	"<rt_info><attribute name=\"fused_names\" version=\"0\" value=\"" parts "\" /></rt_info>"  \
	"</layer>"
#define EDGE(from, to)                                                                             \
	"<edge from-layer=\"" from "\" from-port=\"0\" to-layer=\"" to "\" to-port=\"1\" />"

static struct graph graph;
static struct arena arena;

static void make(const char *network)
{
	struct error err = ERROR_INIT;
	const struct network *found = zoo_find(network, NULL);

	assert_non_null(found);
	arena_init(&arena, 0);
	check(zoo_build(found, 2, &graph, &err), &err);
}

static void release(struct ov_names *names)
{
	ov_names_release(names);
	arena_release(&arena);
	graph_release(&graph);
}

static void compare(const struct ov_names *names, const char *node, const char *layer,
		    const char *all)
{
	const char *said = "untouched";
	int found = ov_names_find(names, &graph, node, &arena, &said);

	if (!layer) {
		assert_int_equal(found, -1);
		assert_string_equal(said, "untouched");
		return;
	}
	assert_in_range(found, 0, graph.forward_count - 1);
	assert_string_equal(graph.nodes[found].name, layer);
	assert_string_equal(said, all);
}

TEST(test_folded)
{
	make("resnet50-cifar");
	struct ov_names *names = ov_names_parse(
		"<net><layers>" LAYER("0", "input", "Parameter", "input")
			LAYER("1", "Multiply_7493", "Convolution", "conv1, conv1.bn")
				LAYER("2", "a &amp; &lt;b&gt;", "Add", "stage1.0.add") LAYER(
					"3", "Multiply_74", "Convolution",
					"stage1.0.conv1.bn, stage1.0.conv1") "</layers></net>");

	compare(names, "Multiply_7493", "conv1", "conv1 + conv1.bn");
	compare(names, "Multiply_74", "stage1.0.conv1", "stage1.0.conv1 + stage1.0.conv1.bn");
	compare(names, "input_f32_acdb_Multiply_7493", "conv1", "input_f32_acdb_Multiply_7493");
	compare(names, "a & <b>", "stage1.0.add", "stage1.0.add");
	compare(names, "input", NULL, NULL);
	compare(names, "Multiply_7", NULL, NULL);
	compare(names, "", NULL, NULL);
	release(names);
}

/* The layer is found by its weights and by the names of its outputs. */
TEST(test_lstm)
{
	make("lstm");
	struct ov_names *names = ov_names_parse(
		LAYER("3", "Concat_14", "Const", "Concat_14, Split_13, lstm.W")
			LAYER("6", "LSTMSequence_58", "LSTMSequence", "LSTMSequence_58")
				LAYER("7", "LSTMSequence_59", "LSTMSequence",
				      "LSTMSequence_59, lstm_lstm.state")
					LAYER("8", "fc", "FullyConnected", "Multiply_69, fc")
						EDGE("3", "6") EDGE("77", "6") "<edge />");

	compare(names, "LSTMSequence_58", "lstm", "lstm");
	compare(names, "LSTMSequence_59", "lstm", "lstm");
	compare(names, "fc", "fc", "fc");
	compare(names, "Concat_14", NULL, NULL);
	release(names);
}

TEST(test_none)
{
	static const char *const texts[] = {
		"",
		"<layer ",
		"<layer name=\"a\"",
		"<layer id=\"0\" name=\"a\" <attribute name=\"fused_names\"",
		"<layer id=\"0\" name=\"a\"><attribute name=\"fused_names\" value=\"conv1",
		"<edge from-layer=\"0"};

	make("lenet");
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct ov_names *names = ov_names_parse(texts[i]);

		compare(names, "a", NULL, NULL);
		ov_names_release(names);
	}
	release(NULL);
}
