/* Tests the structure of the backward pass; the reference interpreter's tests check its numbers. */
#include "graph/graph.h"
#include "unit_test.h"
#include "zoo/zoo.h"

/* Checks that every parameter has a gradient of its shape and that the graph's invariants hold. */
static void check_backward(struct graph *graph)
{
	struct error err = ERROR_INIT;

	if (graph_add_backward(graph, &err) != PRONY_OK || graph_check(graph, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	for (int i = 0; i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind == VALUE_PARAMETER) {
			const struct value *gradient;

			assert_true(value->gradient >= 0);
			gradient = &graph->values[value->gradient];
			assert_true(shape_equal(&value->shape, &gradient->shape));
			assert_true(gradient->producer >= graph->forward_count);
		}
	}
	assert_int_equal(graph->values[graph_input(graph, 0)].gradient, VALUE_NONE);
	assert_int_equal(graph->values[graph_label(graph, 0)].gradient, VALUE_NONE);
}

static int count_op(const struct graph *graph, enum op op)
{
	int count = 0;

	for (int i = 0; i < graph->node_count; i++)
		count += graph->nodes[i].op == op;
	return count;
}

static void check_backward_order(const char *network, const char *const *order, size_t count)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;

	check(zoo_build(zoo_find(network, NULL), 2, &graph, &err), &err);
	check_backward(&graph);
	assert_int_equal(graph.node_count - graph.forward_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct node *node = &graph.nodes[graph.forward_count + (int)i];

		assert_string_equal(operator_name(node->op), order[i]);
	}
}

/* The first layer computes no gradient of the input. */
TEST(networks_have_the_backward_pass_they_need)
{
	static const char *const lenet[] = {
		"SoftmaxCrossEntropyGrad", "GemmGradWeight", "GemmGradInput", "ReluGrad",
		"GemmGradWeight",	   "GemmGradInput",  "FlattenGrad",   "MaxPoolGrad",
		"ConvGradWeight",	   "ConvGradInput",  "MaxPoolGrad",   "ConvGradWeight"};
	static const char *const mlp[] = {"SoftmaxCrossEntropyGrad",
					  "GemmGradWeight",
					  "GemmGradInput",
					  "DropoutGrad",
					  "ReluGrad",
					  "GemmGradWeight",
					  "GemmGradInput",
					  "DropoutGrad",
					  "ReluGrad",
					  "GemmGradWeight"};

	check_backward_order("lenet", lenet, COUNT(lenet));
	check_backward_order("mlp", mlp, COUNT(mlp));
}

TEST(gradient_nodes_read_what_the_table_says)
{
	struct error err = ERROR_INIT;
	SCOPED(graph) graph;
	int dy, checked = 0;

	check(zoo_build(zoo_find("lenet", NULL), 2, &graph, &err), &err);
	check_backward(&graph);
	for (int i = graph.forward_count; i < graph.node_count; i++) {
		const struct node *node = &graph.nodes[i];
		const struct node *forward = &graph.nodes[node->differentiates];

		dy = graph.values[forward->outputs[0]].gradient;
		assert_memory_equal(&node->attributes, &forward->attributes,
				    sizeof(node->attributes));
		if (node->op == OP_CONV_GRAD_WEIGHT) {
			assert_int_equal(node->inputs[0], forward->inputs[0]);
			assert_int_equal(node->inputs[1], dy);
			assert_int_equal(node->output_count, 2);
			checked++;
		} else if (node->op == OP_CONV_GRAD_INPUT) {
			assert_int_equal(node->inputs[0], dy);
			assert_int_equal(node->inputs[1], forward->inputs[1]);
			checked++;
		} else if (node->op == OP_MAX_POOL_GRAD) {
			assert_int_equal(node->inputs[0], dy);
			assert_int_equal(node->inputs[1], forward->inputs[0]);
			assert_int_equal(node->inputs[2], forward->outputs[0]);
			checked++;
		}
	}
	assert_int_equal(checked, 5);
}

/* y feeds a layer and a later sum: its gradient is also a sum. */
TEST(gradients_of_several_users_are_summed)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	const struct node *sum;
	int x, y, z, total;

	graph_init(&graph, "residual");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	y = build_linear(&b, "fc1", x, 4);
	z = build_linear(&b, "fc2", y, 4);
	total = build_node(&b, OP_ADD, "total", (const int[]){z, y}, 2, NULL);
	total = build_node(&b, OP_ADD, "twice", (const int[]){total, total}, 2, NULL);
	check(build_finish(&b, build_linear(&b, "fc3", total, 3), 0, NULL, &err), &err);
	check_backward(&graph);
	/* Two forward, one for y, and one for the value that is added to itself. */
	assert_int_equal(count_op(&graph, OP_ADD), 4);
	sum = &graph.nodes[graph.values[graph.values[y].gradient].producer];
	assert_int_equal(sum->op, OP_ADD);
	assert_int_equal(sum->differentiates, -1);
	assert_int_equal(graph.values[z].gradient, sum->inputs[0]);
	assert_int_equal(graph.nodes[graph.values[sum->inputs[1]].producer].op, OP_GEMM_GRAD_INPUT);
}

