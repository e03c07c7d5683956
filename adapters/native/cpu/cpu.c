/* The CPU's backend: its table, its threads and its memory. */
#include "adapters/native/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adapters/reasons.h"
#include "adapters/threads.h"

#define ALIGNMENT_BYTES 64
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static enum prony_status probe(struct device *device, const char *library, const char *word,
			       struct probe *found, struct error *err)
{
	enum prony_status status = onednn_load(&device->dnn, library, err);

	(void)word;
	if (status != PRONY_OK)
		return status;
	*found = (struct probe){.libraries = {{.name = "onednn"}},
				.library_count = 1,
				.devices = {"cpu"},
				.device_count = 1,
				.precisions = 1u << PRECISION_FP32};
	if (onednn_has_bf16(&device->dnn))
		found->precisions |= 1u << PRECISION_BF16;
	onednn_version_text(&device->dnn, found->libraries[0].version,
			    sizeof(found->libraries[0].version));
	snprintf(found->instruction_set, sizeof(found->instruction_set), "%s",
		 onednn_isa_text(&device->dnn));
	return PRONY_OK;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static enum prony_status open_device(struct device *device, const struct recipe *recipe,
				     struct effective *effective, struct error *err)
{
	const struct onednn *dnn = &device->dnn;
	enum prony_status status = onednn_start(&device->dnn, recipe->threads, err);
	char version[32];

