/* Measures plans on the device: their time, and for strict fp32 the error of some results. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/conv_plan.h"
#include "adapters/native/cuda/cuda.h"
#include "base/memory.h"
#include "base/random.h"

/* A plan that is slower than the best so far by this factor in its first run is not run again. */
#define HOPELESS 1.3F
enum { RUNS = 5 };
/* After so much time of the device, what is left is not measured. */
#define PATIENCE_MS 150

enum { X, W, Y, Z, BIAS, WORKSPACE, PLACES };

/* Arrays of a problem on the device. */
struct arrays {
	struct device *device;
	const struct conv_problem *problem;
	void *numbers; /* on the host, two periods of them, in the type of the problem */
	CUdeviceptr memory[PLACES]; /* owned */
	struct CUevent_st *begin, *end;
	float spent; /* ms */
	struct conv_sample samples[CONV_SAMPLES_MAX];
	int sample_count; /* of a strict problem */
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

static enum prony_status make(struct arrays *a, int64_t workspace, struct error *err)
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
		status = reserve(a, WORKSPACE, (size_t)workspace);
	if (status == CUDA_SUCCESS)
		status = a->device->driver.EventCreate(&a->begin, CU_EVENT_DEFAULT);
	if (status == CUDA_SUCCESS)
		status = a->device->driver.EventCreate(&a->end, CU_EVENT_DEFAULT);
	if (status == CUDA_SUCCESS)
		status = a->device->driver.StreamSynchronize(a->device->stream);
	return cuda_check(&a->device->driver, status, "memory for the measurement", "convolution",
			  err);
}

static void *address(const struct arrays *a, int place)
{
	return (void *)(uintptr_t)a->memory[place];
}

static enum prony_status run(const struct arrays *a, const struct cudnn_plan *plan,
			     struct error *err)
{
	struct conv_data data = {.x = address(a, X),
				 .w = address(a, W),
				 .y = address(a, Y),
				 .z = address(a, Z),
				 .bias = address(a, BIAS),
				 .workspace = address(a, WORKSPACE)};

	return conv_plan_run(&a->device->dnn, a->device->dnn_handle, a->problem, plan, &data,
			     "measurement", err);
}

static enum prony_status time_one(struct arrays *a, const struct cudnn_plan *plan, float *ms,
				  struct error *err)
{
	const struct cuda_driver *driver = &a->device->driver;
	int result = driver->EventRecord(a->begin, a->device->stream);
	enum prony_status status = run(a, plan, err);

	if (result == CUDA_SUCCESS)
		result = driver->EventRecord(a->end, a->device->stream);
	if (result == CUDA_SUCCESS)
		result = driver->EventSynchronize(a->end);
	if (result == CUDA_SUCCESS)
		result = driver->EventElapsedTime(ms, a->begin, a->end);
	a->spent += *ms;
	return status == PRONY_OK ? cuda_check(driver, result, "measurement", "convolution", err)
				  : status;
}

/* The shortest of some runs, after one that is not counted, because code is loaded then. */
static enum prony_status measure_time(struct arrays *a, float best, struct cudnn_plan *plan,
				      struct error *err)
{
	float ms = 0;
	enum prony_status status = time_one(a, plan, &ms, err);

	for (int i = 0; i < RUNS && status == PRONY_OK; i++) {
		status = time_one(a, plan, &ms, err);
		if (status == PRONY_OK && (i == 0 || ms < plan->ms))
			plan->ms = ms;
		if (best > 0 && plan->ms > HOPELESS * best)
			break;
	}
	if (status != PRONY_OK)
		plan->ms = 0;
	return status;
}

static enum prony_status measure_error(struct arrays *a, double *error, struct error *err)
{
	const struct cuda_driver *driver = &a->device->driver;
	const int places[] = {Y, X, W}; /* of the result, by kind */
	int status = CUDA_SUCCESS;

	for (int i = 0; i < a->sample_count && status == CUDA_SUCCESS; i++)
		status = driver->MemcpyDtoHAsync(&a->samples[i].found,
						 a->memory[places[a->problem->kind]] +
							 (CUdeviceptr)a->samples[i].at *
								 sizeof(float),
						 sizeof(float), a->device->stream);
	if (status == CUDA_SUCCESS)
		status = driver->StreamSynchronize(a->device->stream);
	if (status == CUDA_SUCCESS)
		*error = conv_error(a->samples, a->sample_count);
	return cuda_check(driver, status, "check", "convolution", err);
}

/* A plan that does not run is left out. */
static enum prony_status measure_all(struct arrays *a, struct cudnn_plan *plans, int count,
				     struct error *err)
{
	enum prony_status status = PRONY_OK;
	float best = 0; /* ms of the fastest one that is exact enough */

	for (int i = 0; i < count && status == PRONY_OK && !(best > 0 && a->spent > PATIENCE_MS);
	     i++) {
		struct cudnn_plan *plan = &plans[i];

		if (measure_time(a, best, plan, err) != PRONY_OK) {
			error_clear(err);
			continue;
		}
		if (a->problem->strict && !(best > 0 && plan->ms > HOPELESS * best))
			status = measure_error(a, &plan->error, err);
		if (plan->error <= CONV_STRICT_ERROR_MAX && (best == 0 || plan->ms < best))
			best = plan->ms;
	}
	return status;
}

enum prony_status cuda_conv_measure(void *context, const struct conv_problem *problem,
				    struct cudnn_plan *plans, int count, struct error *err)
{
	struct device *device = context;
	struct arrays a = {
		.device = device, .problem = problem, .numbers = make_numbers(problem->type)};
	int64_t workspace = 0;
	enum prony_status status;

	for (int i = 0; i < count; i++)
		workspace = plans[i].workspace > workspace ? plans[i].workspace : workspace;
	if (problem->strict)
		a.sample_count = conv_samples(problem, a.numbers, a.samples);
	status = make(&a, workspace, err);
	if (status == PRONY_OK)
		status = measure_all(&a, plans, count, err);
	for (int i = 0; i < PLACES; i++) {
		if (a.memory[i])
			(void)device->driver.MemFree(a.memory[i]);
	}
	if (a.begin)
		(void)device->driver.EventDestroy(a.begin);
	if (a.end)
		(void)device->driver.EventDestroy(a.end);
	free(a.numbers);
	return status;
}
