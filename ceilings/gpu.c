/* The peak of a GPU: large products of random numbers, since products of zeros draw less power and
 * run at a higher clock, and copies within its memory. */
#include "ceilings/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cuda/cublaslt.h"
#include "adapters/native/cuda/driver.h"

enum {
	MATRIX_SIZE = 8192,
	BLOCK = 1 << 20, /* elements that are drawn; matrices repeat them */
	CALLS_MAX = 1000
};
#define COPY_BYTES ((size_t)1 << 30)
#define WORKSPACE_BYTES ((size_t)32 << 20)
#define MILLISECONDS 1e-3
#define NANOSECONDS 1e-9

struct gpu {
	struct cuda_driver driver;
	struct cublaslt blas;
	cublaslt_handle handle;
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct CUevent_st *begin, *end;
	CUdevice device;
	struct error *err;
};

/* Keeps the first error; later calls of a gpu with an error are skipped by their callers. */
static bool cuda_ok(struct gpu *gpu, int status, const char *what)
{
	return cuda_check(&gpu->driver, status, what, "ceilings", gpu->err) == PRONY_OK;
}

static bool blas_ok(struct gpu *gpu, int status, const char *what)
{
	return cublaslt_check(&gpu->blas, status, what, "ceilings", gpu->err) == PRONY_OK;
}

static bool open_gpu(struct gpu *gpu)
{
	const struct cuda_driver *driver = &gpu->driver;

	return cuda_ok(gpu, driver->DeviceGet(&gpu->device, 0), "device") &&
	       cuda_ok(gpu, driver->DevicePrimaryCtxRetain(&gpu->context, gpu->device),
		       "context") &&
	       cuda_ok(gpu, driver->CtxSetCurrent(gpu->context), "context") &&
	       cuda_ok(gpu, driver->StreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING), "stream") &&
	       cuda_ok(gpu, driver->EventCreate(&gpu->begin, CU_EVENT_DEFAULT), "event") &&
	       cuda_ok(gpu, driver->EventCreate(&gpu->end, CU_EVENT_DEFAULT), "event");
}

static void close_gpu(struct gpu *gpu)
{
	const struct cuda_driver *driver = &gpu->driver;

	if (gpu->handle)
		gpu->blas.Destroy(gpu->handle);
	if (gpu->begin)
		driver->EventDestroy(gpu->begin);
	if (gpu->end)
		driver->EventDestroy(gpu->end);
	if (gpu->stream)
		driver->StreamDestroy(gpu->stream);
	if (gpu->context)
		driver->DevicePrimaryCtxRelease(gpu->device);
}

/* The seconds of one call, from a run of at least each_ns; 0 after an error. */
static double time_calls(struct gpu *gpu, bool (*call)(struct gpu *gpu, void *data), void *data,
			 int64_t each_ns)
{
	const struct cuda_driver *driver = &gpu->driver;
	double seconds = 0;
	int calls = 1;

	for (int round = 0; round < 3; round++) {
		float ms = 0;
		if (!cuda_ok(gpu, driver->EventRecord(gpu->begin, gpu->stream), "event"))
			return 0;
		for (int i = 0; i < calls; i++)
			if (!call(gpu, data))
				return 0;
		if (!cuda_ok(gpu, driver->EventRecord(gpu->end, gpu->stream), "event") ||
		    !cuda_ok(gpu, driver->EventSynchronize(gpu->end), "run") ||
		    !cuda_ok(gpu, driver->EventElapsedTime(&ms, gpu->begin, gpu->end), "time"))
			return 0;
		/* The first round starts the library, the second says how many calls fit. */
		seconds = fmax(ms * MILLISECONDS, NANOSECONDS) / calls;
		calls = (int)fmin(fmax((double)each_ns * NANOSECONDS / seconds, 1), CALLS_MAX);
	}
	return seconds;
}

struct matrix_type {
	enum cublas_type type;
	enum cublas_compute compute;
	uint32_t half; /* bits of 0.5 */
	int mantissa;  /* random bits below: numbers from 0.5 to 1, with a random sign */
	int bytes;
};

struct product {
	const struct matrix_type *type;
	int64_t n;
	cublaslt_product description;
	cublaslt_matrix layout;
	cublaslt_preference preference;
	struct cublaslt_choice choice;
	CUdeviceptr matrices[3], workspace;
};

static uint32_t drawn_bits(const struct matrix_type *type, uint32_t i)
{
	uint32_t x = (i + 1) * 0x9e3779b9U;

	x = (x ^ x >> 15) * 0x85ebca6bU;
	x ^= x >> 13;
	return (x >> 31) << (type->bytes * 8 - 1) | type->half | (x & ((1U << type->mantissa) - 1));
}

