/* The product of few rows with many weights: y = x * w + bias. Its time is the time to read the
 * weights from memory once. So the weights are stored in the order in which they are read, each
 * thread reads one contiguous part, and the weights needed next are prefetched. Needs no library
 * and starts no threads: work is counted in items, and the caller shares the items among its
 * threads. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_FEW_ROWS_GEMM_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_FEW_ROWS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

#define FEW_ROWS_ROWS_MAX 12

struct few_rows_loops;

/* Returns the loops for an instruction set, which the processor must have. */
const struct few_rows_loops *few_rows_pick(enum instruction_set set);
/* The number of adjacent outputs in the weights: [ceil(outputs / block)][inner][block]. The last
 * block is padded with any finite values. */
int64_t few_rows_block(const struct few_rows_loops *loops);

/* The address of x[row][i], for i = (c * points + p): row * row_stride + c / block * block_stride +
 * c % block * channel_stride + p * point_stride, in floats. A plain row is one channel. */
struct few_rows_source {
	int64_t row_stride, block, block_stride, channel_stride, point_stride, points;
};

struct few_rows {
	int64_t rows, inner, outputs; /* 1 <= rows <= FEW_ROWS_ROWS_MAX; points divide inner */
	struct few_rows_source x;
	bool relu;
};

/* The number of floats of the packed rows that few_rows_product reads. */
size_t few_rows_packed_floats(const struct few_rows *s, const struct few_rows_loops *loops);
/* Packs channels first to end - 1 of the inner / points channels. */
void few_rows_pack(const struct few_rows *s, const struct few_rows_loops *loops, float *packed,
		   const float *x, size_t first, size_t end);

/* Computes blocks first to end - 1 of ceil(outputs / block). y is row-major; bias may be NULL. */
void few_rows_product(const struct few_rows *s, const struct few_rows_loops *loops, float *y,
		      const float *packed, const float *w, const float *bias, size_t first,
		      size_t end);

#endif
