/* Measures a plan on the device: its time, and for strict fp32 the error of some results. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/conv_plan.h"
#include "adapters/native/cuda/cuda.h"
#include "base/memory.h"
#include "base/random.h"

/* A plan that is slower than the best so far by this factor in its first run is not run again. */
#define HOPELESS 1.3F
enum { RUNS = 5 };

enum { X, W, Y, Z, BIAS, WORKSPACE, PLACES };

/* Arrays of a problem on the device. */
struct arrays {
	struct device *device;
	const struct conv_problem *problem;
	const struct conv_plan *plan;
	void *numbers; /* on the host, two periods of them, in the type of the problem */
	CUdeviceptr memory[PLACES]; /* owned */
};

/* Numbers of both signs with absolute values from 0.5 to 1. */
static void *make_numbers(enum dtype type)
{
	const unsigned sign = 0x8000;
	size_t bytes = dtype_bytes(type);
	unsigned char *numbers = memory_alloc(2 * CONV_NUMBERS * bytes);
	struct random random;

	random_init(&random, 1);
	for (size_t i = 0; i < CONV_NUMBERS; i++) {
		uint32_t bits = (uint32_t)random_next(&random);
		uint16_t half = (uint16_t)(type == DTYPE_F16 ? (bits & (sign | 0x3ff)) | 0x3800
							     : (bits & (sign | 0x7f)) | 0x3f00);

		bits = (bits & 0x807fffff) | 0x3f000000;
		memcpy(numbers + i * bytes, type == DTYPE_F32 ? (void *)&bits : (void *)&half,
		       bytes);
	}
	memcpy(numbers + CONV_NUMBERS * bytes, numbers, CONV_NUMBERS * bytes);
	return numbers;
}

static int fill(struct arrays *a, int tensor, const int64_t dims[4], size_t number_bytes)
{
	const struct cuda_driver *driver = &a->device->driver;
	size_t bytes = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]) * number_bytes;
	size_t period = CONV_NUMBERS * number_bytes, done = bytes < period ? bytes : period;
	const char *from = (const char *)a->numbers + (size_t)conv_shift(tensor) * number_bytes;
	int status = driver->MemAlloc(&a->memory[tensor], bytes);

	if (status == CUDA_SUCCESS)
		status = driver->MemcpyHtoDAsync(a->memory[tensor], from, done, a->device->stream);
	while (status == CUDA_SUCCESS && done < bytes) {
		size_t more = done < bytes - done ? done : bytes - done;

		status = driver->MemcpyDtoDAsync(a->memory[tensor] + done, a->memory[tensor], more,
						 a->device->stream);
		done += more;
	}
	return status;
}

/* Memory of zeros. */
static int reserve(struct arrays *a, int place, size_t bytes)
{
	const struct cuda_driver *driver = &a->device->driver;
	int status = bytes ? driver->MemAlloc(&a->memory[place], bytes) : CUDA_SUCCESS;

	return status == CUDA_SUCCESS && bytes
		       ? driver->MemsetD8Async(a->memory[place], 0, bytes, a->device->stream)
		       : status;
}

static enum prony_status make(struct arrays *a, struct error *err)
{
	const struct conv_problem *p = a->problem;
	size_t bytes = dtype_bytes(p->type);
	size_t images = (size_t)(p->y[0] * p->y[1] * p->y[2] * p->y[3]);
	int status = fill(a, X, p->x, bytes);

	if (status == CUDA_SUCCESS)
		status = fill(a, W, p->w, bytes);
	if (status == CUDA_SUCCESS)
		status = fill(a, Y, p->y, bytes);
	if (status == CUDA_SUCCESS && p->sum)
		status = reserve(a, Z, images * bytes);
	if (status == CUDA_SUCCESS)
		status = reserve(a, BIAS, (size_t)p->y[1] * bytes);
	if (status == CUDA_SUCCESS)
		status = reserve(a, WORKSPACE, (size_t)a->plan->workspace);
	if (status == CUDA_SUCCESS)
		status = a->device->driver.StreamSynchronize(a->device->stream);
	return cuda_check(&a->device->driver, status, "memory for the measurement", "convolution",
			  err);
}

