/* The built-in networks: their figures and layers. With inputs small enough for the reference
 * interpreter, also that a step of each gives sane numbers. tests/oracles/ compares with other
 * programs. */
#include "graph/graph_json.h"
#include "parity/reference.h"
#include "unit_test.h"
#include "zoo/zoo.h"

static void build(const struct network *network, int64_t batch, struct graph *graph)
{
	struct error err = ERROR_INIT;

	check(zoo_build(network, batch, graph, &err), &err);
}

static void build_named(const char *name, int64_t batch, struct graph *graph)
{
	const struct network *network = zoo_find(name, NULL);

	if (network == NULL)
		fail_msg("no network %s", name);
	build(network, batch, graph);
}

/* The published figures, repeated here independently of the program's table. */
static const struct {
	const char *name, *dataset;
	int64_t parameters, macs;
} published[] = {
	{"mlp", "mnist", 669706, 668672},
	{"lenet", "mnist", 431080, 2293000},
	{"cnn", "cifar10", 1250858, 20741120},
	{"irnn", "synthetic", 11210, 7919400},
	{"lstm", "synthetic", 104508, 3857920},
	{"tagger", "synthetic", 3610, 32256},
	{"alexnet", "imagenet", 61100840, 714188480},
	{"alexnet-lrn", "imagenet", 60965224, 724406816},
	{"alexnet-tf", "synthetic", 2469696, 658145280},
	{"vgg16", "imagenet", 138357544, 15470264320},
	{"googlenet", "imagenet", 6624904, 1498376192},
	{"googlenet-lrn", "imagenet", 6998552, 1582671872},
	{"inception3", "imagenet", 23834568, 5713216096},
	{"resnet50", "imagenet", 25557032, 4089184256},
	{"resnet152", "imagenet", 60192808, 11513626624},
	{"densenet161", "imagenet", 28681000, 7727907072},
	{"nasnet", "imagenet", 5289978, 563638816},
	{"vit-b16", "imagenet", 86567656, 17563828224},
	{"alexnet-cifar", "cifar10", 1756426, 32778112},
	{"resnet50-cifar", "cifar10", 758554, 111592064},
	{"googlenet-cifar", "cifar10", 6166250, 1521756160},
	{"vgg16-cifar", "cifar10", 14990922, 313463808},
	{"vit-small", "cifar10", 208074, 15139968},
	{"unet", "synthetic", 31037698, 3010723840},
	{"gpt2", "synthetic", 124439808, 145824153600},
	{"gpt2-bytes", "synthetic", 957184, 121634816},
	{"bert-base", "synthetic", 109514298, 14249558016},
	{"bert-tiny", "synthetic", 4416698, 560889856},
	{"llama-small", "synthetic", 134515008, 77913391104},
	{"llama-tiny", "synthetic", 260032, 43679744},
};

TEST(figures_are_the_published_ones)
{
	assert_int_equal(zoo_network_count, COUNT(published));
	for (size_t i = 0; i < COUNT(published); i++) {
		const struct network_input *input = &zoo_networks[i]->inputs[0];
		SCOPED(graph) graph;

		assert_string_equal(zoo_networks[i]->name, published[i].name);
		assert_string_equal(zoo_networks[i]->dataset, published[i].dataset);
		build(zoo_networks[i], 1, &graph);
		assert_int_equal(graph_parameter_count(&graph), published[i].parameters);
		assert_int_equal(graph_macs(&graph), published[i].macs);
		assert_int_equal(graph_classes(&graph), zoo_networks[i]->classes);
		/* Rows of features are sequences, and so are tokens. */
		assert_int_equal(zoo_networks[i]->tokens,
				 input->rank == 2 || input->dtype == DTYPE_I64 ? input->dims[0]
									       : 0);
	}
}

static int count_op(const struct graph *graph, enum op op)
{
	int count = 0;

	for (int i = 0; i < graph->forward_count; i++)
		count += graph->nodes[i].op == op;
	return count;
}

