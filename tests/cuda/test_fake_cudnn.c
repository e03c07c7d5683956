/* The fake of cuDNN: right engines compute what plain loops do, the others are off by what their
 * notes or their number say, and mistakes of a caller are refused. */
#include "adapters/native/cuda/cudnn.h"
#include "adapters/native/cuda/driver.h"
#include "tests/unit/unit_test.h"

enum { SAMPLES = 2, CHANNELS = 4, OUTPUTS = 6, GROUPS = 2, HEIGHT = 7, WIDTH = 6, ROWS = 3 };
enum { COLUMNS = 2, MARGIN = 256 };
/* Of the output: strides 2 and 1, dilations 1 and 2, pads 1, 0, 0, 2. */
enum { OUT_HEIGHT = (HEIGHT + 1 - 2 - 1) / 2 + 1, OUT_WIDTH = WIDTH + 2 - 2 };

enum { X, W, Y, BIAS, OUT, TENSORS };
enum { FORWARD, GRAD_INPUT, GRAD_WEIGHT };

static const int64_t dims[TENSORS][4] = {
	{SAMPLES, CHANNELS, HEIGHT, WIDTH},	   {OUTPUTS, CHANNELS / GROUPS, ROWS, COLUMNS},
	{SAMPLES, OUTPUTS, OUT_HEIGHT, OUT_WIDTH}, {1, OUTPUTS, 1, 1},
	{SAMPLES, OUTPUTS, OUT_HEIGHT, OUT_WIDTH},
};

struct fixture {
	struct cuda_driver cu;
	struct cudnn dnn;
	struct CUstream_st *stream;
	cudnn_handle handle;
	int kind, type;
	bool last, fused;
	CUdeviceptr memory[TENSORS], workspace;
	float *values[TENSORS]; /* row-major, on the host */
};

