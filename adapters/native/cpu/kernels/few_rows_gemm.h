/*
 * The product of few rows with many weights: y = x * w + bias. Its time is that of reading the
 * weights from memory, once, so they lie in the order in which they are read, each thread has one
 * stretch of them, and what is needed next is asked for ahead. Needs no library and starts no
 * threads: work is counted in items, and the caller shares the items among its threads.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_FEW_ROWS_GEMM_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_FEW_ROWS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

#define FEW_ROWS_ROWS_MAX 12

struct few_rows_loops;

/* The processor must have the set. */
const struct few_rows_loops *few_rows_pick(enum instruction_set set);
/* Outputs that lie together in the weights: [ceil(outputs / block)][inner][block], the last block
 * padded with anything finite. */
int64_t few_rows_block(const struct few_rows_loops *loops);

/*
 * Where x[row][i] is, for i = (c * points + p): row * row_stride + c / block * block_stride +
 * c % block * channel_stride + p * point_stride, in floats. A plain row is one channel.
 */
struct few_rows_source {
	int64_t row_stride, block, block_stride, channel_stride, point_stride, points;
};

struct few_rows {
	int64_t rows, inner, outputs; /* 1 <= rows <= FEW_ROWS_ROWS_MAX; points divide inner */
	struct few_rows_source x;
	bool relu;
};

/* Floats of the rows as few_rows_product reads them. */
size_t few_rows_packed_floats(const struct few_rows *s, const struct few_rows_loops *loops);
/* Packs elements first to end - 1 of inner / points channels. */
void few_rows_pack(const struct few_rows *s, const struct few_rows_loops *loops, float *packed,
		   const float *x, size_t first, size_t end);

/* Blocks first to end - 1 of ceil(outputs / block). y is row-major; bias may be NULL. */
void few_rows_product(const struct few_rows *s, const struct few_rows_loops *loops, float *y,
		      const float *packed, const float *w, const float *bias, size_t first,
		      size_t end);

#endif
