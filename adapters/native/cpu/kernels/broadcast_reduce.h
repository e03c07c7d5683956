/* Loops over arrays of any strides, for operators that broadcast or reduce. oneDNN has these
 * operators, but it broadcasts only one of two operands, and reduces with reference code. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_BROADCAST_REDUCE_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_BROADCAST_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BROADCAST_MAX_RANK 12

enum broadcast_op { BROADCAST_ADD, BROADCAST_SUB, BROADCAST_MUL, BROADCAST_DIV, BROADCAST_SCALE };

/* out[i] = a[i] op b[i], or factor * a[i] for BROADCAST_SCALE. Strides count elements; 0 repeats.
 */
struct broadcast_walk {
	enum broadcast_op op;
	bool bf16; /* type of all arrays; else fp32 */
	float factor;
	int rank; /* at least 1 */
	int64_t dims[BROADCAST_MAX_RANK];
	int64_t out[BROADCAST_MAX_RANK], a[BROADCAST_MAX_RANK], b[BROADCAST_MAX_RANK];
	int64_t out_start, a_start; /* number of elements before the first */
};

/* out[i] = factor * sum over the reduced dimensions of a. The first `kept` dimensions are those of
 * out; the others are summed. */
struct reduce_sum {
	bool bf16; /* type of a; out is always fp32 */
	float factor;
	int rank, kept;
	int64_t dims[BROADCAST_MAX_RANK];
	int64_t out[BROADCAST_MAX_RANK], a[BROADCAST_MAX_RANK];
};

/* Merges neighbouring dimensions that every array walks as one, and drops those of 1. */
void broadcast_walk_simplify(struct broadcast_walk *walk);
void reduce_sum_simplify(struct reduce_sum *sum);

/* The number of rows, by which work can be split: the product of all dimensions but the last, and
 * that of the kept ones. */
int64_t broadcast_walk_rows(const struct broadcast_walk *walk);
int64_t reduce_sum_rows(const struct reduce_sum *sum);

/* Computes rows [first, end). `b` is not read for BROADCAST_SCALE; `out` may be `a` if their
 * strides agree. */
void broadcast_walk_run(const struct broadcast_walk *walk, void *out, const void *a, const void *b,
			int64_t first, int64_t end);
void reduce_sum_run(const struct reduce_sum *sum, float *out, const void *a, int64_t first,
		    int64_t end);

#endif
