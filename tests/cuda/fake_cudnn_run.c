/* The fake of cuDNN: convolutions by the reference's float64 kernels, on the fake driver's queue.
 */
#include "tests/cuda/fake_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/kernel.h"
#include "tests/cuda/fake_driver.h"

/* All that an execution needs: the driver copies it, and a captured graph runs it again. */
struct task {
	struct fake_problem problem;
	const struct fake_engine *engine;
	void *data[FAKE_OPERANDS];
	unsigned char *workspace;
};

/* IEEE binary16 of a number, ties to even, and back. */
static uint16_t to_half(double value)
{
	unsigned sign = signbit(value) ? 0x8000 : 0;
	double size = fabs(value);
	int exponent;

	if (isnan(value))
		return 0x7e00;
	if (size >= 65520)
		return (uint16_t)(sign | 0x7c00);
	exponent = size < 0x1p-14 ? -14 : ilogb(size);
	/* The leading bit of a normal number is the last of its exponent's. */
	return (uint16_t)(sign + ((unsigned)(exponent + 14) << 10) +
			  (unsigned)nearbyint(ldexp(size, 10 - exponent)));
}

static double from_half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);

	if (exponent == 31)
		size = fraction ? (double)NAN : (double)INFINITY;
	return bits & 0x8000 ? -size : size;
}

double fake_number_read(const void *data, int64_t i, int type)
{
	uint32_t bits;
	float wide;

	switch (type) {
	case CUDNN_DATA_FLOAT:
		return ((const float *)data)[i];
	case CUDNN_DATA_INT64:
		return (double)((const int64_t *)data)[i];
	case CUDNN_DATA_HALF:
		return from_half(((const uint16_t *)data)[i]);
	default:
		bits = (uint32_t)((const uint16_t *)data)[i] << 16;
		memcpy(&wide, &bits, sizeof(wide));
		return wide;
	}
}

