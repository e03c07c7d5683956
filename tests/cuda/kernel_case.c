/* Kernels one by one, on the fake driver. */
#include "tests/cuda/kernel_case.h"

#include "graph/kernel.h"

const enum dtype kernel_types[3] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};

/* The fake driver takes any text for machine code. */
int kernel_device_open(void **state)
{
	struct kernel_device *d = calloc(1, sizeof(*d));
	struct error err = ERROR_INIT;
	struct CUctx_st *context;

	if (!d || cuda_driver_load(&d->cu, &err) != PRONY_OK ||
	    d->cu.DevicePrimaryCtxRetain(&context, 0) || d->cu.CtxSetCurrent(context) ||
	    d->cu.ModuleLoadData(&d->module, "machine code") ||
	    d->cu.StreamCreate(&d->stream, CU_STREAM_NON_BLOCKING)) {
		fprintf(stderr, "fake driver: %s\n", err.text);
		free(d);
		return 1;
	}
	*state = d;
	return 0;
}

void kernel_device_forget(struct kernel_device *d)
{
	d->cu.StreamSynchronize(d->stream);
	while (d->count > 0)
		d->cu.MemFree(d->arrays[--d->count]);
}

int kernel_device_close(void **state)
{
	struct kernel_device *d = *state;

	if (!d)
		return 0;
	kernel_device_forget(d);
	d->cu.StreamDestroy(d->stream);
	d->cu.ModuleUnload(d->module);
	d->cu.DevicePrimaryCtxRelease(0);
	free(d);
	return 0;
}

static const struct {
	int fraction, lowest; /* bits, and the exponent of the least normal number */
	double most;
} kinds[DTYPE_COUNT] = {[DTYPE_F16] = {10, -14, 65504}, [DTYPE_BF16] = {7, -126, 3.39e38}};

double in_type(double value, enum dtype type)
{
	int exponent;

	if (type == DTYPE_F32)
		return (double)(float)value;
	if (kinds[type].fraction == 0 || value == 0 || !isfinite(value))
		return value;
	assert_true(fabs(value) <= kinds[type].most);
	frexp(value, &exponent);
	exponent = exponent - 1 < kinds[type].lowest ? kinds[type].lowest : exponent - 1;
	return ldexp(nearbyint(ldexp(value, kinds[type].fraction - exponent)),
		     exponent - kinds[type].fraction);
}

double *normal_numbers(int64_t count, enum dtype type, uint64_t seed, double mean, double deviation)
{
	double *numbers = test_keep(malloc((size_t)count * sizeof(*numbers) + 1));
	struct random random;

	random_init(&random, seed);
	for (int64_t i = 0; i < count; i++)
		numbers[i] = in_type(mean + deviation * random_normal(&random), type);
	return numbers;
}

/* The bits of a number that the type has. */
static uint16_t bits_of(double value, enum dtype type)
{
	float single = (float)value;
	uint32_t bits;
	int exponent;

	memcpy(&bits, &single, sizeof(bits));
	if (type == DTYPE_BF16)
		return (uint16_t)(bits >> 16);
	frexp(value, &exponent);
	if (value == 0 || exponent - 1 < kinds[DTYPE_F16].lowest)
		return (uint16_t)((bits >> 16 & 0x8000u) | (unsigned)ldexp(fabs(value), 24));
	return (uint16_t)((bits >> 16 & 0x8000u) | ((bits >> 13 & 0x3ffffu) - (112u << 10)));
}

static double value_of(uint16_t bits, enum dtype type)
{
	uint32_t wide = (uint32_t)bits << 16;
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
	float single;

	memcpy(&single, &wide, sizeof(single));
	if (type == DTYPE_BF16)
		return (double)single;
	if (exponent == 31)
		size = fraction ? (double)NAN : (double)INFINITY;
	return bits & 0x8000 ? -size : size;
}

static void store(void *array, enum dtype type, int64_t i, double value)
{
	if (type == DTYPE_F32)
		((float *)array)[i] = (float)value;
	else if (type == DTYPE_F16 || type == DTYPE_BF16)
		((uint16_t *)array)[i] = bits_of(in_type(value, type), type);
	else if (type == DTYPE_F64)
		((double *)array)[i] = value;
	else if (type == DTYPE_I32)
		((int32_t *)array)[i] = (int32_t)value;
	else
		((uint8_t *)array)[i] = (uint8_t)value;
}

static double load(const void *array, enum dtype type, int64_t i)
{
	if (type == DTYPE_F32)
		return (double)((const float *)array)[i];
	if (type == DTYPE_F16 || type == DTYPE_BF16)
		return value_of(((const uint16_t *)array)[i], type);
	if (type == DTYPE_F64)
		return ((const double *)array)[i];
	if (type == DTYPE_I32)
		return ((const int32_t *)array)[i];
	return ((const uint8_t *)array)[i];
}

