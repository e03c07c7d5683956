/* Tests the graph as JSON: round trips, and hostile files that must give a clear error. */
#include "graph/graph_json.h"
#include "tests/fuzz/seed_corpus.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static void build_zoo(const char *name, int64_t batch, struct graph *graph)
{
	struct error err = ERROR_INIT;

	check(zoo_build(zoo_find(name, NULL), batch, graph, &err), &err);
}

TEST(graphs_survive_json)
{
	for (size_t i = 0; i < zoo_network_count; i++) {
		struct error err = ERROR_INIT;
		SCOPED(graph) graph, back;
		char digest[65], again[65];
		json_auto_t *json;

		build_zoo(zoo_networks[i]->name, 5, &graph);
		json = graph_to_json(&graph);
		check(graph_from_json(json, &back, &err), &err);
		graph_digest(&graph, digest, &err);
		graph_digest(&back, again, &err);
		assert_string_equal(digest, again);
		assert_int_equal(back.value_count, graph.value_count);
		assert_int_equal(graph_macs(&back), graph_macs(&graph));
		assert_int_equal(graph_input(&back, 0), graph_input(&graph, 0));
		assert_int_equal(graph_label(&back, 0), graph_label(&graph, 0));
		assert_int_equal(back.logits, graph.logits);
		assert_int_equal(back.loss, graph.loss);
		check(graph_add_backward(&back, &err), &err);
	}
}

/* The fills are not in the file: a graph that was read must not invent initial weights. */
TEST(read_graphs_have_no_initial_weights)
{
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	SCOPED(graph) graph, back;
	SCOPED(arena) arena;
	json_auto_t *json;

	arena_init(&arena, 0);
	build_zoo("lenet", 1, &graph);
	json = graph_to_json(&graph);
	check(graph_from_json(json, &back, &err), &err);
	expect_error(graph_initial_weights(&back, 1, &arena, &weights, &err), PRONY_BAD_INPUT, &err,
		     "conv1.weight");
}

/* In older files, without lists, a graph named its one input and its one label. */
TEST(graphs_without_lists_are_read)
{
	static const char *const names[] = {"lenet", "tagger"};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct error err = ERROR_INIT;
		struct graph graph, back;
		json_auto_t *json;

		build_zoo(names[i], 2, &graph);
		json = graph_to_json(&graph);
		json_object_del(json, "inputs");
		json_object_del(json, "labels");
		if (i == 0) {
			check(graph_from_json(json, &back, &err), &err);
			assert_int_equal(graph_input(&back, 0), graph_input(&graph, 0));
			assert_int_equal(graph_label(&back, 0), graph_label(&graph, 0));
			graph_release(&back);
		} else {
			expect_error(graph_from_json(json, &back, &err), PRONY_BAD_INPUT, &err,
				     "\"inputs\" must list");
		}
		graph_release(&graph);
	}
}

/* Finds "values/3/shape" and replaces it by `with`; NULL removes it, "[...]/-" appends. */
static void replace(json_t *root, const char *path, const char *with)
{
	json_t *new_value = with != NULL ? json_loads(with, JSON_DECODE_ANY, NULL) : NULL;
	json_t *parent = root;
	char key[64];

	assert_true(with == NULL || new_value != NULL);
	while (strchr(path, '/') != NULL) {
		size_t length = strcspn(path, "/");

		snprintf(key, sizeof(key), "%.*s", (int)length, path);
		parent = json_is_array(parent)
				 ? json_array_get(parent, (size_t)strtoul(key, NULL, 10))
				 : json_object_get(parent, key);
		assert_non_null(parent);
		path += length + 1;
	}
	if (json_is_array(parent) && strcmp(path, "-") == 0)
		json_array_append_new(parent, new_value);
	else if (json_is_array(parent) && with != NULL)
		json_array_set_new(parent, (size_t)strtoul(path, NULL, 10), new_value);
	else if (json_is_array(parent))
		json_array_remove(parent, (size_t)strtoul(path, NULL, 10));
	else if (with != NULL)
		json_object_set_new(parent, path, new_value);
	else
		json_object_del(parent, path);
}

