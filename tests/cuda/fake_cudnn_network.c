/* The fake of cuDNN: graphs of products, reductions and functions, which are attention and its
 * gradients. Each operation is computed on its own in float64 as the header of cuDNN documents it;
 * values of 16 bits are rounded. It takes any such graph; which ones cuDNN has engines for is what
 * test_plan_on_cudnn asks. */
#include "tests/cuda/fake_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/cuda/fake_driver.h"

/* The operands and the result of an operation, and where its mode is. */
static const struct form {
	int descriptor, in[3], out, how, mode;
} forms[] = {
	{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
	 {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
	  CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
	 CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
	 CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
	 CUDNN_ATTR_POINTWISE_MODE},
	{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
	 {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, -1},
	 CUDNN_ATTR_OPERATION_MATMUL_CDESC,
	 CUDNN_ATTR_OPERATION_MATMUL_DESC,
	 -1},
	{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
	 {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, -1, -1},
	 CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
	 CUDNN_ATTR_OPERATION_REDUCTION_DESC,
	 CUDNN_ATTR_REDUCTION_OPERATOR},
	{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
	 {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, -1, -1},
	 CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
	 -1,
	 -1},
	{CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
	 {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, -1},
	 CUDNN_ATTR_OPERATION_RNG_YDESC,
	 CUDNN_ATTR_OPERATION_RNG_DESC,
	 CUDNN_ATTR_RNG_DISTRIBUTION},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* The tensor's place in the network, where it is added unless it is there; -1: not set. */
static int place(const struct fake_descriptor *operation, int attribute, struct fake_network *n)
{
	struct fake_tensor tensor;

	if (attribute < 0 || !fake_entry(operation, attribute) ||
	    !fake_tensor_read(operation, attribute, &tensor))
		return -1;
	for (int i = 0; i < n->tensor_count; i++)
		if (n->tensors[i].uid == tensor.uid)
			return i;
	n->tensors[n->tensor_count] = tensor;
	return n->tensor_count++;
}

static bool is_narrow(const struct fake_tensor *t)
{
	return t->type == CUDNN_DATA_HALF || t->type == CUDNN_DATA_BFLOAT16;
}

/* What cuDNN's engines were seen to want, or are documented to. */
static int judge(const struct fake_network *n)
{
	for (int i = 0; i < n->tensor_count; i++) {
		const struct fake_tensor *t = &n->tensors[i];

		if (t->is_virtual || t->by_value || !is_narrow(t))
			continue;
		if (t->dims[2] * t->dims[3] > 1 && t->strides[2] != 1 && t->strides[3] != 1)
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "features are not adjacent");
	}
	for (int i = 0; i < n->operation_count; i++) {
		const struct fake_operation *o = &n->operations[i];
		const struct fake_tensor *a = &n->tensors[o->in[0]], *c = &n->tensors[o->out];

		if (o->descriptor != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			continue;
		if (!is_narrow(a) && a->is_virtual && !c->is_virtual && is_narrow(c))
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED,
					 "a factor of the second product is not of 16 bits");
		if (a->dims[3] != n->tensors[o->in[1]].dims[2] || a->dims[2] != c->dims[2] ||
		    n->tensors[o->in[1]].dims[3] != c->dims[3])
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "the factors do not fit");
		if (i == 0 && (!is_narrow(a) || a->dims[3] % 8 != 0))
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
					 "attention is of 16 bits and of 8, 16, ... features");
	}
	return CUDNN_STATUS_SUCCESS;
}

int fake_network_read(const struct fake_descriptor *graph, struct fake_network *n)
{
	const struct fake_entry *operations = fake_entry(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	struct fake_descriptor *const *list = operations->data;

	*n = (struct fake_network){.tensor_count = 0};
	for (int64_t i = 0; i < operations->count; i++) {
		struct fake_operation *o = &n->operations[n->operation_count++];
		const struct form *form = forms;
		const struct fake_descriptor *how;
		const struct fake_entry *axis, *probability;

		while (form < forms + FORMS && form->descriptor != list[i]->type)
			form++;
		if (form == forms + FORMS || n->tensor_count + 4 > FAKE_TENSORS)
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
					 "the fake has no such graph");
		o->descriptor = list[i]->type;
		for (int k = 0; k < 3; k++)
			o->in[k] = place(list[i], form->in[k], n);
		o->out = place(list[i], form->out, n);
		how = form->how < 0 ? NULL : fake_child(list[i], form->how);
		if (o->in[0] < 0 || o->out < 0 || (form->how >= 0 && !how))
			return fake_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor is of another type");
		o->mode = how && form->mode >= 0 ? fake_word(how, form->mode, -1) : 0;
		axis = how ? fake_entry(how, CUDNN_ATTR_POINTWISE_AXIS) : NULL;
		o->axis = axis ? *(const int64_t *)axis->data : -1;
		probability =
			how ? fake_entry(how, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY) : NULL;
		o->probability = probability ? *(const double *)probability->data : 0;
	}
	return judge(n);
}