static int setup(void **state)
{
	struct fixture *f = test_keep(memory_alloc(sizeof(*f)));
	struct error err = ERROR_INIT;
	struct CUctx_st *context;
	CUdevice device;

	*f = (struct fixture){.type = CUDNN_DATA_FLOAT};
	check(cuda_driver_load(&f->cu, &err), &err);
	check(cudnn_load(&f->dnn, NULL, &err), &err);
	assert_int_equal(f->dnn.Create(&f->handle), CUDNN_STATUS_NOT_INITIALIZED);
	assert_int_equal(f->cu.DeviceGet(&device, 0), 0);
	assert_int_equal(f->cu.DevicePrimaryCtxRetain(&context, device), 0);
	assert_int_equal(f->cu.CtxSetCurrent(context), 0);
	assert_int_equal(f->cu.StreamCreate(&f->stream, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(f->dnn.Create(&f->handle), 0);
	assert_int_equal(f->dnn.SetStream(f->handle, f->stream), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < TENSORS; i++)
		if (f->memory[i])
			f->cu.MemFree(f->memory[i]);
	if (f->workspace)
		f->cu.MemFree(f->workspace);
	f->dnn.Destroy(f->handle);
	f->cu.StreamDestroy(f->stream);
	f->cu.CtxSetCurrent(NULL);
	return 0;
}

static int64_t elements(int tensor)
{
	return dims[tensor][0] * dims[tensor][1] * dims[tensor][2] * dims[tensor][3];
}

static void strides_of(const struct fixture *f, int tensor, int64_t s[4])
{
	const int64_t *d = dims[tensor];

	if (f->last)
		memcpy(s, (int64_t[]){d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]}, 4 * sizeof(*s));
	else
		memcpy(s, (int64_t[]){d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, 4 * sizeof(*s));
}

static cudnn_descriptor new_one(struct fixture *f, int type)
{
	cudnn_descriptor d;

	assert_int_equal(f->dnn.BackendCreateDescriptor(type, &d), 0);
	return d;
}

static void set(struct fixture *f, cudnn_descriptor d, int attribute, int type, int64_t count,
		const void *elements)
{
	assert_int_equal(f->dnn.BackendSetAttribute(d, attribute, type, count, elements), 0);
}

static void set_child(struct fixture *f, cudnn_descriptor d, int attribute, cudnn_descriptor child)
{
	set(f, d, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &child);
}

static cudnn_descriptor finalized(struct fixture *f, cudnn_descriptor d)
{
	assert_int_equal(f->dnn.BackendFinalize(d), 0);
	return d;
}

/* Releases what a parent keeps. */
static void drop(struct fixture *f, cudnn_descriptor d)
{
	assert_int_equal(f->dnn.BackendDestroyDescriptor(d), 0);
}

static cudnn_descriptor tensor(struct fixture *f, int which, int64_t id, bool is_virtual)
{
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	int64_t strides[4], alignment = 16;
	int type = is_virtual ? CUDNN_DATA_FLOAT : f->type;

	strides_of(f, which, strides);
	set(f, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
	set(f, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(f, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims[which]);
	set(f, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
	set(f, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	set(f, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	return finalized(f, d);
}

static cudnn_descriptor convolution(struct fixture *f)
{
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
	int64_t axes = 2, steps[2] = {2, 1}, gaps[2] = {1, 2}, pre[2] = {1, 0}, post[2] = {0, 2};

	set(f, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set(f, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(f, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
	set(f, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, steps);
	set(f, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, gaps);
	set(f, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pre);
	set(f, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, post);
	return finalized(f, d);
}

static cudnn_descriptor convolve(struct fixture *f, cudnn_descriptor y)
{
	static const int types[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
				    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
				    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
	/* alpha, beta, convolution; w, x, y: values of cudnn_graph_v9.h */
	static const int names[][6] = {{700, 701, 702, 703, 704, 705},
				       {706, 707, 708, 709, 710, 711},
				       {712, 713, 714, 715, 716, 717}};
	cudnn_descriptor d = new_one(f, types[f->kind]), shape = convolution(f);
	cudnn_descriptor w = tensor(f, W, W, false), x = tensor(f, X, X, false);
	float one = 1, zero = 0;

	set(f, d, names[f->kind][0], CUDNN_TYPE_FLOAT, 1, &one);
	set(f, d, names[f->kind][1], CUDNN_TYPE_FLOAT, 1, &zero);
	set_child(f, d, names[f->kind][2], shape);
	set_child(f, d, names[f->kind][3], w);
	set_child(f, d, names[f->kind][4], x);
	set_child(f, d, names[f->kind][5], y);
	drop(f, shape);
	drop(f, w);
	drop(f, x);
	return finalized(f, d);
}

static cudnn_descriptor pointwise(struct fixture *f, int mode, cudnn_descriptor x,
				  cudnn_descriptor bias, cudnn_descriptor y)
{
	cudnn_descriptor what = new_one(f, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	int type = CUDNN_DATA_FLOAT;

	set(f, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(f, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
	set_child(f, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, finalized(f, what));
	set_child(f, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (bias)
		set_child(f, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias);
	set_child(f, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	drop(f, what);
	return finalized(f, d);
}

static cudnn_descriptor graph(struct fixture *f)
{
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	cudnn_descriptor y = tensor(f, Y, Y, f->fused), list[3], sum, bias, out;
	int count = 0;

	list[count++] = convolve(f, y);
	if (f->fused) {
		sum = tensor(f, Y, TENSORS, true);
		bias = tensor(f, BIAS, BIAS, false);
		out = tensor(f, OUT, OUT, false);
		list[count++] = pointwise(f, CUDNN_POINTWISE_ADD, y, bias, sum);
		list[count++] = pointwise(f, CUDNN_POINTWISE_RELU_FWD, sum, NULL, out);
		drop(f, sum);
		drop(f, bias);
		drop(f, out);
	}
	drop(f, y);
	set(f, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, list);
	set(f, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &f->handle);
	while (count-- > 0)
		drop(f, list[count]);
	return finalized(f, d);
}

/* The configurations of the heuristics, at most 16; returns how many. */
static int configurations(struct fixture *f, cudnn_descriptor out[16])
{
	cudnn_descriptor of = graph(f), d = new_one(f, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	int mode = CUDNN_HEUR_MODE_A;
	int64_t count, got;

	set_child(f, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of);
	set(f, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	finalized(f, d);
	assert_int_equal(f->dnn.BackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL),
			 0);
	for (int i = 0; i < count; i++)
		out[i] = new_one(f, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	assert_int_equal(f->dnn.BackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
						    CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got,
						    out),
			 0);
	drop(f, of);
	drop(f, d);
	return (int)got;
}

static int engine_of(struct fixture *f, cudnn_descriptor configuration)
{
	cudnn_descriptor engine = new_one(f, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t count, index = -1;

	f->dnn.BackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
				   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
	f->dnn.BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
				   &count, &index);
	drop(f, engine);
	return (int)index;
}

static cudnn_descriptor new_plan(struct fixture *f)
{
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

	set(f, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &f->handle);
	return d;
}

/* The plan of an engine, or NULL and the status if it is not finalised. */
static cudnn_descriptor plan_of(struct fixture *f, int engine, int *status)
{
	cudnn_descriptor list[16], d = new_plan(f);
	int count = configurations(f, list);

	*status = -1;
	for (int i = 0; i < count; i++) {
		if (engine_of(f, list[i]) == engine && *status < 0) {
			set_child(f, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, list[i]);
			*status = f->dnn.BackendFinalize(d);
		}
		drop(f, list[i]);
	}
	if (*status == 0)
		return d;
	drop(f, d);
	return NULL;
}

static int64_t workspace_of(struct fixture *f, cudnn_descriptor plan)
{
	int64_t count, bytes = -1;

	f->dnn.BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
				   1, &count, &bytes);
	return bytes;
}

static int execute(struct fixture *f, cudnn_descriptor plan, int tensors)
{
	cudnn_descriptor pack = new_one(f, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	int64_t ids[TENSORS] = {X, W, Y, BIAS, OUT};
	void *pointers[TENSORS];
	int status;

	for (int i = 0; i < TENSORS; i++)
		pointers[i] = (void *)(uintptr_t)f->memory[i];
	set(f, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, ids);
	set(f, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, pointers);
	set(f, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &f->workspace);
	status = f->dnn.BackendExecute(f->handle, plan, finalized(f, pack));
	drop(f, pack);
	return status;
}

/* Fills all tensors, in fp32 or (exactly) in 16 bits. */
static void fill(struct fixture *f)
{
	for (int t = 0; t < TENSORS; t++) {
		int64_t n = elements(t), s[4], i = 0;
		size_t width = f->type == CUDNN_DATA_FLOAT ? 4 : 2;
		unsigned char *there = test_keep(memory_alloc((size_t)n * width));

		strides_of(f, t, s);
		f->values[t] = test_keep(memory_alloc((size_t)n * sizeof(float)));
		for (int64_t k = 0; k < n; k++)
			f->values[t][k] = (float)((k * 37 + t * 11) % 61 - 30) / 32;
		for (int64_t a = 0; a < dims[t][0]; a++)
			for (int64_t b = 0; b < dims[t][1]; b++)
				for (int64_t c = 0; c < dims[t][2]; c++)
					for (int64_t d = 0; d < dims[t][3]; d++) {
						int64_t at =
							a * s[0] + b * s[1] + c * s[2] + d * s[3];
						unsigned char *to = there + (size_t)at * width;
						float *value = &f->values[t][i++];

						memcpy(to, (unsigned char *)value + 4 - width,
						       width);
					}
		assert_int_equal(f->cu.MemAlloc(&f->memory[t], (size_t)n * width + MARGIN), 0);
		f->cu.MemcpyHtoDAsync(f->memory[t], there, (size_t)n * width, f->stream);
		f->cu.StreamSynchronize(f->stream);
	}
}

/* Plain loops over the definition, into `out` (row-major, zeroed). */
static void expected(const struct fixture *f, double *out)
{
	const float *x = f->values[X], *w = f->values[W], *y = f->values[Y];

	for (int n = 0; n < SAMPLES; n++)
		for (int o = 0; o < OUTPUTS; o++)
			for (int64_t at = 0; at < OUT_HEIGHT * OUT_WIDTH; at++)
				for (int64_t k = 0; k < CHANNELS / GROUPS * ROWS * COLUMNS; k++) {
					int64_t c = k / (ROWS * COLUMNS) +
						    o / (OUTPUTS / GROUPS) * (CHANNELS / GROUPS);
					int64_t row = at / OUT_WIDTH * 2 + k / COLUMNS % ROWS - 1;
					int64_t column = at % OUT_WIDTH + k % COLUMNS * 2;
					int64_t i = ((n * CHANNELS + c) * HEIGHT + row) * WIDTH +
						    column;
					int64_t j = o * (CHANNELS / GROUPS * ROWS * COLUMNS) + k;
					int64_t q = (n * OUTPUTS + o) * OUT_HEIGHT * OUT_WIDTH + at;

					if (row < 0 || row >= HEIGHT || column >= WIDTH)
						continue;
					if (f->kind == FORWARD)
						out[q] += (double)x[i] * w[j];
					else if (f->kind == GRAD_INPUT)
						out[i] += (double)y[q] * w[j];
					else
						out[j] += (double)y[q] * x[i];
				}
	for (int64_t q = 0; f->fused && q < elements(Y); q++)
		out[q] = fmax(0, out[q] + f->values[BIAS][q / (OUT_HEIGHT * OUT_WIDTH) % OUTPUTS]);
}

/* The largest difference of the device's result, in units of the largest right number. */
static double error_of(struct fixture *f)
{
	int t = f->fused ? OUT : f->kind == FORWARD ? Y : f->kind == GRAD_INPUT ? X : W;
	int64_t n = elements(t), s[4], i = 0;
	size_t width = f->type == CUDNN_DATA_FLOAT ? 4 : 2;
	unsigned char *there = test_keep(memory_alloc((size_t)n * width));
	double *right = test_keep(memory_alloc((size_t)n * sizeof(double))), off = 0, largest = 0;

	f->cu.MemcpyDtoHAsync(there, f->memory[t], (size_t)n * width, f->stream);
	assert_int_equal(f->cu.StreamSynchronize(f->stream), 0);
	memset(right, 0, (size_t)n * sizeof(double));
	expected(f, right);
	strides_of(f, t, s);
	for (int64_t a = 0; a < dims[t][0]; a++)
		for (int64_t b = 0; b < dims[t][1]; b++)
			for (int64_t c = 0; c < dims[t][2]; c++)
				for (int64_t d = 0; d < dims[t][3]; d++, i++) {
					int64_t at = a * s[0] + b * s[1] + c * s[2] + d * s[3];
					float value = 0;

					memcpy((unsigned char *)&value + 4 - width,
					       there + (size_t)at * width, width);
					off = fmax(off, fabs(value - right[i]));
					largest = fmax(largest, fabs(right[i]));
				}
	return off / largest;
}

static void run(struct fixture *f, int engine, double least, double most)
{
	int status;
	cudnn_descriptor plan = plan_of(f, engine, &status);
	double error;

	assert_int_equal(status, 0);
	fill(f);
	if (workspace_of(f, plan) > 0)
		f->cu.MemAlloc(&f->workspace, (size_t)workspace_of(f, plan));
	assert_int_equal(execute(f, plan, f->fused ? TENSORS : Y + 1), 0);
	error = error_of(f);
	if (!(error >= least && error <= most))
		fail_msg("engine %d, kind %d: off by %g", engine, f->kind, error);
	drop(f, plan);
	for (int i = 0; i < TENSORS; i++)
		f->cu.MemFree(f->memory[i]);
	if (f->workspace)
		f->cu.MemFree(f->workspace);
	memset(f->memory, 0, sizeof(f->memory));
	f->workspace = 0;
}

TEST_ON(right_engines_agree_with_plain_loops, setup, teardown, struct fixture *f)
{
	for (f->kind = FORWARD; f->kind <= GRAD_WEIGHT; f->kind++) {
		for (int last = 0; last < 2; last++) {
			f->last = last;
			f->type = CUDNN_DATA_FLOAT;
			run(f, 70, 0, 1e-7);
			f->type = CUDNN_DATA_BFLOAT16;
			run(f, 62, 1e-4, 4e-3);
		}
	}
	f->kind = FORWARD;
	f->type = CUDNN_DATA_FLOAT;
	f->fused = true;
	run(f, 0, 0, 1e-7);
}

TEST_ON(other_engines_are_off, setup, teardown, struct fixture *f)
{
	for (f->kind = FORWARD; f->kind <= GRAD_WEIGHT; f->kind++) {
		run(f, 17, 5e-4, 7e-4);
		run(f, 5, 2e-4, 4e-4);
	}
	f->kind = GRAD_WEIGHT;
	run(f, 20, 1e-9, 2e-7);
}

TEST_ON(a_plan_goes_through_its_text, setup, teardown, struct fixture *f)
{
	int status;
	cudnn_descriptor plan, again = new_plan(f);
	int64_t count, got;
	char *text;

	f->fused = true;
	plan = plan_of(f, 70, &status);
	assert_int_equal(status, 0);
	f->dnn.BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
				   CUDNN_TYPE_CHAR, 0, &count, NULL);
	text = test_keep(memory_alloc((size_t)count));
	f->dnn.BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
				   CUDNN_TYPE_CHAR, count, &got, text);
	drop(f, plan);
	set(f, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, count, text);
	finalized(f, again);
	fill(f);
	assert_int_equal(execute(f, again, TENSORS), 0);
	assert_true(error_of(f) < 1e-7);
	drop(f, again);
	again = new_plan(f);
	set(f, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, count - 1,
	    text);
	assert_int_equal(f->dnn.BackendFinalize(again), CUDNN_STATUS_NOT_SUPPORTED);
	drop(f, again);
}

TEST_ON(executions_that_lack_something_are_refused, setup, teardown, struct fixture *f)
{
	CUdeviceptr y;
	int status;
	cudnn_descriptor plan;

	f->last = true;
	assert_null(plan_of(f, 60, &status));
	assert_int_equal(status, CUDNN_STATUS_NOT_SUPPORTED);
	plan = plan_of(f, 61, &status);
	assert_true(workspace_of(f, plan) > INT64_C(1) << 39);
	drop(f, plan);
	plan = plan_of(f, 70, &status);
	fill(f);
	assert_int_equal(execute(f, plan, Y + 1), CUDNN_STATUS_BAD_PARAM); /* no workspace */
	f->cu.MemAlloc(&f->workspace, (size_t)workspace_of(f, plan) - 1);
	assert_int_equal(execute(f, plan, Y + 1), CUDNN_STATUS_BAD_PARAM); /* too small */
	f->cu.MemFree(f->workspace);
	f->cu.MemAlloc(&f->workspace, (size_t)workspace_of(f, plan));
	assert_int_equal(execute(f, plan, Y), CUDNN_STATUS_BAD_PARAM_NULL_POINTER); /* no y */
	y = f->memory[Y];
	f->memory[Y] += 4;
	assert_int_equal(execute(f, plan, Y + 1), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
	f->memory[Y] = (CUdeviceptr)(uintptr_t)f->values[Y] & ~(CUdeviceptr)15; /* the host's */
	assert_int_equal(execute(f, plan, Y + 1), CUDNN_STATUS_BAD_PARAM);
	f->memory[Y] = y;
	assert_int_equal(execute(f, plan, Y + 1), 0);
	f->cu.StreamSynchronize(f->stream);
	drop(f, plan);
}

TEST_ON(attributes_are_checked, setup, teardown, struct fixture *f)
{
	cudnn_descriptor d = new_one(f, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	cudnn_descriptor operation = new_one(f, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	int64_t two[2] = {1, 2};
	const struct {
		int attribute, type, count;
		const void *elements;
		int status;
	} wrong[] = {
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, two,
		 CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE},
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 2, two, CUDNN_STATUS_BAD_PARAM},
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, NULL,
		 CUDNN_STATUS_BAD_PARAM_NULL_POINTER},
		{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, two,
		 CUDNN_STATUS_BAD_PARAM},
	};

	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(f->dnn.BackendSetAttribute(d, wrong[i].attribute, wrong[i].type,
							    wrong[i].count, wrong[i].elements),
				 wrong[i].status);
	assert_int_equal(f->dnn.BackendFinalize(d), CUDNN_STATUS_BAD_PARAM);
	assert_int_equal(f->dnn.BackendSetAttribute(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
						    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d),
			 CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
	drop(f, operation);
	drop(f, d);
	assert_int_equal(f->dnn.BackendDestroyDescriptor(d), CUDNN_STATUS_BAD_PARAM);
}