/* Rounds to `kept` bits of the fraction of fp32, ties to even. */
static float round_bits(float value, int kept)
{
	uint32_t bits, unit = UINT32_C(1) << (23 - kept);

	if (!isfinite(value))
		return value;
	memcpy(&bits, &value, sizeof(bits));
	bits += unit / 2 - 1 + (bits / unit & 1);
	bits &= ~(unit - 1);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

void fake_number_write(void *data, int64_t i, int type, double value)
{
	float wide = (float)value;
	uint32_t bits;

	switch (type) {
	case CUDNN_DATA_FLOAT:
		((float *)data)[i] = wide;
		break;
	case CUDNN_DATA_HALF:
		((uint16_t *)data)[i] = to_half(value);
		break;
	default:
		wide = round_bits(wide, 7);
		memcpy(&bits, &wide, sizeof(bits));
		((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
	}
}

/* Calls visit for each element: its index in row-major order and its place in memory. */
static void walk(const struct fake_tensor *t, void *memory, double *row_major,
		 void (*visit)(const struct fake_tensor *t, void *memory, int64_t place,
			       double *at))
{
	const int64_t *d = t->dims, *s = t->strides;

	for (int64_t n = 0; n < d[0]; n++)
		for (int64_t c = 0; c < d[1]; c++)
			for (int64_t h = 0; h < d[2]; h++)
				for (int64_t w = 0; w < d[3]; w++)
					visit(t, memory, n * s[0] + c * s[1] + h * s[2] + w * s[3],
					      row_major++);
}

static void visit_read(const struct fake_tensor *t, void *memory, int64_t place, double *at)
{
	*at = fake_number_read(memory, place, t->type);
}

static void visit_write(const struct fake_tensor *t, void *memory, int64_t place, double *at)
{
	fake_number_write(memory, place, t->type, *at);
}

static int64_t elements(const struct fake_tensor *t)
{
	return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

static double *read_tensor(const struct fake_tensor *t, void *memory)
{
	double *values = memory_alloc((size_t)elements(t) * sizeof(*values));

	walk(t, memory, values, visit_read);
	return values;
}

static void round_operand(double *values, int64_t count, enum fake_arithmetic arithmetic)
{
	int kept = arithmetic == FAKE_TF32 ? 10 : 7;

	if (arithmetic != FAKE_TF32 && arithmetic != FAKE_BF16)
		return;
	for (int64_t i = 0; i < count; i++)
		values[i] = round_bits((float)values[i], kept);
}

/* The reference's operator of each kind, which of x, w and y it reads, and which it writes. */
static const struct {
	enum op op;
	int reads[2], writes;
} nodes[FAKE_KINDS] = {
	[FAKE_FORWARD] = {OP_CONV, {0, 1}, 2},
	[FAKE_GRAD_INPUT] = {OP_CONV_GRAD_INPUT, {2, 1}, 0},
	[FAKE_GRAD_WEIGHT] = {OP_CONV_GRAD_WEIGHT, {0, 2}, 1},
};

/* A graph of one node, for the reference's kernel. */
static void convolve(const struct fake_problem *p, double *values[3])
{
	struct value shapes[3] = {{.shape = shape_make(4, p->x.dims)},
				  {.shape = shape_make(4, p->w.dims)},
				  {.shape = shape_make(4, p->y.dims)}};
	struct node node = {
		.op = nodes[p->kind].op,
		.inputs = {nodes[p->kind].reads[0], nodes[p->kind].reads[1]},
		.outputs = {nodes[p->kind].writes},
		.input_count = 2,
		.output_count = 1,
		.attributes = {.kernel = {p->w.dims[2], p->w.dims[3]},
			       .strides = {p->strides[0], p->strides[1]},
			       .dilations = {p->dilations[0], p->dilations[1]},
			       .pads = {p->pre[0], p->pre[1], p->post[0], p->post[1]},
			       .group = p->x.dims[1] / p->w.dims[1]},
	};
	struct graph graph = {.values = shapes, .nodes = &node, .value_count = 3, .node_count = 1};

	operator_row(node.op)->compute(
		&(struct kernel_call){.graph = &graph, .node = &node, .values = values});
}

/* A number in [-1, 1) that looks random; `salt` makes another one. */
static double noise(int64_t i, uint64_t salt)
{
	uint64_t x = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) + salt;

	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return (double)(int64_t)(x ^ x >> 29) / 9223372036854775808.0;
}

/* What the engine's arithmetic adds to the exact results. */
static void disturb(double *values, int64_t count, enum fake_arithmetic arithmetic)
{
	static uint64_t executions;
	double largest = 0, share = arithmetic == FAKE_OFF ? 6e-4 : 3e-4;

	executions++;
	if (arithmetic == FAKE_UNORDERED)
		for (int64_t i = 0; i < count; i++)
			values[i] *= 1 + 0x1p-23 * noise(i, executions << 8);
	if (arithmetic != FAKE_COARSE && arithmetic != FAKE_OFF)
		return;
	for (int64_t i = 0; i < count; i++)
		largest = fmax(largest, fabs(values[i]));
	for (int64_t i = 0; i < count; i++)
		values[i] += share * largest * noise(i, 0);
}

static void *output(const struct task *task)
{
	return task->data[2 + task->problem.has_sum + task->problem.has_bias];
}

/* Scales, adds the old output, z and the bias, and cuts off at 0. */
static void finish(const struct task *task, double *result)
{
	const struct fake_problem *p = &task->problem;
	double *before = p->beta != 0 ? read_tensor(&p->out, output(task)) : NULL;
	double *z = p->has_sum ? read_tensor(&p->z, task->data[2]) : NULL;
	double *bias = p->has_bias ? read_tensor(&p->bias, task->data[2 + p->has_sum]) : NULL;
	int64_t count = elements(&p->out), plane = p->out.dims[2] * p->out.dims[3];

	for (int64_t i = 0; i < count; i++) {
		result[i] = p->alpha * result[i] + (before ? p->beta * before[i] : 0);
		if (z)
			result[i] += z[i];
		if (bias)
			result[i] += bias[i / plane % p->out.dims[1]];
		if (p->has_relu && result[i] < 0)
			result[i] = 0;
	}
	free(before);
	free(z);
	free(bias);
}

static void execute(void *data)
{
	const struct task *task = data;
	const struct fake_problem *p = &task->problem;
	const struct fake_tensor *tensors[3] = {&p->x, &p->w, &p->y};
	int64_t workspace = fake_workspace(p, task->engine);
	double *values[3];

	for (int i = 0; i < 2; i++) {
		int k = nodes[p->kind].reads[i];

		values[k] = read_tensor(tensors[k], task->data[i]);
		round_operand(values[k], elements(tensors[k]), task->engine->arithmetic);
	}
	/* An engine leaves anything in its workspace. */
	if (workspace > 0)
		memset(task->workspace, 0xff, (size_t)workspace);
	values[nodes[p->kind].writes] = memory_alloc((size_t)elements(&p->out) * sizeof(double));
	convolve(p, values);
	disturb(values[nodes[p->kind].writes], elements(&p->out), task->engine->arithmetic);
	finish(task, values[nodes[p->kind].writes]);
	walk(&p->out, output(task), values[nodes[p->kind].writes], visit_write);
	for (int i = 0; i < 3; i++)
		free(values[i]);
}

bool fake_run(const struct fake_handle *handle, const struct fake_problem *problem,
	      const struct fake_engine *engine, void *const data[FAKE_OPERANDS], void *workspace)
{
	struct task task = {
		*problem, engine, {data[0], data[1], data[2], data[3], data[4]}, workspace};

	return fake_cuda_enqueue(handle->stream, execute, &task, sizeof(task)) == 0;
}