#define NULLS_4 "null, null, null, null, "
#define NULLS_16 NULLS_4 NULLS_4 NULLS_4 NULLS_4

/* Changes to lenet at batch 2. Values: 0 input, 1 conv1.weight, 2 conv1.bias, 3 conv1, 4 pool1, ...
 * Nodes: 0 conv1, 1 pool1, 2 conv2, 3 pool2, 4 flatten, 5 ip1, 6 relu1, 7 ip2, 8 loss. */
static const struct {
	const char *path, *with, *message;
} hostile[] = {
	{"schema", "2", "unknown schema 2"},
	{"schema", NULL, "schema"},
	{"schema", "\"1\"", "schema"},
	{"name", "\"\"", "empty name"},
	{"name", NULL, "name"},
	{"values", "{}", "values"},
	{"nodes", "null", "nodes"},
	{"nodes", "[]", "no node computes it"},
	{"inputs", "null", "\"inputs\" must list"},
	{"inputs", "[]", "\"inputs\" must list"},
	{"inputs", "[\"label\"]", "\"inputs\" must list"},
	{"inputs", "[\"input\", \"input\"]", "\"inputs\" must list"},
	{"input", "\"label\"", "\"inputs\" must list"},
	{"input", "3", "\"inputs\" must list"},
	{"labels", "[]", "\"labels\" must list"},
	{"label", "\"conv1\"", "\"labels\" must list"},
	{"loss", "null", "needs both a label and a loss"},
	{"loss", "\"ip2\"", "loss"},
	{"loss", "\"input\"", "loss"},
	{"logits", "null", "logits"},
	{"logits", "\"input\"", "logits"},
	{"logits", "\"relu1\"", "the loss must be the last forward node"},
	{"logits", "\"loss\"", "the first a multiple of the batch"},
	/* values */
	{"values/0", "7", "values[0]"},
	{"values/0/name", "\"\"", "empty name"},
	{"values/0/name", "\"a\\u0007b\"", "control characters"},
	{"values/1/name", "\"input\"", "two values have the name 'input'"},
	{"values/1/name", "[1]", "name"},
	{"values/1/kind", "\"gradient\"", "\"kind\" must be"},
	{"values/1/kind", "\"input\"", "\"inputs\" must list"},
	{"values/1/kind", "\"activation\"", "before it is computed"},
	{"values/3/kind", "\"parameter\"", "not an activation"},
	{"values/1/dtype", "\"F31\"", "\"dtype\" is not known"},
	{"values/1/dtype", "\"I64\"", "must be F32"},
	{"values/0/dtype", "\"U8\"", "must be F32"},
	{"values/0/dtype", "\"I64\"", "must be F32"},
	{"values/0/shape", "\"2x1\"", "shape"},
	{"values/0/shape", "[2, 1, 28, 28.0]", "must hold integers"},
	{"values/0/shape", "[2, 1, 28, -28]", "dimension 3 of shape"},
	{"values/0/shape", "[0, 1, 28, 28]", "dimension 0 of shape"},
	{"values/0/shape", "[2, 1, 28, 4294967296]", "dimension 3 of shape"},
	{"values/0/shape", "[2147483647, 2147483647, 2147483647, 28]", "too large"},
	{"values/0/shape", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "more than 8 dimensions"},
	{"values/0/shape", "[]", "must have 4 dimensions"},
	{"values/0/shape", "[2, 1, 4, 28]", "but the padded height is 4"},
	{"values/0/shape", "[3, 1, 28, 28]",
	 "is declared as 2x20x24x24, but the operator computes 3x20x24x24"},
	{"values/1/shape", "[20, 1, 5, 4]", "kernel_shape says 5, but the weights have 4"},
	{"values/2/shape", "[19]", "bias has 19 elements"},
	{"values/3/shape", "[2, 20, 24, 25]", "is declared as"},
	{"values/3/shape", "[2, 20, 24]", "is declared as"},
	{"values/-",
	 "{\"name\": \"orphan\", \"kind\": \"activation\", \"dtype\": \"F32\", "
	 "\"shape\": [1]}",
	 "no node computes it"},
	{"values/-",
	 "{\"name\": \"second\", \"kind\": \"label\", \"dtype\": \"I64\", "
	 "\"shape\": [2]}",
	 "\"labels\" must list"},
	/* nodes */
	{"nodes/0", "\"conv1\"", "nodes[0]"},
	{"nodes/0/op", "\"Convolution\"", "unknown operator 'Convolution'"},
	{"nodes/0/op", "\"ConvGradInput\"", "unknown operator"},
	{"nodes/0/op", "4", "op"},
	{"nodes/1/name", "\"conv1\"", "two nodes have the name 'conv1'"},
	{"nodes/0/inputs/0", "\"nobody\"", "there is no value 'nobody'"},
	{"nodes/0/inputs/0", "\"pool1\"", "a cycle, or nodes out of order"},
	{"nodes/0/inputs/0", "\"conv1\"", "a cycle, or nodes out of order"},
	{"nodes/0/inputs/0", "null", "input 0 is required"},
	{"nodes/0/inputs/0", "0", "must be the name of a value, or null"},
	{"nodes/0/inputs", "[\"input\"]", "it has 1 inputs; the operator takes 2 to 3"},
	{"nodes/0/inputs", "[]", "it has 0 inputs"},
	{"nodes/1/inputs/-", "\"conv1\"", "it has 2 inputs; the operator takes 1 to 1"},
	{"nodes/0/inputs", "[null, null, null, null, null, null, null, null, null]",
	 "it has 9 inputs; the operator takes 2 to 3"},
	{"nodes/0/inputs", "[" NULLS_16 NULLS_16 NULLS_16 NULLS_16 "null]", "more than 64 inputs"},
	{"nodes/0/outputs", "[]", "it has 0 outputs"},
	{"nodes/0/outputs", "[null]", "output 0 is required"},
	{"nodes/0/outputs", "[\"conv1\", \"pool1\"]", "it has 2 outputs"},
	{"nodes/0/outputs", "[\"input\"]", "not an activation"},
	{"nodes/1/outputs", "[\"conv1\"]", "computed twice"},
	{"nodes/8", NULL, "no node computes it"},
	{"nodes/8/inputs/1", "\"ip2\"", "must be I64"},
	{"nodes/8/inputs", "[\"label\", \"label\"]", "must have 2 dimensions"},
	/* attributes */
	{"nodes/0/attributes", "[]", "\"attributes\" must be an object"},
	{"nodes/0/attributes/auto_pad", "\"SAME_UPPER\"",
	 "the operator has no attribute 'auto_pad'"},
	{"nodes/0/attributes/strides", "1", "attribute 'strides' must be two integers"},
	{"nodes/0/attributes/strides", "[1]", "attribute 'strides' must be two integers"},
	{"nodes/0/attributes/strides", "[1, 1.5]", "attribute 'strides' must be two integers"},
	{"nodes/0/attributes/strides", "[1, 0]", "strides contains 0"},
	{"nodes/0/attributes/strides", "[-9223372036854775808, 1]", "strides contains"},
	{"nodes/0/attributes/pads", "[0, 0]", "attribute 'pads' must be four integers"},
	{"nodes/0/attributes/pads", "[9223372036854775807, 0, 0, 0]", "pads contains"},
	{"nodes/0/attributes/pads", "[0, 0, -1, 0]", "pads contains -1"},
	{"nodes/0/attributes/dilations", "[2147483647, 1]", "but the padded height is"},
	{"nodes/0/attributes/group", "\"1\"", "attribute 'group' must be an integer"},
	{"nodes/0/attributes/group", "0", "group 0 must divide"},
	{"nodes/1/attributes/ceil_mode", "0", "attribute 'ceil_mode' must be true or false"},
	{"nodes/4/attributes/axis", "1e0", "attribute 'axis' must be an integer"},
	{"nodes/4/attributes/axis", "-9223372036854775808", "axis is"},
	{"nodes/5/attributes/alpha", "\"x\"", "attribute 'alpha' must be a number"},
	{"nodes/5/attributes/transB", "false", "inner dimensions differ"},
	{"nodes/6/attributes/alpha", "1", "the operator has no attribute 'alpha'"},
};