/* All that an execution needs: the driver copies it, and a captured graph runs it again. */
struct task {
	struct fake_network network;
	void *memory[FAKE_TENSORS];   /* of arrays */
	double numbers[FAKE_TENSORS]; /* of those that are given by value */
	void *workspace;
	int64_t workspace_bytes;
};

static int64_t count_of(const struct fake_tensor *t)
{
	return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/* The index of element i in row-major order. */
static void index_of(const struct fake_tensor *t, int64_t i, int64_t out[4])
{
	for (int k = 3; k >= 0; k--) {
		out[k] = i % t->dims[k];
		i /= t->dims[k];
	}
}

static int64_t offset_of(const struct fake_tensor *t, int64_t i)
{
	int64_t index[4];

	index_of(t, i, index);
	return index[0] * t->strides[0] + index[1] * t->strides[1] + index[2] * t->strides[2] +
	       index[3] * t->strides[3];
}

/* The number of a tensor that belongs to that index of another one; dimensions of 1 repeat. */
static double at(const struct fake_tensor *t, const double *values, const int64_t index[4])
{
	int64_t i = 0;

	for (int k = 0; k < 4; k++)
		i = i * t->dims[k] + (t->dims[k] == 1 ? 0 : index[k]);
	return values[i];
}

static double function_of(const struct fake_operation *o, const int64_t index[4], double x,
			  double b, double t)
{
	switch (o->mode) {
	case CUDNN_POINTWISE_ADD:
		return x + b;
	case CUDNN_POINTWISE_MUL:
		return x * b;
	case CUDNN_POINTWISE_DIV:
		return x / b;
	case CUDNN_POINTWISE_SUB:
		return x - b;
	case CUDNN_POINTWISE_EXP:
		return exp(x);
	case CUDNN_POINTWISE_LOG:
		return log(x);
	case CUDNN_POINTWISE_CMP_GE:
		return x >= b;
	case CUDNN_POINTWISE_GEN_INDEX:
		return (double)index[o->axis];
	case CUDNN_POINTWISE_BINARY_SELECT:
		return t != 0 ? x : b;
	default:
		return x;
	}
}

static double product_at(const struct fake_tensor *a, const double *x, const struct fake_tensor *b,
			 const double *y, const int64_t index[4])
{
	double sum = 0;

	for (int64_t k = 0; k < a->dims[3]; k++)
		sum += at(a, x, (const int64_t[]){index[0], index[1], index[2], k}) *
		       at(b, y, (const int64_t[]){index[0], index[1], k, index[3]});
	return sum;
}

/* The sum or the largest number of a row. */
static double reduction_at(const struct fake_tensor *x, const double *values, int mode,
			   const int64_t index[4])
{
	double result = mode == CUDNN_REDUCE_TENSOR_MAX ? (double)-INFINITY : 0;

	for (int64_t k = 0; k < x->dims[3]; k++) {
		double value = at(x, values, (const int64_t[]){index[0], index[1], index[2], k});

		result = mode == CUDNN_REDUCE_TENSOR_MAX ? fmax(result, value) : result + value;
	}
	return result;
}

/* Element i of a mask: the same for the same seed and offset. */
static double draw_at(double seed, double offset, double probability, int64_t i)
{
	uint64_t x = (uint64_t)(int64_t)seed * UINT64_C(0x9e3779b97f4a7c15) +
		     (uint64_t)(int64_t)offset + (uint64_t)i;

	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)(x >> 11) * 0x1p-53 < probability;
}

/* The same memory with other dimensions. */
static void reshape(const struct fake_tensor *x, const double *from, const struct fake_tensor *y,
		    double *to)
{
	int64_t count = count_of(x), last = 0;
	double *memory;

	for (int k = 0; k < 4; k++)
		last += (x->dims[k] - 1) * x->strides[k] + (y->dims[k] - 1) * y->strides[k];
	memory = memory_alloc((size_t)(last + 1) * sizeof(*memory));
	for (int64_t i = 0; i < count; i++)
		memory[offset_of(x, i)] = from[i];
	for (int64_t i = 0; i < count_of(y); i++)
		to[i] = memory[offset_of(y, i)];
	free(memory);
}