CUdeviceptr device_array(struct kernel_device *d, enum dtype type, int64_t count,
			 const double *numbers)
{
	size_t bytes = (size_t)count * dtype_bytes(type);
	void *host = test_keep(malloc(bytes + 1));
	CUdeviceptr array;

	assert_true(d->count < DEVICE_ARRAYS_MAX);
	assert_int_equal(d->cu.MemAlloc(&array, bytes), CUDA_SUCCESS);
	d->arrays[d->count++] = array;
	if (!numbers)
		return array;
	for (int64_t i = 0; i < count; i++)
		store(host, type, i, numbers[i]);
	assert_int_equal(d->cu.MemcpyHtoDAsync(array, host, bytes, d->stream), CUDA_SUCCESS);
	assert_int_equal(d->cu.StreamSynchronize(d->stream), CUDA_SUCCESS);
	return array;
}

/* The place of element i of an array in row-major order if channels come last. */
static int64_t last_place(const struct shape *shape, int64_t i)
{
	int64_t inner = 1, channels = shape->dims[1];

	for (int k = 2; k < shape->rank; k++)
		inner *= shape->dims[k];
	return (i / (channels * inner) * inner + i % inner) * channels + i / inner % channels;
}

CUdeviceptr device_image(struct kernel_device *d, enum dtype type, const struct shape *shape,
			 bool channels_last, const double *numbers)
{
	int64_t count = shape_elements(shape);
	double *moved = test_keep(malloc((size_t)count * sizeof(*moved)));

	for (int64_t i = 0; numbers && i < count; i++)
		moved[channels_last ? last_place(shape, i) : i] = numbers[i];
	return device_array(d, type, count, numbers ? moved : NULL);
}

double *read_array(struct kernel_device *d, CUdeviceptr array, enum dtype type, int64_t count)
{
	size_t bytes = (size_t)count * dtype_bytes(type);
	void *host = test_keep(malloc(bytes + 1));
	double *numbers = test_keep(malloc((size_t)count * sizeof(*numbers) + 1));

	assert_int_equal(d->cu.MemcpyDtoHAsync(host, array, bytes, d->stream), CUDA_SUCCESS);
	assert_int_equal(d->cu.StreamSynchronize(d->stream), CUDA_SUCCESS);
	for (int64_t i = 0; i < count; i++)
		numbers[i] = load(host, type, i);
	return numbers;
}

double *read_image(struct kernel_device *d, CUdeviceptr array, enum dtype type,
		   const struct shape *shape, bool channels_last)
{
	int64_t count = shape_elements(shape);
	double *numbers = read_array(d, array, type, count);
	double *moved = test_keep(malloc((size_t)count * sizeof(*moved)));

	for (int64_t i = 0; i < count; i++)
		moved[i] = numbers[channels_last ? last_place(shape, i) : i];
	return moved;
}

void launch_kernel(struct kernel_device *d, const char *name, enum dtype type, unsigned blocks,
		   unsigned threads, void **arguments)
{
	static const char *const suffixes[DTYPE_COUNT + 1] = {
		[DTYPE_F32] = "_f32", [DTYPE_F16] = "_f16", [DTYPE_BF16] = "_bf16"};
	const char *suffix = suffixes[type] ? suffixes[type] : "";
	struct CUfunc_st *function;

	if (d->cu.ModuleGetFunction(&function, d->module, test_text("%s%s", name, suffix)))
		fail_msg("no kernel %s%s", name, suffix);
	assert_int_equal(d->cu.LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, d->stream,
					    arguments, NULL),
			 CUDA_SUCCESS);
}

void assert_close(const char *what, const double *found, const double *wanted, int64_t count,
		  double bound)
{
	double rms = kernel_rms(wanted, count);

	for (int64_t i = 0; i < count; i++) {
		double size = fabs(wanted[i]) > rms ? fabs(wanted[i]) : rms;

		if (!(fabs(found[i] - wanted[i]) <= bound * size))
			fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)i, found[i],
				 wanted[i]);
	}
}

double type_bound(enum dtype type)
{
	return type == DTYPE_F32 ? 2e-6 : type == DTYPE_F16 ? 1e-3 : 8e-3;
}

void lone_node_start(struct lone_node *lone, enum op op)
{
	*lone = (struct lone_node){.node = {.op = op, .name = "node", .differentiates = -1}};
	lone->graph = (struct graph){.values = lone->values, .nodes = &lone->node, .node_count = 1};
}

static int add_value(struct lone_node *lone, const struct shape *shape, double *numbers)
{
	int value = lone->graph.value_count++;

	assert_true(value < (int)COUNT(lone->values));
	lone->values[value] = (struct value){.name = "value", .shape = *shape};
	lone->arrays[value] = numbers;
	return value;
}

void lone_input(struct lone_node *lone, const struct shape *shape, double *numbers)
{
	lone->node.inputs[lone->node.input_count++] = add_value(lone, shape, numbers);
}

double *lone_output(struct lone_node *lone, const struct shape *shape)
{
	double *numbers = test_keep(calloc((size_t)shape_elements(shape) + 1, sizeof(*numbers)));

	lone->node.outputs[lone->node.output_count++] = add_value(lone, shape, numbers);
	return numbers;
}

void lone_compute(struct lone_node *lone)
{
	struct kernel_call call = {.graph = &lone->graph,
				   .node = &lone->node,
				   .values = lone->arrays,
				   .training = lone->training};

	operator_row(lone->node.op)->compute(&call);
}
