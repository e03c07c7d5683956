/* Every convolution of the zoo in four precisions and four batches, planned by the real cuDNN for
 * an H200 on a machine without a GPU: the descriptors are accepted, the workspace is below the
 * limit, and no engine bears a note that the precision forbids. Prints each plan with
 * PRONY_PLAN_LIST. */
#include "tests/unit/unit_test.h"

#include "adapters/native/cuda/conv_plan.h"
#include "zoo/zoo.h"

/* As cuDNN itself described an H200; plans for it ran there. */
#define DEVICE_FILE "tests/cuda/device-h200.json"

static const struct precision_row {
	enum dtype type;
	bool strict;
} precisions[] = {
	{DTYPE_F32, true},  /* fp32 */
	{DTYPE_F32, false}, /* tf32 */
	{DTYPE_F16, false},
	{DTYPE_BF16, false},
};

/* Problems that have been planned, and the sum of what was found. */
struct planned {
	struct conv_planner planner;
	json_t *seen;
	int problems, failed;
	int64_t workspace;
	unsigned notes; /* of plans that may have them */
};

static void plan(struct planned *p, const struct conv_problem *problem, const char *network,
		 const char *layer)
{
	char key[CONV_KEY_BYTES];
	struct cudnn_plan made = {0};
	struct error err = ERROR_INIT;
	enum prony_status status;

	conv_problem_key(problem, key);
	if (json_object_get(p->seen, key))
		return;
	json_object_set_new(p->seen, key, json_true());
	p->problems++;
	status = conv_plan_make(&p->planner, problem, layer, &made, &err);
	if (status != PRONY_OK || getenv("PRONY_PLAN_LIST"))
		print_message("# %s %s: %s: engine %lld, notes %x, workspace %lld %s\n", network,
			      layer, key, (long long)made.engine, made.notes,
			      (long long)made.workspace, status == PRONY_OK ? "" : err.text);
	p->failed += status != PRONY_OK;
	if (made.workspace > p->workspace)
		p->workspace = made.workspace;
	assert_true(made.workspace <= CONV_WORKSPACE_BYTES);
	assert_int_equal(made.notes & conv_forbidden_notes(problem), 0);
	assert_false(problem->strict && made.engine == CONV_ENGINE_INEXACT);
	if (!problem->strict)
		p->notes |= made.notes;
	cudnn_plan_release(p->planner.cudnn, &made);
}

/* A convolution, or a gradient of it; forward also with bias, ReLU and sum. */
static void plan_node(struct planned *p, const char *network, const struct graph *graph, int n,
		      enum conv_kind kind)
{
	for (size_t i = 0; i < COUNT(precisions); i++) {
		struct conv_problem problem =
			conv_problem_of(graph, n, kind, precisions[i].type, precisions[i].strict);

		plan(p, &problem, network, graph->nodes[n].name);
		if (kind != CONV_FORWARD)
			continue;
		problem.bias = true;
		plan(p, &problem, network, graph->nodes[n].name);
		problem.relu = true;
		plan(p, &problem, network, graph->nodes[n].name);
		problem.sum = true;
		plan(p, &problem, network, graph->nodes[n].name);
	}
}

static void plan_network(struct planned *p, const struct network *network, int64_t batch)
{
	SCOPED(graph) graph;
	struct error err = ERROR_INIT;

	check(zoo_build(network, batch, &graph, &err), &err);
	check(graph_add_backward(&graph, &err), &err);
	for (int n = 0; n < graph.node_count; n++) {
		int forward = graph.nodes[n].differentiates;
		enum op op = graph.nodes[n].op;

		if (op == OP_CONV || op == OP_CONV_TRANSPOSE)
			plan_node(p, network->name, &graph, n, CONV_FORWARD);
		if (op == OP_CONV_GRAD_INPUT || op == OP_CONV_TRANSPOSE_GRAD_INPUT)
			plan_node(p, network->name, &graph, forward, CONV_GRAD_INPUT);
		if (op == OP_CONV_GRAD_WEIGHT || op == OP_CONV_TRANSPOSE_GRAD_WEIGHT)
			plan_node(p, network->name, &graph, forward, CONV_GRAD_WEIGHT);
	}
}

TEST(every_convolution_is_planned)
{
	static const int64_t batches[] = {1, 16, 64, 256};
	struct cudnn cudnn;
	struct error err = ERROR_INIT;
	struct planned p = {.planner = {.cudnn = &cudnn}, .seen = json_object()};
	size_t length;
	char *device, version[32];
	enum prony_status status = cudnn_load(&cudnn, "/usr/local/cuda/lib64", &err);

	if (status == PRONY_MISSING) {
		print_message("# %s\n", err.text);
		skip();
	}
	check(status, &err);
	check(file_read(test_text("%s/%s", getenv("PRONY_SOURCE"), DEVICE_FILE), 1 << 16, &device,
			&length, &err),
	      &err);
	check(conv_device(&cudnn, device, &p.planner.device, &err), &err);
	for (size_t i = 0; i < zoo_network_count; i++) {
		for (size_t b = 0; b < COUNT(batches); b++)
			plan_network(&p, zoo_networks[i], batches[b]);
	}
	cudnn_version_text(&cudnn, version, sizeof(version));
	print_message(
		"# cuDNN %s: %d convolutions planned, %d failed, largest workspace %lld bytes\n",
		version, p.problems, p.failed, (long long)p.workspace);
	assert_int_equal(p.failed, 0);
	assert_true(p.problems > 10000);
	/* Plans that are not strict do use tensor cores: notes are read. */
	assert_true(p.notes & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
	json_decref(p.seen);
	free(device);
	cudnn.BackendDestroyDescriptor(p.planner.device);
}