static void compute(const struct fake_network *n, const struct fake_operation *o,
		    double *values[FAKE_TENSORS])
{
	const struct fake_tensor *in[3], *out = &n->tensors[o->out];
	const double *x[3];

	for (int k = 0; k < 3; k++) {
		in[k] = o->in[k] < 0 ? NULL : &n->tensors[o->in[k]];
		x[k] = o->in[k] < 0 ? NULL : values[o->in[k]];
	}
	if (o->descriptor == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
		reshape(in[0], x[0], out, values[o->out]);
		return;
	}
	for (int64_t i = 0; i < count_of(out); i++) {
		int64_t index[4];
		double *y = &values[o->out][i];

		index_of(out, i, index);
		if (o->descriptor == CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR)
			*y = draw_at(x[0][0], x[1][0], o->probability, i);
		else if (o->descriptor == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			*y = product_at(in[0], x[0], in[1], x[1], index);
		else if (o->descriptor == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
			*y = reduction_at(in[0], x[0], o->mode, index);
		else
			*y = function_of(o, index, at(in[0], x[0], index),
					 in[1] ? at(in[1], x[1], index) : 0,
					 in[2] ? at(in[2], x[2], index) : 0);
	}
}

/* Writes an array, or rounds an inner value of 16 bits. Seen in cudnn-frontend: a product in fp32
 * memory is added to what is there, so its caller must have zeroed it. */
static void store(const struct task *task, const struct fake_operation *o, double *values)
{
	const struct fake_tensor *t = &task->network.tensors[o->out];
	void *memory = task->memory[o->out];
	bool adds = o->descriptor == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
		    t->type == CUDNN_DATA_FLOAT;
	uint16_t narrow;

	for (int64_t i = 0; i < count_of(t); i++) {
		int64_t offset = offset_of(t, i);

		if (memory && adds)
			values[i] += fake_number_read(memory, offset, t->type);
		if (memory)
			fake_number_write(memory, offset, t->type, values[i]);
		else if (is_narrow(t)) {
			fake_number_write(&narrow, 0, t->type, values[i]);
			values[i] = fake_number_read(&narrow, 0, t->type);
		}
	}
}

static void execute(void *data)
{
	const struct task *task = data;
	const struct fake_network *n = &task->network;
	double *values[FAKE_TENSORS];

	memset(task->workspace, 0xff, (size_t)task->workspace_bytes);
	for (int i = 0; i < n->tensor_count; i++) {
		const struct fake_tensor *t = &n->tensors[i];

		values[i] = memory_alloc((size_t)count_of(t) * sizeof(double));
		for (int64_t k = 0; k < count_of(t); k++)
			values[i][k] = task->memory[i] ? fake_number_read(task->memory[i],
									  offset_of(t, k), t->type)
						       : task->numbers[i];
	}
	for (int i = 0; i < n->operation_count; i++) {
		compute(n, &n->operations[i], values);
		store(task, &n->operations[i], values[n->operations[i].out]);
	}
	for (int i = 0; i < n->tensor_count; i++)
		free(values[i]);
}

int fake_network_run(const struct fake_handle *handle, const struct fake_network *network,
		     const struct fake_descriptor *pack, void *workspace, int64_t workspace_bytes)
{
	struct task task = {
		.network = *network, .workspace = workspace, .workspace_bytes = workspace_bytes};

	for (int i = 0; i < network->tensor_count; i++) {
		const struct fake_tensor *t = &network->tensors[i];
		void *pointer = t->is_virtual ? NULL : fake_pointer(pack, t->uid);

		if (t->is_virtual)
			continue;
		if (!pointer || (!t->by_value && (uintptr_t)pointer % (uintptr_t)t->alignment))
			return fake_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
					 "a tensor has no pointer, or one that is not aligned");
		if (t->by_value)
			task.numbers[i] = (double)*(const float *)pointer;
		else if (!fake_cuda_is_device(pointer, (size_t)fake_extent(t)))
			return fake_fail(
				CUDNN_STATUS_BAD_PARAM,
				"a tensor reaches beyond the device memory at its pointer");
		else
			task.memory[i] = pointer;
	}
	return fake_cuda_enqueue(handle->stream, execute, &task, sizeof(task)) == 0
		       ? CUDNN_STATUS_SUCCESS
		       : fake_fail(CUDNN_STATUS_EXECUTION_FAILED, "the driver refused the work");
}