TEST(hostile_graphs_are_refused)
{
	SCOPED(graph) lenet;

	build_zoo("lenet", 2, &lenet);
	for (size_t i = 0; i < COUNT(hostile); i++) {
		struct graph untouched = {.node_count = 77};
		struct error err = ERROR_INIT;
		json_auto_t *json = graph_to_json(&lenet);

		replace(json, hostile[i].path, hostile[i].with);
		if (graph_from_json(json, &untouched, &err) != PRONY_BAD_INPUT)
			fail_msg("%s = %s is accepted", hostile[i].path,
				 hostile[i].with != NULL ? hostile[i].with : "(removed)");
		if (strstr(err.text, hostile[i].message) == NULL)
			fail_msg("%s: '%s' lacks '%s'", hostile[i].path, err.text,
				 hostile[i].message);
		assert_int_equal(untouched.node_count, 77);
	}
}

/* The loss of half squares does not read its labels. Batches hold them, so their type counts. */
TEST(labels_that_no_loss_reads_are_integers)
{
	struct error err = ERROR_INIT;
	struct graph graph;
	json_t *json, *value;
	size_t i;

	build_zoo("alexnet-tf", 1, &graph);
	json = graph_to_json(&graph);
	graph_release(&graph);
	json_array_foreach(
		json_object_get(json, "values"), i,
		value) if (!strcmp(json_string_value(json_object_get(value, "kind")), "label"))
		json_object_set_new(value, "dtype", json_string("U8"));
	expect_error(graph_from_json(json, &graph, &err), PRONY_BAD_INPUT, &err,
		     "is U8, but must be I64");
	json_decref(json);
}

