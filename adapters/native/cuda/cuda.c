/* The table of the backend for NVIDIA's GPUs: its device, its memory, its operators. */
#include "adapters/native/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/kernels.h"
#include "adapters/probe.h"
#include "adapters/reasons.h"

#define ALL_PRECISIONS                                                                             \
	(1u << PRECISION_FP32 | 1u << PRECISION_TF32 | 1u << PRECISION_FP16 | 1u << PRECISION_BF16)

/* The number of a device word: "cuda:1". */
static int ordinal_of(const char *word)
{
	const char *colon = strchr(word, ':');

	return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static enum prony_status find_device(struct device *device, struct error *err)
{
	const struct cuda_driver *driver = &device->driver;
	int major = 0, minor = 0, status;

	if (device->ordinal >= driver->devices)
		return error_set(err, PRONY_UNSUPPORTED,
				 "there is no device cuda:%d: the driver knows %d, from cuda:0 on",
				 device->ordinal, driver->devices);
	status = driver->DeviceGet(&device->handle, device->ordinal);
	if (status == CUDA_SUCCESS)
		status = driver->DeviceGetName(device->name, sizeof(device->name), device->handle);
	if (status == CUDA_SUCCESS)
		status = driver->DeviceGetAttribute(
			&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->handle);
	if (status == CUDA_SUCCESS)
		status = driver->DeviceGetAttribute(
			&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->handle);
	if (status == CUDA_SUCCESS)
		status = driver->DeviceGetAttribute(&device->multiprocessors,
						    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
						    device->handle);
	device->capability = 10 * major + minor;
	return cuda_check(driver, status, "search", "device", err);
}

static enum prony_status probe(struct device *device, const char *library, const char *word,
			       struct probe *found, struct error *err)
{
	char version[32];
	enum prony_status status;

	(void)library;
	device->ordinal = ordinal_of(word);
	status = cuda_driver_load(&device->driver, err);
	if (status == PRONY_OK)
		status = cuda_kernels_check(err);
	if (status == PRONY_OK)
		status = find_device(device, err);
	if (status == PRONY_OK)
		status = cublaslt_load(&device->blas, err);
	if (status == PRONY_OK)
		status = cudnn_load(&device->dnn, NULL, err);
	if (status != PRONY_OK)
		return status;
	*found = (struct probe){.precisions = ALL_PRECISIONS};
	cuda_version_text(device->driver.version, version, sizeof(version));
	probe_add_library(found, "cuda driver", version);
	cudnn_version_text(&device->dnn, version, sizeof(version));
	probe_add_library(found, "cudnn", version);
	cublaslt_version_text(&device->blas, version, sizeof(version));
	probe_add_library(found, "cublaslt", version);
	for (int i = 0; i < device->driver.devices && i < ADAPTER_DEVICES_MAX - 1; i++)
		snprintf(found->devices[found->device_count++], TARGET_WORD_BYTES, "cuda:%d", i);
	snprintf(found->instruction_set, sizeof(found->instruction_set), "sm_%d of %s",
		 device->capability, device->name);
	return PRONY_OK;
}

static enum prony_status start(struct device *device, struct error *err)
{
	const struct cuda_driver *driver = &device->driver;
	int status = driver->DevicePrimaryCtxRetain(&device->context, device->handle);

	if (status == CUDA_SUCCESS)
		status = driver->CtxSetCurrent(device->context);
	if (status == CUDA_SUCCESS)
		status = driver->StreamCreate(&device->stream, CU_STREAM_NON_BLOCKING);
	if (status != CUDA_SUCCESS)
		return cuda_check(driver, status, "start", device->name, err);
	status = device->blas.Create(&device->blas_handle);
	if (status != CUBLAS_STATUS_SUCCESS)
		return cublaslt_check(&device->blas, status, "start", device->name, err);
	status = device->dnn.Create(&device->dnn_handle);
	if (status == CUDNN_STATUS_SUCCESS)
		status = device->dnn.SetStream(device->dnn_handle, device->stream);
	if (status != CUDNN_STATUS_SUCCESS)
		return cudnn_check(&device->dnn, status, "start", device->name, err);
	return cuda_kernels_load(device, err);
}

static enum prony_status open_device(struct device *device, const struct recipe *recipe,
				     struct effective *effective, struct error *err)
{
	char driver[32], dnn[32], blas[32];
	bool strict = recipe->precision == PRECISION_FP32;
	enum prony_status status = start(device, err);

	if (status != PRONY_OK)
		return status;
	device->precision = recipe->precision;
	device->capture = strcmp(probe_environment("PRONY_CUDA_GRAPH", "1"), "0") != 0;
	cuda_version_text(device->driver.version, driver, sizeof(driver));
	cudnn_version_text(&device->dnn, dnn, sizeof(dnn));
	cublaslt_version_text(&device->blas, blas, sizeof(blas));
	*effective = (struct effective){.precision = recipe->precision, .threads = recipe->threads};
	snprintf(effective->device, sizeof(effective->device), "cuda:%d", device->ordinal);
	snprintf(effective->settings, sizeof(effective->settings),
		 "gpu=%s;sm=%d;cuda_driver=%s;cudnn=%s;cublaslt=%s;graph=%s;layout=%s;"
		 "conv_plans=%s;"
		 "rmsprop_epsilon=outside;decay=all%s",
		 device->name, device->capability, driver, dnn, blas,
		 device->capture ? "step" : "no", strict ? "nchw" : "nhwc",
		 cuda_conv_measures() ? "measured" : "heuristics",
		 recipe->precision == PRECISION_FP16 || recipe->precision == PRECISION_BF16
			 ? ";low_precision=activations and copies of weights"
			 : "");
	return PRONY_OK;
}

/* Also after a failed start: what was not made is NULL. */
static void close_device(struct device *device)
{
	const struct cuda_driver *driver = &device->driver;

	cuda_conv_close(device);
	cuda_attention_close(device);
	if (device->dnn_handle)
		device->dnn.Destroy(device->dnn_handle);
	if (device->blas_handle)
		device->blas.Destroy(device->blas_handle);
	for (int i = 0; i < device->module_count; i++)
		driver->ModuleUnload(device->modules[i]);
	if (device->stream)
		driver->StreamDestroy(device->stream);
	if (device->context)
		driver->DevicePrimaryCtxRelease(device->handle);
}

static void supports(const struct recipe *recipe, struct strbuf *reasons)
{
	reasons_add_recipe(reasons, recipe, ALL_PRECISIONS);
}

/* Whether each factor has all matrices of the result's batch, or one for all of them. */
static bool batches_fit(const struct graph *graph, const struct node *node)
{
	const struct shape *y = &graph->values[node->outputs[0]].shape;
	int64_t batch = shape_elements(y) / (y->dims[y->rank - 2] * y->dims[y->rank - 1]);

	for (int i = 0; i < 2; i++) {
		const struct shape *x = &graph->values[node->inputs[i]].shape;
		int64_t own = shape_elements(x) / (x->dims[x->rank - 2] * x->dims[x->rank - 1]);

		if (own != batch && own != 1)
			return false;
	}
	return true;
}

static void supports_node(const struct graph *graph, const struct node *node,
			  struct strbuf *reasons)
{
	const struct attributes *a = &node->attributes;

	if (node->op == OP_MATMUL && !batches_fit(graph, node))
		reasons_add(reasons,
			    "MatMul '%s' repeats some of the dimensions before the last two",
			    node->name);
	reasons_add_recurrent(reasons, node);
	if (node->op == OP_GEMM && (a->alpha != 1 || a->beta != 1 || a->trans_a))
		reasons_add(reasons, "Gemm '%s' has alpha, beta or transA", node->name);
}

static void begin(struct lowering *l)
{
	struct node_work *works =
		arena_array(&l->program->arena, (size_t)l->graph->node_count + 1, sizeof(*works));

	for (int n = 0; n < l->graph->node_count; n++)
		l->nodes[n].work = &works[n];
}

typedef enum prony_status lower_function(struct lowering *l, int n, struct error *err);

static lower_function *const functions[OP_COUNT] = {
	[OP_CONV] = cuda_conv,
	[OP_CONV_GRAD_INPUT] = cuda_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = cuda_conv_grad_weight,
	[OP_CONV_TRANSPOSE] = cuda_conv_transpose,
	[OP_CONV_TRANSPOSE_GRAD_INPUT] = cuda_conv_grad_input,
	[OP_CONV_TRANSPOSE_GRAD_WEIGHT] = cuda_conv_grad_weight,
	[OP_MAX_POOL] = cuda_pool,
	[OP_AVERAGE_POOL] = cuda_pool,
	[OP_GLOBAL_AVERAGE_POOL] = cuda_pool,
	[OP_MAX_POOL_GRAD] = cuda_pool_grad,
	[OP_AVERAGE_POOL_GRAD] = cuda_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = cuda_pool_grad,
	[OP_BATCH_NORM] = cuda_batch_norm,
	[OP_BATCH_NORM_GRAD] = cuda_batch_norm_grad,
	[OP_LAYER_NORM] = cuda_layer_norm,
	[OP_LAYER_NORM_GRAD] = cuda_layer_norm_grad,
	[OP_RMS_NORM] = cuda_layer_norm,
	[OP_RMS_NORM_GRAD] = cuda_layer_norm_grad,
	[OP_GROUP_NORM] = cuda_group_norm,
	[OP_GROUP_NORM_GRAD] = cuda_group_norm_grad,
	[OP_INSTANCE_NORM] = cuda_group_norm,
	[OP_INSTANCE_NORM_GRAD] = cuda_group_norm_grad,
	[OP_RESIZE] = cuda_resize,
	[OP_RESIZE_GRAD] = cuda_resize_grad,
	[OP_LRN] = cuda_lrn,
	[OP_LRN_GRAD] = cuda_lrn_grad,
	[OP_LSTM] = cuda_recurrent,
	[OP_RNN] = cuda_recurrent,
	[OP_LSTM_GRAD] = cuda_recurrent_grad,
	[OP_RNN_GRAD] = cuda_recurrent_grad,
	[OP_GEMM] = cuda_gemm,
	[OP_GEMM_GRAD_INPUT] = cuda_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = cuda_gemm_grad_weight,
	[OP_MATMUL] = cuda_matmul,
	[OP_RELU] = cuda_eltwise,
	[OP_RELU_GRAD] = cuda_relu_grad,
	[OP_ELEMENTWISE_GRAD] = cuda_eltwise_grad,
	[OP_ADD] = cuda_binary,
	[OP_SUB] = cuda_binary,
	[OP_MUL] = cuda_binary,
	[OP_DIV] = cuda_binary,
	[OP_EXPAND] = cuda_expand,
	[OP_BROADCAST_GRAD] = cuda_broadcast_grad,
	[OP_REDUCE_MEAN] = cuda_mean,
	[OP_REDUCE_MEAN_GRAD] = cuda_mean_grad,
	[OP_SOFTMAX] = cuda_softmax,
	[OP_SOFTMAX_GRAD] = cuda_softmax_grad,
	[OP_DROPOUT] = cuda_dropout,
	[OP_DROPOUT_GRAD] = cuda_dropout_grad,
	[OP_GATHER] = cuda_gather,
	[OP_GATHER_GRAD] = cuda_gather_grad,
	[OP_TENSOR_SCATTER] = cuda_scatter,
	[OP_CONCAT] = cuda_concat,
	[OP_SOFTMAX_CROSS_ENTROPY] = cuda_cross_entropy,
	[OP_HALF_SQUARES] = cuda_half_squares,
};

static lower_function *function_of(enum op op)
{
	return functions[op] || !cuda_has_function(op) ? functions[op] : cuda_eltwise;
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
	return node->op == OP_RELU;
}

/* This is called last in planning. Without an update, gradients are divided by the loss scale here.
 */
static enum prony_status check_types(struct lowering *l, struct error *err)
{
	(void)err;
	if (l->recipe->stage == STAGE_FORWARD_BACKWARD)
		cuda_unscale(l);
	cuda_conv_keep(l->program->device);
	snprintf(l->types, sizeof(l->types), "products in %s with sums in fp32; ",
		 precision_name(l->recipe->precision));
	return PRONY_OK;
}

static void release_node(const struct lowering *l, struct node_state *state)
{
	(void)l;
	(void)state;
}

/* Layouts have no blobs, and addresses are read from operands when a command is issued. */
static enum prony_status describe(struct device *device, struct operand *operand, struct error *err)
{
	(void)device;
	(void)operand;
	(void)err;
	return PRONY_OK;
}

static void forget(struct device *device, struct operand *operand)
{
	(void)device;
	(void)operand;
}

static CUdeviceptr address_of(const void *data)
{
	return (CUdeviceptr)(uintptr_t)data;
}

static enum prony_status sync_device(struct device *device, struct error *err)
{
	return cuda_check(&device->driver, device->driver.StreamSynchronize(device->stream), "work",
			  device->name, err);
}

static void *allocate(struct device *device, size_t bytes)
{
	const struct cuda_driver *driver = &device->driver;
	CUdeviceptr memory = 0;

	if (bytes == 0)
		bytes = 1;
	if (driver->MemAlloc(&memory, bytes) != CUDA_SUCCESS)
		return NULL;
	if (driver->MemsetD8Async(memory, 0, bytes, device->stream) == CUDA_SUCCESS &&
	    driver->StreamSynchronize(device->stream) == CUDA_SUCCESS)
		return (void *)(uintptr_t)memory;
	driver->MemFree(memory);
	return NULL;
}

static void free_memory(struct device *device, void *memory)
{
	if (memory)
		device->driver.MemFree(address_of(memory));
}

static enum prony_status write_memory(struct device *device, const void *to, const void *from,
				      size_t bytes, struct error *err)
{
	enum prony_status status = cuda_check(
		&device->driver,
		device->driver.MemcpyHtoDAsync(address_of(to), from, bytes, device->stream), "copy",
		"host to device", err);

	return status == PRONY_OK ? sync_device(device, err) : status;
}

static enum prony_status read_memory(struct device *device, void *to, const void *from,
				     size_t bytes, struct error *err)
{
	enum prony_status status = cuda_check(
		&device->driver,
		device->driver.MemcpyDtoHAsync(to, address_of(from), bytes, device->stream), "copy",
		"device to host", err);

	return status == PRONY_OK ? sync_device(device, err) : status;
}

/* Copies elements of four bytes between layouts of the same dimensions, on the host. */
static void rearrange(const struct layout *from_layout, const void *from,
		      const struct layout *to_layout, void *to)
{
	const uint32_t *source = from;
	uint32_t *target = to;
	int64_t index[TENSOR_MAX_RANK] = {0};
	int last = from_layout->rank - 1;

	for (;;) {
		int64_t a = 0, b = 0;
		int d = last - 1;

		for (int i = 0; i < last; i++) {
			a += index[i] * from_layout->strides[i];
			b += index[i] * to_layout->strides[i];
		}
		for (int64_t i = 0; i < from_layout->dims[last]; i++)
			target[b + i * to_layout->strides[last]] =
				source[a + i * from_layout->strides[last]];
		for (; d >= 0 && ++index[d] == from_layout->dims[d]; d--)
			index[d] = 0;
		if (d < 0)
			return;
	}
}

/* Weights, states and logits are fp32 on both sides. */
static enum prony_status check_pair(const struct layout *a, const struct layout *b,
				    struct error *err)
{
	return a->type == DTYPE_F32 && b->type == DTYPE_F32 && layout_same_dims(a, b)
		       ? PRONY_OK
		       : error_set(err, PRONY_INTERNAL,
				   "an array of the host does not fit its operand");
}

static enum prony_status copy_in(struct program *program, int operand, const struct layout *layout,
				 const void *from, struct error *err)
{
	const struct operand *to = &program->operands[operand];
	enum prony_status status = check_pair(layout, &to->layout, err);
	void *staged;

	if (status != PRONY_OK || layout_same_strides(layout, &to->layout))
		return status == PRONY_OK
			       ? write_memory(program->device, to->data, from, to->bytes, err)
			       : status;
	staged = calloc(1, to->bytes);
	if (!staged)
		return error_set(err, PRONY_NOMEM, "no memory for weights");
	rearrange(layout, from, &to->layout, staged);
	status = write_memory(program->device, to->data, staged, to->bytes, err);
	free(staged);
	return status;
}

static enum prony_status copy_out(struct program *program, int operand, const struct layout *layout,
				  void *to, struct error *err)
{
	const struct operand *from = &program->operands[operand];
	enum prony_status status = layout ? check_pair(layout, &from->layout, err) : PRONY_OK;
	void *staged;

	if (status != PRONY_OK)
		return status;
	if (!layout || layout_same_strides(layout, &from->layout))
		return read_memory(program->device, to, from->data, from->bytes, err);
	staged = malloc(from->bytes);
	if (!staged)
		return error_set(err, PRONY_NOMEM, "no memory for weights");
	status = read_memory(program->device, staged, from->data, from->bytes, err);
	if (status == PRONY_OK)
		rearrange(&from->layout, staged, layout, to);
	free(staged);
	return status;
}

/* Each array of a slot has memory of the device from its first call on, freed with the commands. */
static enum prony_status feed(struct program *program, int slot, int input, void *data,
			      size_t bytes, void **address, struct error *err)
{
	(void)slot;
	(void)input;
	if (!*address)
		*address = allocate(program->device, bytes);
	if (!*address)
		return error_set(err, PRONY_OUT_OF_MEMORY, "no memory for %zu bytes of a batch",
				 bytes);
	return write_memory(program->device, *address, data, bytes, err);
}

static void release_commands(struct program *program)
{
	cuda_profile_release(program->device);
	cuda_release_commands(program);
	for (int i = 0; program->fed && i < program->slots * program->arrays; i++)
		free_memory(program->device, program->fed[i]);
}

const struct backend backend_cuda = {
	.device = "cuda",
	.device_bytes = sizeof(struct device),
	.probe = probe,
	.open = open_device,
	.close = close_device,
	.knows = knows,
	.supports = supports,
	.supports_node = supports_node,
	.begin = begin,
	.lower = lower,
	.takes_attention = cuda_takes_attention,
	.attention = cuda_attention,
	.fuses = fuses,
	.copy = cuda_copy,
	.copy_box = cuda_copy_box,
	.fill = cuda_fill,
	.update = cuda_update,
	.updates_copies = true,
	.check_types = check_types,
	.release_node = release_node,
	.describe = describe,
	.bind = describe,
	.forget = forget,
	.allocate = allocate,
	.free = free_memory,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.convert = cuda_convert,
	.feed = feed,
	.finish = cuda_finish,
	.run = cuda_run,
	.run_one = cuda_run_one,
	.sync = sync_device,
	.profile_begin = cuda_profile_begin,
	.profile_end = cuda_profile_end,
	.release_commands = release_commands,
};