static void *address(const struct arrays *a, int place)
{
	return (void *)(uintptr_t)a->memory[place];
}

static enum prony_status run(const struct arrays *a, struct error *err)
{
	struct conv_data data = {.x = address(a, X),
				 .w = address(a, W),
				 .y = address(a, Y),
				 .z = address(a, Z),
				 .bias = address(a, BIAS),
				 .workspace = address(a, WORKSPACE)};

	return conv_plan_run(&a->device->dnn, a->device->dnn_handle, a->problem, a->plan, &data,
			     "measurement", err);
}

/* The shortest of some runs, after one that is not counted. */
static enum prony_status time_runs(const struct arrays *a, float best, struct CUevent_st *begin,
				   struct CUevent_st *end, float *ms, struct error *err)
{
	const struct cuda_driver *driver = &a->device->driver;
	enum prony_status status = run(a, err);

	for (int i = 0; i < RUNS && status == PRONY_OK; i++) {
		float found = 0;
		int result = driver->EventRecord(begin, a->device->stream);

		status = run(a, err);
		if (result == CUDA_SUCCESS)
			result = driver->EventRecord(end, a->device->stream);
		if (result == CUDA_SUCCESS)
			result = driver->EventSynchronize(end);
		if (result == CUDA_SUCCESS)
			result = driver->EventElapsedTime(&found, begin, end);
		if (status == PRONY_OK)
			status = cuda_check(driver, result, "measurement", "convolution", err);
		if (i == 0 || found < *ms)
			*ms = found;
		if (best > 0 && *ms > HOPELESS * best)
			break;
	}
	return status;
}

static enum prony_status measure_time(const struct arrays *a, float best, float *ms,
				      struct error *err)
{
	const struct cuda_driver *driver = &a->device->driver;
	struct CUevent_st *begin = NULL, *end = NULL;
	int result = driver->EventCreate(&begin, CU_EVENT_DEFAULT);
	enum prony_status status;

	if (result == CUDA_SUCCESS)
		result = driver->EventCreate(&end, CU_EVENT_DEFAULT);
	status = cuda_check(driver, result, "event", "convolution", err);
	if (status == PRONY_OK)
		status = time_runs(a, best, begin, end, ms, err);
	if (end)
		(void)driver->EventDestroy(end);
	if (begin)
		(void)driver->EventDestroy(begin);
	return status;
}

static enum prony_status measure_error(const struct arrays *a, double *error, struct error *err)
{
	const struct cuda_driver *driver = &a->device->driver;
	const int places[] = {Y, X, W}; /* of the result, by kind */
	struct conv_sample samples[CONV_SAMPLES_MAX];
	int count = conv_samples(a->problem, a->numbers, samples), status = CUDA_SUCCESS;

	for (int i = 0; i < count && status == CUDA_SUCCESS; i++)
		status = driver->MemcpyDtoHAsync(&samples[i].found,
						 a->memory[places[a->problem->kind]] +
							 (CUdeviceptr)samples[i].at * sizeof(float),
						 sizeof(float), a->device->stream);
	if (status == CUDA_SUCCESS)
		status = driver->StreamSynchronize(a->device->stream);
	if (status == CUDA_SUCCESS)
		*error = conv_error(samples, count);
	return cuda_check(driver, status, "check", "convolution", err);
}

enum prony_status cuda_conv_measure(void *context, const struct conv_problem *problem, float best,
				    struct conv_plan *plan, struct error *err)
{
	struct device *device = context;
	struct arrays a = {.device = device,
			   .problem = problem,
			   .plan = plan,
			   .numbers = make_numbers(problem->type)};
	enum prony_status status = make(&a, err);

	if (status == PRONY_OK)
		status = measure_time(&a, best, &plan->ms, err);
	if (status == PRONY_OK && problem->strict)
		status = measure_error(&a, &plan->error, err);
	for (int i = 0; i < PLACES; i++) {
		if (a.memory[i])
			(void)device->driver.MemFree(a.memory[i]);
	}
	free(a.numbers);
	return status;
}