/* Equal figures do not exclude a missing normalisation or a misplaced pool. */
TEST(networks_are_made_of_what_they_should)
{
	static const struct {
		const char *name;
		int conv, batch_norm, lrn, relu, max_pool, average_pool, add, concat, dropout;
	} made[] = {
		{"cnn", 4, 0, 0, 5, 2, 0, 0, 0, 3},
		{"alexnet", 5, 0, 0, 7, 3, 0, 0, 0, 2},
		{"alexnet-lrn", 5, 0, 2, 7, 3, 0, 0, 0, 2},
		{"alexnet-tf", 5, 0, 2, 5, 3, 0, 0, 0, 0},
		{"vgg16", 13, 0, 0, 15, 5, 0, 0, 0, 2},
		{"googlenet", 57, 57, 0, 57, 13, 0, 0, 9, 1},
		{"googlenet-lrn", 57, 0, 2, 57, 13, 0, 0, 9, 1},
		{"inception3", 94, 94, 0, 94, 4, 9, 0, 15, 1},
		{"resnet50", 53, 53, 0, 49, 1, 0, 16, 0, 0},
		{"resnet152", 155, 155, 0, 151, 1, 0, 50, 0, 0},
		{"densenet161", 160, 161, 0, 161, 1, 3, 0, 78, 0},
		{"nasnet", 356, 192, 0, 192, 8, 52, 80, 20, 0},
		{"unet", 19, 18, 0, 18, 4, 0, 0, 4, 0},
		{"alexnet-cifar", 2, 0, 2, 4, 2, 0, 0, 0, 0},
		{"resnet50-cifar", 51, 51, 0, 49, 0, 0, 24, 0, 0},
		{"googlenet-cifar", 64, 64, 0, 64, 11, 0, 0, 9, 0},
		{"vgg16-cifar", 13, 13, 0, 14, 5, 0, 0, 0, 0},
	};

	for (size_t i = 0; i < COUNT(made); i++) {
		SCOPED(graph) graph;

		build_named(made[i].name, 1, &graph);
		assert_int_equal(count_op(&graph, OP_CONV), made[i].conv);
		assert_int_equal(count_op(&graph, OP_BATCH_NORM), made[i].batch_norm);
		assert_int_equal(count_op(&graph, OP_LRN), made[i].lrn);
		assert_int_equal(count_op(&graph, OP_RELU), made[i].relu);
		assert_int_equal(count_op(&graph, OP_MAX_POOL), made[i].max_pool);
		assert_int_equal(count_op(&graph, OP_AVERAGE_POOL), made[i].average_pool);
		assert_int_equal(count_op(&graph, OP_ADD), made[i].add);
		assert_int_equal(count_op(&graph, OP_CONCAT), made[i].concat);
		assert_int_equal(count_op(&graph, OP_DROPOUT), made[i].dropout);
	}
}

TEST(sizes_within_are_the_published_ones)
{
	static const struct {
		const char *network, *value;
		struct shape shape;
	} sizes[] = {
		{"alexnet-tf", "conv1", {4, {2, 64, 56, 56}}},
		{"alexnet-tf", "pool5", {4, {2, 256, 6, 6}}},
		{"alexnet-lrn", "pool5", {4, {2, 256, 6, 6}}},
		{"googlenet", "inception5b", {4, {2, 1024, 7, 7}}},
		{"googlenet-lrn", "inception5b", {4, {2, 1024, 7, 7}}},
		{"googlenet-cifar", "inception5b", {4, {2, 1024, 8, 8}}},
		{"inception3", "mixed5d", {4, {2, 288, 35, 35}}},
		{"inception3", "mixed6e", {4, {2, 768, 17, 17}}},
		{"inception3", "mixed7c", {4, {2, 2048, 8, 8}}},
		{"resnet50", "stage4.2.relu", {4, {2, 2048, 7, 7}}},
		{"resnet50-cifar", "stage3.7.relu", {4, {2, 64, 8, 8}}},
		{"densenet161", "norm5.relu", {4, {2, 2208, 7, 7}}},
		{"nasnet", "stem.bn", {4, {2, 32, 111, 111}}},
		{"nasnet", "stage3.3.concat", {4, {2, 1056, 7, 7}}},
		{"alexnet-cifar", "pool2", {4, {2, 64, 8, 8}}},
		{"vgg16-cifar", "pool5", {4, {2, 512, 1, 1}}},
	};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		SCOPED(graph) graph;
		int value;

		build_named(sizes[i].network, 2, &graph);
		value = graph_find_value(&graph, sizes[i].value);
		if (value == VALUE_NONE)
			fail_msg("%s has no %s", sizes[i].network, sizes[i].value);
		if (!shape_equal(&graph.values[value].shape, &sizes[i].shape)) {
			char text[128];

			shape_text(&graph.values[value].shape, text, sizeof(text));
			fail_msg("%s: %s is %s", sizes[i].network, sizes[i].value, text);
		}
	}
}

/* Heads of 8 features: angles of position 3 are 3, 0.3, 0.03 and 0.003, twice. */
TEST(rotary_positions_are_angles)
{
	static const double angles[] = {3, 0.3, 0.03, 0.003};
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	SCOPED(graph) graph;
	SCOPED(arena) arena;

	arena_init(&arena, 0);
	build_named("llama-tiny", 1, &graph);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	const float *cosine = tensor_find(&weights, "cosine")->data;
	const float *sine = tensor_find(&weights, "sine")->data;
	for (int i = 0; i < 8; i++) {
		near(cosine[3 * 8 + i], cos(angles[i % 4]), 1e-7);
		near(sine[3 * 8 + i], sin(angles[i % 4]), 1e-7);
		near(cosine[i], 1, 0);
	}
}