	if (status != PRONY_OK)
		return status;
	device->kernels = kernels_pick();
	onednn_version_text(dnn, version, sizeof(version));
	*effective = (struct effective){
		.device = "cpu",
		/* Every primitive is created with fpmath strict. After the build, the primitives
		 * show how much of the network is bf16. */
		.precision = recipe->precision,
		.threads = onednn_threads(dnn),
		.mxcsr = threads_mxcsr(),
	};
	snprintf(effective->settings, sizeof(effective->settings),
		 "onednn=%s;isa=%s;runtime=%s;fpmath=strict;loops=%s;loop_threads=%d;bound=%s;"
		 "rmsprop_epsilon=outside;decay=all;wait_policy=%s;spin_count=%s%s",
		 version, onednn_isa_text(dnn), onednn_runtime_text(dnn), device->kernels->name,
		 dnn->threads, dnn->bound ? "yes" : "no", variable("OMP_WAIT_POLICY"),
		 variable("GOMP_SPINCOUNT"),
		 recipe->precision == PRECISION_BF16
			 ? ";low_precision=activations and copies of weights"
			 : "");
	return PRONY_OK;
}

static void close_device(struct device *device)
{
	cpu_release_kept(device);
	onednn_stop(&device->dnn);
}

static void supports(const struct recipe *recipe, struct strbuf *reasons)
{
	reasons_add_recipe(reasons, recipe, 1u << PRECISION_FP32 | 1u << PRECISION_BF16);
	if (recipe->precision == PRECISION_BF16 && !onednn_processor_has_bf16())
		reasons_add(reasons,
			    "precision bf16: this processor has neither AVX512_BF16 nor AMX");
}

/* Whether a window of an average pool extends beyond the padding; oneDNN would count that part as
 * padding. */
static bool pool_overhangs(const struct graph *graph, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = &graph->values[node->inputs[0]].shape;
	const struct shape *y = &graph->values[node->outputs[0]].shape;

	for (int i = 0; i < 2; i++) {
		if ((y->dims[2 + i] - 1) * a->strides[i] + a->kernel[i] >
		    x->dims[2 + i] + a->pads[i] + a->pads[i + 2])
			return true;
	}
	return false;
}

static void supports_node(const struct graph *graph, const struct node *node,
			  struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = &graph->values[node->inputs[0]].shape;

	if (node->op == OP_GEMM && (a->alpha != 1 || a->beta != 1 || a->trans_a))
		reasons_add(reasons, "Gemm '%s' has alpha, beta or transA", node->name);
	if (node->op == OP_AVERAGE_POOL && a->count_include_pad && pool_overhangs(graph, node))
		reasons_add(reasons,
			    "AveragePool '%s' has ceil_mode together with count_include_pad",
			    node->name);
	if (node->op == OP_LRN && x->rank < 3)
		reasons_add(reasons, "LRN '%s' has an input of %d dimensions", node->name, x->rank);
	if (node->op == OP_BATCH_NORM && x->rank > 5)
		reasons_add(reasons, "BatchNormalization '%s' has an input of %d dimensions",
			    node->name, x->rank);
}

/* A network with little work runs on one thread: waking threads and moving data between the caches
 * of two cores costs more than it saves. Where two cores share no cache, LeNet at batch 1 trains in
 * 290 us on one thread and in 700 us on two. All layers use the same number of threads, because a
 * small layer between two parallel ones finds its data spread over the caches: LeNet at batch 64
 * trains in 9.0 ms with only the small layers on one thread. */
static int choose_threads(const struct lowering *l)
{
	const double worthwhile_us = 200, macs_per_us = 4e4;
	double forward_us = (double)graph_macs(l->graph) / macs_per_us;

	/* TBB keeps the threads that it has started. */
	return forward_us < worthwhile_us && !cpu_onednn(l)->on_tbb ? 1 : cpu_onednn(l)->threads;
}

static void begin(struct lowering *l)
{
	struct node_work *works =
		arena_array(&l->program->arena, (size_t)l->graph->node_count + 1, sizeof(*works));

	for (int n = 0; n < l->graph->node_count; n++)
		l->nodes[n].work = &works[n];
	l->program->threads = choose_threads(l);
	onednn_use_threads(cpu_onednn(l), l->program->threads);
	if (l->program->threads < cpu_onednn(l)->threads)
		l->notes_length =
			(size_t)snprintf(l->notes, sizeof(l->notes),
					 "one thread, because the network has little work; ");
}

typedef enum prony_status lower_function(struct lowering *l, int n, struct error *err);

static lower_function *const functions[OP_COUNT] = {
	[OP_CONV] = cpu_conv,
	[OP_CONV_TRANSPOSE] = cpu_conv,
	[OP_MAX_POOL] = cpu_pool,
	[OP_AVERAGE_POOL] = cpu_pool,
	[OP_GLOBAL_AVERAGE_POOL] = cpu_pool,
	[OP_GEMM] = cpu_gemm,
	[OP_MATMUL] = cpu_matmul,
	[OP_RELU] = cpu_relu,
	[OP_ERF] = cpu_erf,
	[OP_SOFTMAX] = cpu_softmax,
	[OP_BATCH_NORM] = cpu_batch_norm,
	[OP_LAYER_NORM] = cpu_layer_norm,
	[OP_RMS_NORM] = cpu_row_norm,
	[OP_GROUP_NORM] = cpu_row_norm,
	[OP_INSTANCE_NORM] = cpu_row_norm,
	[OP_LRN] = cpu_lrn,
	[OP_EXPAND] = cpu_expand,
	[OP_RESIZE] = cpu_resize,
	[OP_CONCAT] = cpu_concat,
	[OP_GATHER] = cpu_gather,
	[OP_TENSOR_SCATTER] = cpu_cache,
	[OP_REDUCE_MEAN] = cpu_mean,
	[OP_DROPOUT] = cpu_dropout,
	[OP_ADD] = cpu_binary,
	[OP_SUB] = cpu_binary,
	[OP_MUL] = cpu_binary,
	[OP_DIV] = cpu_binary,
	[OP_LSTM] = cpu_recurrent,
	[OP_RNN] = cpu_recurrent,
	[OP_GRU] = cpu_recurrent,
	[OP_SOFTMAX_CROSS_ENTROPY] = cpu_cross_entropy,
	[OP_HALF_SQUARES] = cpu_half_squares,
	[OP_CONV_GRAD_INPUT] = cpu_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = cpu_conv_grad_weight,
	[OP_CONV_TRANSPOSE_GRAD_INPUT] = cpu_weighted_grad_input,
	[OP_CONV_TRANSPOSE_GRAD_WEIGHT] = cpu_weighted_grad_weight,
	[OP_MAX_POOL_GRAD] = cpu_pool_grad,
	[OP_AVERAGE_POOL_GRAD] = cpu_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = cpu_pool_grad,
	[OP_GEMM_GRAD_INPUT] = cpu_weighted_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = cpu_weighted_grad_weight,
	[OP_RELU_GRAD] = cpu_relu_grad,
	[OP_ELEMENTWISE_GRAD] = cpu_eltwise_grad,
	[OP_SOFTMAX_GRAD] = cpu_softmax_grad,
	[OP_BATCH_NORM_GRAD] = cpu_batch_norm_grad,
	[OP_LAYER_NORM_GRAD] = cpu_layer_norm_grad,
	[OP_RMS_NORM_GRAD] = cpu_row_norm_grad,
	[OP_GROUP_NORM_GRAD] = cpu_row_norm_grad,
	[OP_INSTANCE_NORM_GRAD] = cpu_row_norm_grad,
	[OP_RESIZE_GRAD] = cpu_resize_grad,
	[OP_LRN_GRAD] = cpu_lrn_grad,
	[OP_REDUCE_MEAN_GRAD] = cpu_mean_grad,
	[OP_GATHER_GRAD] = cpu_gather_grad,
	[OP_DROPOUT_GRAD] = cpu_dropout_grad,
	[OP_BROADCAST_GRAD] = cpu_broadcast_grad,
	[OP_LSTM_GRAD] = cpu_recurrent_grad,
	[OP_RNN_GRAD] = cpu_recurrent_grad,
	[OP_GRU_GRAD] = cpu_recurrent_grad,
};

static lower_function *function_of(enum op op)
{
	return functions[op] || !cpu_has_function(op) ? functions[op] : cpu_eltwise;
}

static bool knows(enum op op)
{
	return function_of(op) != NULL;
}

static enum prony_status lower(struct lowering *l, int n, struct error *err)
{
	return function_of(l->graph->nodes[n].op)(l, n, err);
}

static bool fuses(const struct node *node)
{
	return cpu_has_function(node->op);
}

static void release_node(const struct lowering *l, struct node_state *state)
{
	const struct node_work *work = state->work;
	dnnl_primitive_desc_t owned[] = {work->forward, work->backward_data,
					 work->backward_weights};

	for (int k = 0; k < 3; k++) {
		if (owned[k])
			cpu_onednn(l)->primitive_desc_destroy(owned[k]);
	}
}

static enum prony_status describe(struct device *device, struct operand *operand, struct error *err)
{
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status = cpu_describe(&device->dnn, &operand->layout, &desc, err);