TEST(other_roots_are_refused)
{
	static const char *const roots[] = {"null", "[]", "3", "\"graph\"", "{}"};
	struct error err = ERROR_INIT;
	struct graph graph;

	for (size_t i = 0; i < COUNT(roots); i++) {
		json_auto_t *json = json_loads(roots[i], JSON_DECODE_ANY, NULL);

		error_clear(&err);
		assert_int_equal(graph_from_json(json, &graph, &err), PRONY_BAD_INPUT);
	}
	error_clear(&err);
	assert_int_equal(graph_from_json(NULL, &graph, &err), PRONY_BAD_INPUT);
}

TEST(graphs_that_are_too_long_are_refused)
{
	struct error err = ERROR_INIT;
	json_t *json, *values;
	struct graph graph;

	build_zoo("mlp", 1, &graph);
	json = graph_to_json(&graph);
	graph_release(&graph);
	values = json_object_get(json, "values");
	while (json_array_size(values) <= 32768)
		json_array_append(values, json_array_get(values, 0));
	expect_error(graph_from_json(json, &graph, &err), PRONY_BAD_INPUT, &err,
		     "more than 32768 values");
	json_decref(json);
}

/* A graph for inference only, without a loss, is valid but cannot be differentiated. */
TEST(a_graph_may_lack_a_loss)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) lenet, graph;
	json_auto_t *json;

	build_zoo("lenet", 2, &lenet);
	json = graph_to_json(&lenet);
	replace(json, "label", "null");
	replace(json, "labels", "[]");
	replace(json, "loss", "null");
	replace(json, "nodes/8", NULL);
	replace(json, "values/18", NULL);
	replace(json, "values/17", NULL);
	check(graph_from_json(json, &graph, &err), &err);
	assert_int_equal(graph.loss, VALUE_NONE);
	assert_int_equal(graph_classes(&graph), 10);
	expect_error(graph_add_backward(&graph, &err), PRONY_BAD_INPUT, &err, "no loss");
}

TEST(the_seed_corpus_runs)
{
	assert_true(corpus_run("graph_json", NULL) >= 5);
}