TEST(a_shared_parameter_gets_the_sum)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x, w;

	graph_init(&graph, "shared");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){4});
	w = build_parameter(&b, "w", 2, (const int64_t[]){4, 4}, FILL_HE_NORMAL, 4);
	x = build_node(&b, OP_GEMM, "first", (const int[]){x, w}, 2, NULL);
	x = build_node(&b, OP_GEMM, "second", (const int[]){x, w}, 2, NULL);
	check(build_finish(&b, x, 0, NULL, &err), &err);
	check_backward(&graph);
	assert_int_equal(count_op(&graph, OP_GEMM_GRAD_WEIGHT), 2);
	assert_int_equal(count_op(&graph, OP_GEMM_GRAD_INPUT), 1);
	assert_int_equal(graph.nodes[graph.values[graph.values[w].gradient].producer].op, OP_ADD);
}

/* No trained parameter comes before the pooling: it has no gradient node. */
TEST(untrained_beginnings_have_no_backward)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x;

	graph_init(&graph, "late");
	x = build_input(&b, "input", DTYPE_F32, 2, 3, (const int64_t[]){1, 8, 8});
	x = build_max_pool(&b, "pool", x, 2, 2);
	x = build_relu(&b, "relu", build_flatten(&b, "flatten", x));
	check(build_finish(&b, build_linear(&b, "fc", x, 3), 0, NULL, &err), &err);
	check_backward(&graph);
	assert_int_equal(graph.node_count - graph.forward_count, 2);
}

TEST(names_like_ours_do_not_clash)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x;

	graph_init(&graph, "clash");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	x = build_linear(&b, "fc", x, 4);
	x = build_relu(&b, "fc.grad", x);
	x = build_linear(&b, "fc.grad_weight", x, 4);
	check(build_finish(&b, x, 0, NULL, &err), &err);
	check_backward(&graph);
	assert_int_equal(graph_find_value(&graph, "fc.grad"), 4);
	assert_true(graph_find_value(&graph, "fc.grad.2") > graph.loss);
}

/* Derived names may be longer than names in files. */
TEST(long_names_can_be_differentiated)
{
	char name[249];
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	graph_init(&graph, "long");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	check(build_finish(&b, build_linear(&b, name, x, 4), 0, NULL, &err), &err);
	check_backward(&graph);
}

TEST(what_cannot_be_trained_is_refused)
{
	struct graph graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x, nodes, values;

	graph_init(&graph, "dead");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	build_linear(&b, "unused", x, 4);
	check(build_finish(&b, build_linear(&b, "fc", x, 3), 0, NULL, &err), &err);
	nodes = graph.node_count;
	values = graph.value_count;
	assert_int_equal(graph_add_backward(&graph, &err), PRONY_BAD_INPUT);
	assert_string_equal(err.text, "the loss does not depend on parameter 'unused.weight'");
	assert_int_equal(graph.node_count, nodes);
	assert_int_equal(graph.value_count, values);
	error_clear(&err);
	check(graph_check(&graph, &err), &err);
	graph_release(&graph);

	check(zoo_build(zoo_find("lenet", NULL), 2, &graph, &err), &err);
	check_backward(&graph);
	expect_error(graph_add_backward(&graph, &err), PRONY_BAD_INPUT, &err, "already");
	graph_release(&graph);
}

/* The checker finds the damage that a mistake in a table row or a worker could cause. */
TEST(broken_graphs_are_found)
{
	for (int i = 0; i < 8; i++) {
		struct error err = ERROR_INIT;
		SCOPED(graph) graph;
		int last;

		check(zoo_build(zoo_find("mlp", NULL), 2, &graph, &err), &err);
		check_backward(&graph);
		last = graph.node_count - 1;
		switch (i) {
		case 0:
			graph.nodes[2].inputs[0] = graph.nodes[3].outputs[0];
			break;
		case 1:
			graph.values[graph.logits].shape.dims[1] = 11;
			break;
		case 2:
			graph.nodes[last].differentiates = last;
			break;
		case 3:
			graph.values[5].name = graph.values[4].name;
			break;
		case 4:
			graph.nodes[last].inputs[0] = graph.value_count;
			break;
		case 5:
			graph.values[graph.nodes[last].outputs[0]].producer = 0;
			break;
		case 6:
			graph.forward_count--;
			break;
		default:
			graph.values[1].gradient = graph.values[2].gradient;
			break;
		}
		if (graph_check(&graph, &err) != PRONY_BAD_INPUT)
			fail_msg("breakage %d is not found", i);
	}
}