/* Every parameter has a gradient; a worker reads back the same graph. */
TEST(networks_differentiate_and_travel)
{
	for (size_t i = 0; i < zoo_network_count; i++) {
		char digest[65], again[65];
		struct error err = ERROR_INIT;
		struct graph graph, copy;
		json_t *json;

		build(zoo_networks[i], 2, &graph);
		check(graph_digest(&graph, digest, &err), &err);
		json = graph_to_json(&graph);
		check(graph_from_json(json, &copy, &err), &err);
		json_decref(json);
		check(graph_digest(&copy, again, &err), &err);
		assert_string_equal(digest, again);
		if (graph_add_backward(&copy, &err) != PRONY_OK ||
		    graph_check(&copy, &err) != PRONY_OK)
			fail_msg("%s: %s", zoo_networks[i]->name, err.text);
		for (int v = 0; v < copy.value_count; v++)
			assert_true(copy.values[v].kind != VALUE_PARAMETER ||
				    copy.values[v].gradient != VALUE_NONE);
		/* graph_copy_forward of a graph with its backward pass gives the forward graph
		 * again. */
		graph_release(&graph);
		graph_copy_forward(&copy, &graph);
		graph_release(&copy);
		if (graph_check(&graph, &err) != PRONY_OK)
			fail_msg("%s: %s", zoo_networks[i]->name, err.text);
		assert_int_equal(graph.node_count, graph.forward_count);
		check(graph_digest(&graph, again, &err), &err);
		assert_string_equal(digest, again);
		check(graph_add_backward(&graph, &err), &err);
		graph_release(&graph);
	}
}

/*
 * The smallest inputs that each network accepts with full layers, and a batch that normalises well.
 */
enum { STEP_BATCH = 4 };

static const struct {
	const char *name;
	int64_t size;
} steps[] = {
	{"cnn", 0},
	{"tagger", 0},
	{"lstm", 0},
	{"googlenet", 32},
	{"googlenet-lrn", 64},
	{"inception3", 75},
	{"resnet50", 32},
	{"resnet152", 32},
	{"densenet161", 32},
	{"nasnet", 32},
	{"alexnet-cifar", 0},
	{"resnet50-cifar", 0},
	{"googlenet-cifar", 8},
	{"vgg16-cifar", 0},
};

/* Returns the root mean square of an array; NAN and infinity propagate. */
static double root_mean_square(const double *values, int64_t count)
{
	double sum = 0;

	for (int64_t i = 0; i < count; i++)
		sum += values[i] * values[i];
	return sqrt(sum / (double)count);
}

static void check_sane(const struct reference *ref, const char *name)
{
	const struct graph *graph = ref->graph;
	int64_t count;
	const double *logits = reference_value(ref, graph->logits, &count);
	double size = root_mean_square(logits, count);

	if (!(size > 1e-3 && size < 30))
		fail_msg("%s: logits of %g", name, size);
	for (int v = 0; v < graph->value_count; v++) {
		const struct value *value = &graph->values[v];
		const double *gradient;

		if (value->kind != VALUE_PARAMETER || value->gradient == VALUE_NONE)
			continue;
		gradient = reference_value(ref, value->gradient, &count);
		size = root_mean_square(gradient, count);
		if (!(size >= 0 && size < 1e3))
			fail_msg("%s: gradient of %s is %g", name, value->name, size);
	}
}

/* With initial weights, the logits neither vanish nor overflow, in training and in evaluation,
 * where fixed statistics normalise nothing: the gate compares them in float32. */
TEST(first_steps_are_sane)
{
	for (size_t i = 0; i < COUNT(steps); i++) {
		struct network network = *zoo_find(steps[i].name, NULL);
		struct error err = ERROR_INIT;
		struct tensor_set weights;
		struct reference ref = {.values = NULL};
		struct recipe recipe;
		struct tensor_set inputs, labels;
		SCOPED(graph) graph;
		SCOPED(arena) arena;

		if (steps[i].size > 0)
			network.inputs[0].dims[1] = network.inputs[0].dims[2] = steps[i].size;
		arena_init(&arena, 0);
		recipe_defaults(&recipe);
		recipe.dropout = false;
		build(&network, STEP_BATCH, &graph);
		if (graph_add_backward(&graph, &err) != PRONY_OK ||
		    graph_initial_weights(&graph, 1, &arena, &weights, &err) != PRONY_OK ||
		    reference_init(&ref, &graph, &weights, &err) != PRONY_OK ||
		    batches_draw(&graph, 3, 0, 1, network.labels_ignored, &arena, &inputs, &labels,
				 &err) != PRONY_OK ||
		    reference_feed(&ref, batch_at(&graph, &inputs, &labels, 0), &err) != PRONY_OK)
			fail_msg("%s: %s", network.name, err.text);
		for (int k = 0; k < 2; k++) {
			recipe.stage = k == 0 ? STAGE_FORWARD : STAGE_FORWARD_BACKWARD;
			if (reference_step(&ref, &recipe, false, &err) != PRONY_OK)
				fail_msg("%s: %s", network.name, err.text);
			check_sane(&ref, network.name);
		}
		reference_release(&ref);
	}
}
