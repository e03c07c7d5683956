/* Measures the peak performance of this machine, which the share of a cell's FLOP/s refers to.
 * Measuring loads oneDNN and uses all processors and much memory for seconds, so do it only in a
 * separate process. */
#ifndef PRONY_CEILINGS_CEILINGS_H
#define PRONY_CEILINGS_CEILINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* One core and all cores; for a GPU the same figure twice. FLOP/s, or bytes/s. */
struct ceiling {
	double one, all;  /* NaN: not measured */
	char how[64];	  /* "avx512f", "oneDNN 3.12.0, 1536 x 1536" */
	char absent[160]; /* why it was not measured; "" when it was */
};

/*
 * There is no fp16 loop: fp16 sums are exact only to 2048, so the loop could not prove what it did.
 */
#define CEILINGS(X)                                                                                \
	X(fma_fp32, "multiply-add loop, fp32", "FLOP/s")                                           \
	X(fma_bf16, "multiply-add loop, bf16", "FLOP/s")                                           \
	X(matrix_fp32, "matrix product, fp32", "FLOP/s")                                           \
	X(matrix_fp16, "matrix product, fp16", "FLOP/s")                                           \
	X(matrix_bf16, "matrix product, bf16", "FLOP/s")                                           \
	X(bandwidth, "memory, a = b + s c", "bytes/s")

/* Of the GPU cuda:0, if there is one. */
#define CEILINGS_GPU(X)                                                                            \
	X(gpu_matrix_fp32, "GPU: matrix product, fp32", "FLOP/s")                                  \
	X(gpu_matrix_tf32, "GPU: matrix product, tf32", "FLOP/s")                                  \
	X(gpu_matrix_fp16, "GPU: matrix product, fp16", "FLOP/s")                                  \
	X(gpu_matrix_bf16, "GPU: matrix product, bf16", "FLOP/s")                                  \
	X(gpu_bandwidth, "GPU: memory, copy", "bytes/s")

struct ceilings {
#define X(name, title, unit) struct ceiling name;
	CEILINGS(X)
	CEILINGS_GPU(X)
#undef X
	bool has_gpu;
};

struct ceilings_settings {
	const char *library; /* libdnnl.so.3; NULL: no matrix products, and `no_library` says why */
	const char *no_library;
	const int *cpus; /* one logical processor per core */
	int cpu_count;
	int64_t each_ns;    /* approximate time for each figure */
	size_t array_bytes; /* of each array; 0: larger than the caches */
	int64_t gpu_matrix; /* rows of a GPU's matrices; 0: large */
};

/* Each ceiling gets a figure or a reason. PRONY_INTERNAL when threads cannot be started. */
enum prony_status ceilings_measure(const struct ceilings_settings *settings, struct ceilings *out,
				   struct error *err);

/* {"cores": n, "fma_fp32": {"one": x, "all": x, "unit": ..., "how": ..., "absent": null}, ...}; new
 * reference. */
json_t *ceilings_to_json(const struct ceilings *ceilings, int cores);

#endif
