/* Exported ONNX files are decoded and compared with the graph that was exported. */
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "unit_test.h"
#include "zoo/zoo.h"

struct exported {
	struct graph graph;
	struct arena arena;
	struct tensor_set weights;
	Onnx__ModelProto *model;
};

/* Exports and decodes a finished graph, with weights of seed 1. */
static void export_graph(struct exported *e)
{
	struct error err = ERROR_INIT;
	size_t length = 0;
	void *bytes = NULL;

	arena_init(&e->arena, 0);
	if (graph_initial_weights(&e->graph, 1, &e->arena, &e->weights, &err) != PRONY_OK ||
	    onnx_export(&e->graph, &e->weights, &bytes, &length, &err) != PRONY_OK)
		fail_msg("%s", err.text);
	e->model = onnx__model_proto__unpack(NULL, length, bytes);
	assert_non_null(e->model);
	free(bytes);
}

static void release(struct exported *e)
{
	onnx__model_proto__free_unpacked(e->model, NULL);
	graph_release(&e->graph);
	arena_release(&e->arena);
}

static void export_zoo(struct exported *e, const char *name, int64_t batch)
{
	struct error err = ERROR_INIT;

	check(zoo_build(zoo_find(name, NULL), batch, &e->graph, &err), &err);
	export_graph(e);
}

static void check_nodes(const Onnx__GraphProto *graph, const char *const *order, size_t count)
{
	assert_int_equal(graph->n_node, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(graph->node[i]->op_type, order[i]);
}

static const Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *node, const char *name)
{
	for (size_t i = 0; i < node->n_attribute; i++) {
		if (strcmp(node->attribute[i]->name, name) == 0)
			return node->attribute[i];
	}
	fail_msg("%s has no attribute %s", node->name, name);
	return NULL;
}