	operand->description = desc;
	if (operand->layout.blob)
		operand->layout.blob = desc;
	return status;
}

static enum prony_status bind(struct device *device, struct operand *operand, struct error *err)
{
	dnnl_memory_t memory = NULL;
	enum prony_status status;

	if (operand->memory)
		return onednn_check(
			device->dnn.memory_set_data_handle(operand->memory, operand->data),
			"memory object", "batch", err);
	if (!operand->description)
		return PRONY_OK;
	status = onednn_check(device->dnn.memory_create(&memory, operand->description,
							device->dnn.engine, operand->data),
			      "memory object", "operand", err);
	operand->memory = memory;
	return status;
}

static void forget(struct device *device, struct operand *operand)
{
	if (operand->memory)
		device->dnn.memory_destroy(operand->memory);
	if (operand->description)
		device->dnn.memory_desc_destroy(operand->description);
}

static void *allocate(struct device *device, size_t bytes)
{
	/* Large regions start at a huge page: fewer TLB misses in every step. */
	size_t alignment = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : ALIGNMENT_BYTES;
	size_t rounded = (bytes / alignment + 1) * alignment;
	void *memory = aligned_alloc(alignment, rounded);

	(void)device;
	if (!memory)
		return NULL;
	if (alignment == HUGE_PAGE_BYTES)
		(void)madvise(memory, rounded, MADV_HUGEPAGE); /* only a hint */
	return memset(memory, 0, rounded);
}

static void free_memory(struct device *device, void *memory)
{
	(void)device;
	free(memory);
}

static enum prony_status copy_in(struct program *program, int operand, const struct layout *layout,
				 const void *from, struct error *err)
{
	const struct onednn *dnn = &program->device->dnn;
	const struct operand *to = &program->operands[operand];
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status = cpu_describe(dnn, layout, &desc, err);

	if (status != PRONY_OK)
		return status;
	status = cpu_reorder_now(dnn, desc, from, to->description, to->data, err);
	dnn->memory_desc_destroy(desc);
	return status;
}

static enum prony_status copy_out(struct program *program, int operand, const struct layout *layout,
				  void *to, struct error *err)
{
	const struct onednn *dnn = &program->device->dnn;
	const struct operand *from = &program->operands[operand];
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status;

	if (!layout) {
		memcpy(to, from->data, from->bytes);
		return PRONY_OK;
	}
	status = cpu_describe(dnn, layout, &desc, err);
	if (status != PRONY_OK)
		return status;
	status = cpu_reorder_now(dnn, from->description, from->data, desc, to, err);
	dnn->memory_desc_destroy(desc);
	return status;
}

static enum prony_status convert(struct program *program, int from, int to, struct error *err)
{
	const struct operand *source = &program->operands[from], *target = &program->operands[to];

	return cpu_reorder_now(&program->device->dnn, source->description, source->data,
			       target->description, target->data, err);
}

/* Commands read the batch in place. */
static enum prony_status feed(struct program *program, int slot, int input, void *data,
			      size_t bytes, void **address, struct error *err)
{
	(void)program;
	(void)slot;
	(void)input;
	(void)bytes;
	(void)err;
	*address = data;
	return PRONY_OK;
}

static enum prony_status sync_device(struct device *device, struct error *err)
{
	return onednn_check(device->dnn.stream_wait(device->dnn.stream), "wait", "stream", err);
}

const struct backend backend_cpu = {
	.device = "cpu",
	.device_bytes = sizeof(struct device),
	.probe = probe,
	.open = open_device,
	.close = close_device,
	.knows = knows,
	.supports = supports,
	.supports_node = supports_node,
	.begin = begin,
	.lower = lower,
	.attention = cpu_attention,
	.fuses = fuses,
	.copy = cpu_copy,
	.copy_box = cpu_copy_box,
	.fill = cpu_fill,
	.update = cpu_update,
	.check_types = cpu_check_types,
	.release_node = release_node,
	.same_layout = cpu_same_layout,
	.same_blocks = cpu_same_blocks,
	.view = cpu_view,
	.permute = cpu_permute,
	.describe = describe,
	.bind = bind,
	.forget = forget,
	.allocate = allocate,
	.free = free_memory,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.convert = convert,
	.feed = feed,
	.finish = cpu_finish,
	.run = cpu_run,
	.run_one = cpu_run_one,
	.sync = sync_device,
	.release_commands = cpu_release_commands,
};