static double drawn_number(const struct matrix_type *type, uint32_t i)
{
	uint32_t bits = drawn_bits(type, i);
	double fraction = (double)(bits & ((1U << type->mantissa) - 1)) / (1 << type->mantissa);

	return (bits >> (type->bytes * 8 - 1) ? -0.5 : 0.5) * (1 + fraction);
}

static bool fill(struct gpu *gpu, const struct product *p)
{
	size_t total = (size_t)(p->n * p->n * p->type->bytes), block;
	unsigned char *drawn = malloc((size_t)BLOCK * 4);
	bool ok = drawn != NULL;

	for (uint32_t i = 0; ok && i < BLOCK; i++) {
		uint32_t bits = drawn_bits(p->type, i);
		memcpy(drawn + (size_t)i * (size_t)p->type->bytes, &bits, (size_t)p->type->bytes);
	}
	for (int m = 0; m < 2; m++) {
		for (size_t at = 0; ok && at < total; at += block) {
			block = (size_t)BLOCK * (size_t)p->type->bytes;
			block = total - at < block ? total - at : block;
			ok = cuda_ok(gpu,
				     gpu->driver.MemcpyHtoDAsync(p->matrices[m] + at, drawn, block,
								 gpu->stream),
				     "copy");
		}
	}
	ok = ok && cuda_ok(gpu, gpu->driver.StreamSynchronize(gpu->stream), "copy");
	free(drawn);
	return ok;
}

static bool multiply(struct gpu *gpu, void *data)
{
	const float one = 1, zero = 0;
	const struct product *p = data;

	return blas_ok(gpu,
		       gpu->blas.Matmul(
			       gpu->handle, p->description, &one, (void *)(uintptr_t)p->matrices[0],
			       p->layout, (void *)(uintptr_t)p->matrices[1], p->layout, &zero,
			       (void *)(uintptr_t)p->matrices[2], p->layout,
			       (void *)(uintptr_t)p->matrices[2], p->layout, &p->choice.algorithm,
			       (void *)(uintptr_t)p->workspace, p->choice.workspace, gpu->stream),
		       "product");
}

/* Whether the first element of the product is right, so that its time counts. */
static bool right(struct gpu *gpu, const struct product *p)
{
	double sum = 0, got = 0;
	uint32_t bits = 0;
	float number;

	if (!cuda_ok(gpu,
		     gpu->driver.MemcpyDtoHAsync(&bits, p->matrices[2], (size_t)p->type->bytes,
						 gpu->stream),
		     "copy") ||
	    !cuda_ok(gpu, gpu->driver.StreamSynchronize(gpu->stream), "copy"))
		return false;
	for (int64_t k = 0; k < p->n; k++)
		sum += drawn_number(p->type, (uint32_t)(k * p->n % BLOCK)) *
		       drawn_number(p->type, (uint32_t)(k % BLOCK));
	if (p->type->type == CUDA_R_16F) {
		int exponent = (int)(bits >> 10 & 31);
		got = ldexp(1 + (double)(bits & 1023) / 1024, exponent - 15);
		got = exponent ? (bits >> 15 ? -got : got) : 0;
	} else {
		bits = p->type->type == CUDA_R_16BF ? bits << 16 : bits;
		memcpy(&number, &bits, sizeof number);
		got = (double)number;
	}
	/* A sum of n terms of at most 1, each rounded to the type. */
	if (fabs(got - sum) <= (double)p->n / (1 << p->type->mantissa) + fabs(sum) * 0.01)
		return true;
	error_set(gpu->err, PRONY_INTERNAL,
		  "the product gave a wrong result, so its time is not used");
	return false;
}

static bool make_product(struct gpu *gpu, struct product *p)
{
	const struct cublaslt *blas = &gpu->blas;
	size_t bytes = (size_t)(p->n * p->n * p->type->bytes);
	uint64_t workspace = WORKSPACE_BYTES;
	uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE; /* as native's products */
	int found = 0;

	for (int i = 0; i < 3; i++)
		if (!cuda_ok(gpu, gpu->driver.MemAlloc(&p->matrices[i], bytes), "matrix"))
			return false;
	if (!cuda_ok(gpu, gpu->driver.MemAlloc(&p->workspace, WORKSPACE_BYTES), "workspace") ||
	    !blas_ok(gpu,
		     blas->MatmulDescCreate(&p->description, (int)p->type->compute, CUDA_R_32F),
		     "product") ||
	    !blas_ok(gpu,
		     blas->MatrixLayoutCreate(&p->layout, (int)p->type->type, (uint64_t)p->n,
					      (uint64_t)p->n, p->n),
		     "matrix") ||
	    !blas_ok(gpu, blas->MatmulPreferenceCreate(&p->preference), "preference") ||
	    !blas_ok(gpu,
		     blas->MatmulPreferenceSetAttribute(p->preference,
							CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
							&workspace, sizeof workspace),
		     "workspace") ||
	    !blas_ok(gpu,
		     blas->MatmulPreferenceSetAttribute(p->preference,
							CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
							&scheme, sizeof scheme),
		     "sums") ||
	    !blas_ok(gpu,
		     blas->MatmulAlgoGetHeuristic(gpu->handle, p->description, p->layout, p->layout,
						  p->layout, p->layout, p->preference, 1,
						  &p->choice, &found),
		     "choice of an algorithm"))
		return false;
	return found == 1 || !blas_ok(gpu, CUBLAS_STATUS_NOT_SUPPORTED, "product");
}