static void check_ints(const Onnx__NodeProto *node, const char *name, size_t count,
		       const int64_t *expected)
{
	const Onnx__AttributeProto *attribute = find_attribute(node, name);

	assert_int_equal(attribute->type, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
	assert_int_equal(attribute->n_ints, count);
	assert_memory_equal(attribute->ints, expected, count * sizeof(*expected));
}

static void check_info(const Onnx__ValueInfoProto *info, const char *name, int rank,
		       const int64_t *dims)
{
	const Onnx__TypeProto__Tensor *tensor;

	assert_string_equal(info->name, name);
	assert_int_equal(info->type->value_case, ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE);
	tensor = info->type->tensor_type;
	assert_int_equal(tensor->elem_type, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
	assert_int_equal(tensor->shape->n_dim, rank);
	for (int i = 0; i < rank; i++)
		assert_int_equal(tensor->shape->dim[i]->dim_value, dims[i]);
}

TEST(lenet_is_written_whole)
{
	static const char *const order[] = {"Conv",    "MaxPool", "Conv", "MaxPool",
					    "Flatten", "Gemm",	  "Relu", "Gemm"};
	struct exported e;
	const Onnx__GraphProto *graph;
	const Onnx__NodeProto *conv, *pool, *gemm;

	export_zoo(&e, "lenet", 4);
	graph = e.model->graph;
	assert_int_equal(e.model->ir_version, 8);
	assert_int_equal(e.model->n_opset_import, 1);
	assert_string_equal(e.model->opset_import[0]->domain, "");
	assert_int_equal(e.model->opset_import[0]->version, 17);
	assert_string_equal(e.model->producer_name, "prony");
	assert_string_equal(graph->name, "lenet");
	check_nodes(graph, order, COUNT(order));
	assert_int_equal(graph->n_input, 1);
	check_info(graph->input[0], "input", 4, (const int64_t[]){4, 1, 28, 28});
	assert_int_equal(graph->n_output, 1);
	check_info(graph->output[0], "ip2", 2, (const int64_t[]){4, 10});

	conv = graph->node[0];
	assert_int_equal(conv->n_input, 3);
	assert_string_equal(conv->input[0], "input");
	assert_string_equal(conv->input[1], "conv1.weight");
	assert_string_equal(conv->input[2], "conv1.bias");
	assert_string_equal(conv->output[0], "conv1");
	check_ints(conv, "kernel_shape", 2, (const int64_t[]){5, 5});
	check_ints(conv, "strides", 2, (const int64_t[]){1, 1});
	check_ints(conv, "dilations", 2, (const int64_t[]){1, 1});
	check_ints(conv, "pads", 4, (const int64_t[]){0, 0, 0, 0});
	assert_int_equal(find_attribute(conv, "group")->i, 1);
	pool = graph->node[1];
	check_ints(pool, "strides", 2, (const int64_t[]){2, 2});
	assert_int_equal(find_attribute(pool, "ceil_mode")->i, 0);
	gemm = graph->node[5];
	assert_int_equal(find_attribute(gemm, "transB")->i, 1);
	assert_int_equal(find_attribute(gemm, "transA")->i, 0);
	assert_true(find_attribute(gemm, "alpha")->f == 1.0f);
	release(&e);
}

TEST(weights_are_written_bit_for_bit)
{
	struct exported e;

	export_zoo(&e, "lenet", 1);
	assert_int_equal(e.model->graph->n_initializer, e.weights.count);
	for (size_t i = 0; i < e.weights.count; i++) {
		const Onnx__TensorProto *tensor = e.model->graph->initializer[i];
		const struct tensor *weight = tensor_find(&e.weights, tensor->name);

		assert_non_null(weight);
		assert_int_equal(tensor->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
		assert_int_equal(tensor->n_dims, weight->shape.rank);
		assert_memory_equal(tensor->dims, weight->shape.dims,
				    tensor->n_dims * sizeof(int64_t));
		assert_int_equal(tensor->raw_data.len, tensor_bytes(weight));
		assert_memory_equal(tensor->raw_data.data, weight->data, tensor->raw_data.len);
	}
	release(&e);
}

TEST(dropout_is_left_out)
{
	static const char *const order[] = {"Gemm", "Relu", "Gemm", "Relu", "Gemm"};
	struct exported e;

	export_zoo(&e, "mlp", 2);
	check_nodes(e.model->graph, order, COUNT(order));
	assert_string_equal(e.model->graph->node[2]->input[0], "relu1");
	assert_string_equal(e.model->graph->output[0]->name, "fc3");
	release(&e);
}

/* The output keeps its name; layers that the logits do not need are omitted. */
TEST(dropout_as_the_last_layer)
{
	static const char *const order[] = {"Gemm", "Identity"};
	struct exported e;
	struct builder b = {.graph = &e.graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	int x, y;

	graph_init(&e.graph, "last");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	build_linear(&b, "unused", x, 3);
	y = build_dropout(&b, "drop1", build_linear(&b, "fc", x, 3), 0.5);
	check(build_finish(&b, build_dropout(&b, "drop2", y, 0.5), 0, NULL, &err), &err);
	export_graph(&e);
	check_nodes(e.model->graph, order, COUNT(order));
	assert_string_equal(e.model->graph->node[1]->input[0], "fc");
	assert_string_equal(e.model->graph->node[1]->output[0], "drop2");
	assert_string_equal(e.model->graph->output[0]->name, "drop2");
	assert_int_equal(e.model->graph->n_initializer, 2);
	release(&e);
}

TEST(a_mask_in_use_is_unsupported)
{
	SCOPED(graph) graph;
	struct builder b = {.graph = &graph, .error = ERROR_INIT};
	struct error err = ERROR_INIT;
	struct tensor_set weights;
	size_t length = 0;
	SCOPED(arena) arena;
	void *bytes = NULL;
	int x, mask;

	arena_init(&arena, 0);
	graph_init(&graph, "mask");
	x = build_input(&b, "input", DTYPE_F32, 2, 1, (const int64_t[]){6});
	x = build_linear(&b, "fc", x, 4);
	x = build_dropout(&b, "drop", x, 0.5);
	mask = graph.nodes[graph.values[x].producer].outputs[1];
	x = build_node(&b, OP_ADD, "sum", (const int[]){x, mask}, 2, NULL);
	check(build_finish(&b, x, 0, NULL, &err), &err);
	check(graph_initial_weights(&graph, 1, &arena, &weights, &err), &err);
	expect_error(onnx_export(&graph, &weights, &bytes, &length, &err), PRONY_UNSUPPORTED, &err,
		     "'drop'");
	assert_null(bytes);
}

TEST(weights_must_fit)
{
	struct error err = ERROR_INIT;
	void *bytes = NULL;
	size_t length = 5;
	struct exported e;

	export_zoo(&e, "mlp", 2);
	e.weights.tensors[2].shape.dims[0] = 511;
	expect_error(onnx_export(&e.graph, &e.weights, &bytes, &length, &err), PRONY_BAD_INPUT,
		     &err, "'fc2.weight'");
	e.weights.count = 2;
	expect_error(onnx_export(&e.graph, &e.weights, &bytes, &length, &err), PRONY_BAD_INPUT,
		     &err, "there are no weights for 'fc2.weight'");
	assert_null(bytes);
	assert_int_equal(length, 5);
	release(&e);
}

/* Exports a step of gpt2-bytes on two samples behind three tokens. */
static void export_step(struct exported *e, enum stage stage, enum onnx_caches caches)
{
	struct onnx_form form = {.caches = caches};
	struct error err = ERROR_INIT;
	size_t length = 0;
	void *bytes = NULL;

	arena_init(&e->arena, 0);
	check(zoo_build_step(zoo_find("gpt2-bytes", NULL), 2, 3, stage, &e->graph, &err), &err);
	check(graph_initial_weights(&e->graph, 1, &e->arena, &e->weights, &err), &err);
	check(onnx_export_form(&e->graph, &e->weights, &form, &bytes, &length, &err), &err);
	e->model = onnx__model_proto__unpack(NULL, length, bytes);
	assert_non_null(e->model);
	free(bytes);
}

static int count_op(const struct exported *e, const char *op)
{
	int count = 0;

	for (size_t i = 0; i < e->model->graph->n_node; i++)
		count += strcmp(e->model->graph->node[i]->op_type, op) == 0;
	return count;
}

TEST(caches_are_inputs_and_outputs)
{
	enum { CACHES = 2 * 4 }; /* keys and values of each block */
	static const struct {
		enum stage stage;
		enum onnx_caches caches;
		size_t fed, read;
		int scatters, opset;
	} rows[] = {
		{STAGE_DECODE, ONNX_CACHES_IN_PLACE, 2, CACHES, CACHES, 24},
		{STAGE_DECODE, ONNX_CACHES_READ, 2, CACHES, 0, 20},
		{STAGE_PREFILL, ONNX_CACHES_IN_PLACE, 1, CACHES, CACHES, 24},
		/* Nothing reads what a prompt writes. */
		{STAGE_PREFILL, ONNX_CACHES_READ, 1, 0, 0, 20},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct exported e;
		int first = 0;

		export_step(&e, rows[i].stage, rows[i].caches);
		while (e.graph.nodes[first].op != OP_TENSOR_SCATTER)
			first++;
		const struct node *scatter = &e.graph.nodes[first];
		const Onnx__GraphProto *file = e.model->graph;
		int output = onnx_cache_output(scatter, rows[i].caches);

		assert_int_equal(file->n_input, rows[i].fed + rows[i].read);
		assert_int_equal(file->n_output, 1 + CACHES);
		assert_string_equal(file->output[1]->name, e.graph.values[output].name);
		if (rows[i].read > 0)
			assert_string_equal(file->input[rows[i].fed]->name,
					    e.graph.values[scatter->inputs[0]].name);
		assert_int_equal(count_op(&e, "TensorScatter"), rows[i].scatters);
		assert_int_equal(e.model->opset_import[0]->version, rows[i].opset);
		release(&e);
	}
}

TEST(only_products_read_a_cache_that_is_not_written)
{
	struct error err = ERROR_INIT;
	struct exported e;
	struct builder b = {.graph = &e.graph, .error = ERROR_INIT};
	struct onnx_form form = {.caches = ONNX_CACHES_READ};
	size_t length = 0;
	void *bytes = NULL;

	graph_init(&e.graph, "sum");
	int x = build_input(&b, "x", DTYPE_F32, 2, 3, (const int64_t[]){1, 1, 4});
	int index = build_input(&b, "index", DTYPE_I64, 2, 0, NULL);
	int past = build_state(&b, "past", 4, (const int64_t[]){2, 1, 5, 4}, FILL_NORMAL);
	int y = build_node(&b, OP_TENSOR_SCATTER, "written", (const int[]){past, x, index}, 3,
			   NULL);
	y = build_flatten(&b, "flat", build_add(&b, "sum", y, x));
	check(build_finish_half_squares(&b, y, &err), &err);
	arena_init(&e.arena, 0);
	check(graph_initial_weights(&e.graph, 1, &e.arena, &e.weights, &err), &err);
	expect_error(onnx_export_form(&e.graph, &e.weights, &form, &bytes, &length, &err),
		     PRONY_UNSUPPORTED, &err,
		     "cache of node 'written': a node other than a matrix");
	graph_release(&e.graph);
	arena_release(&e.arena);
}

/* Features of all heads in one dimension where q, k, v and the result come in rows of tokens; a
 * llama turns q and k between its heads. */
TEST(attention_is_one_node)
{
	static const struct {
		const char *network;
		bool fuse;
		int nodes, opset, heads;
	} rows[] = {{"gpt2-bytes", true, 4, 23, 4},
		    {"gpt2-bytes", false, 0, 20, 0},
		    {"llama-tiny", true, 5, 24, 0}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct onnx_form form = {.fuse = rows[i].fuse};
		const Onnx__NodeProto *attention = NULL;
		struct error err = ERROR_INIT;
		struct exported e;
		size_t length = 0;
		void *bytes = NULL;

		arena_init(&e.arena, 0);
		check(zoo_build_step(zoo_find(rows[i].network, NULL), 2, 3, STAGE_FORWARD, &e.graph,
				     &err),
		      &err);
		check(graph_initial_weights(&e.graph, 1, &e.arena, &e.weights, &err), &err);
		check(onnx_export_form(&e.graph, &e.weights, &form, &bytes, &length, &err), &err);
		e.model = onnx__model_proto__unpack(NULL, length, bytes);
		free(bytes);
		assert_int_equal(form.fused, rows[i].nodes);
		assert_int_equal(count_op(&e, "Attention"), rows[i].nodes);
		assert_int_equal(count_op(&e, "Softmax"), form.attentions - form.fused);
		assert_int_equal(e.model->opset_import[0]->version, rows[i].opset);
		for (size_t k = 0; k < e.model->graph->n_node; k++)
			if (strcmp(e.model->graph->node[k]->op_type, "Attention") == 0)
				attention = e.model->graph->node[k];
		if (attention) {
			assert_int_equal(attention->n_input, 3);
			assert_int_equal(attention->attribute[1]->i, 1); /* causal */
			assert_int_equal(attention->n_attribute, rows[i].heads > 0 ? 4 : 2);
		}
		if (rows[i].heads > 0)
			assert_int_equal(attention->attribute[2]->i, rows[i].heads);
		release(&e);
	}
}