static void release_product(struct gpu *gpu, struct product *p)
{
	if (p->preference)
		gpu->blas.MatmulPreferenceDestroy(p->preference);
	if (p->layout)
		gpu->blas.MatrixLayoutDestroy(p->layout);
	if (p->description)
		gpu->blas.MatmulDescDestroy(p->description);
	for (int i = 0; i < 3; i++)
		if (p->matrices[i])
			gpu->driver.MemFree(p->matrices[i]);
	if (p->workspace)
		gpu->driver.MemFree(p->workspace);
}

static void measure_product(struct gpu *gpu, const struct ceilings_settings *s,
			    const struct matrix_type *type, struct ceiling *out)
{
	struct product p = {.type = type, .n = s->gpu_matrix ? s->gpu_matrix : MATRIX_SIZE};
	double seconds = 0, n = (double)p.n;
	char version[32];

	if (make_product(gpu, &p) && fill(gpu, &p))
		seconds = time_calls(gpu, multiply, &p, s->each_ns);
	if (seconds > 0 && right(gpu, &p)) {
		out->one = out->all = 2 * n * n * n / seconds;
		cublaslt_version_text(&gpu->blas, version, sizeof version);
		snprintf(out->how, sizeof out->how, "cuBLASLt %.20s, %lld x %lld", version,
			 (long long)p.n, (long long)p.n);
	}
	release_product(gpu, &p);
}

struct copy {
	CUdeviceptr from, to;
	size_t bytes;
};

static bool copy(struct gpu *gpu, void *data)
{
	const struct copy *c = data;

	return cuda_ok(gpu, gpu->driver.MemcpyDtoDAsync(c->to, c->from, c->bytes, gpu->stream),
		       "copy");
}

static void measure_copy(struct gpu *gpu, const struct ceilings_settings *s, struct ceiling *out)
{
	struct copy c = {.bytes = s->array_bytes ? s->array_bytes : COPY_BYTES};
	double seconds = 0;

	if (cuda_ok(gpu, gpu->driver.MemAlloc(&c.from, c.bytes), "memory") &&
	    cuda_ok(gpu, gpu->driver.MemAlloc(&c.to, c.bytes), "memory") &&
	    cuda_ok(gpu, gpu->driver.MemsetD8Async(c.from, 1, c.bytes, gpu->stream), "memory"))
		seconds = time_calls(gpu, copy, &c, s->each_ns);
	if (seconds > 0) {
		out->one = out->all = 2 * (double)c.bytes / seconds;
		snprintf(out->how, sizeof out->how, "copies of %zu MiB, read and written",
			 c.bytes >> 20);
	}
	if (c.from)
		gpu->driver.MemFree(c.from);
	if (c.to)
		gpu->driver.MemFree(c.to);
}

void gpu_measure(const struct ceilings_settings *s, struct ceilings *out)
{
	static const struct matrix_type types[] = {
		{CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC, 0x3f000000, 23, 4},
		{CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 0x3f000000, 23, 4},
		{CUDA_R_16F, CUBLAS_COMPUTE_32F, 0x3800, 10, 2},
		{CUDA_R_16BF, CUBLAS_COMPUTE_32F, 0x3f00, 7, 2}};
	struct ceiling *const products[] = {&out->gpu_matrix_fp32, &out->gpu_matrix_tf32,
					    &out->gpu_matrix_fp16, &out->gpu_matrix_bf16};
	struct error why = ERROR_INIT, no_blas = ERROR_INIT;
	struct gpu gpu = {.err = &why};

	if (cuda_driver_load(&gpu.driver, &why) != PRONY_OK)
		return;
	out->has_gpu = true;
	if (open_gpu(&gpu))
		measure_copy(&gpu, s, &out->gpu_bandwidth);
	snprintf(out->gpu_bandwidth.absent, sizeof out->gpu_bandwidth.absent, "%.150s", why.text);
	if (cublaslt_load(&gpu.blas, &no_blas) == PRONY_OK) {
		gpu.err = &no_blas;
		blas_ok(&gpu, gpu.blas.Create(&gpu.handle), "library");
	}
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		struct error failed = no_blas.code ? no_blas : why;

		gpu.err = &failed;
		if (!failed.code)
			measure_product(&gpu, s, &types[i], products[i]);
		snprintf(products[i]->absent, sizeof products[i]->absent, "%.150s", failed.text);
	}
	close_gpu(&gpu);
}
