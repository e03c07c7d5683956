/*
 * Loops over arrays of any strides, for what broadcasts or reduces: oneDNN has these too, but only
 * with one of two operands repeated and, when reducing, on reference code.
 */
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
	bool bf16; /* all arrays; else fp32 */
	float factor;
	int rank; /* at least 1 */
	int64_t dims[BROADCAST_MAX_RANK];
	int64_t out[BROADCAST_MAX_RANK], a[BROADCAST_MAX_RANK], b[BROADCAST_MAX_RANK];
	int64_t out_start, a_start; /* elements before the first */
};

/*
 * out[i] = factor * sum over the reduced dimensions of a. The first `kept` dimensions are those of
 * out, the others are summed up.
 */
struct reduce_sum {
	bool bf16; /* a; out is fp32 in any case */
	float factor;
	int rank, kept;
	int64_t dims[BROADCAST_MAX_RANK];
	int64_t out[BROADCAST_MAX_RANK], a[BROADCAST_MAX_RANK];
};

/* Joins neighbouring dimensions that every array runs through as one, and drops those of 1. */
void broadcast_walk_simplify(struct broadcast_walk *walk);
void reduce_sum_simplify(struct reduce_sum *sum);

/* Work can be split by rows: all dimensions but the last, and the kept ones. */
int64_t broadcast_walk_rows(const struct broadcast_walk *walk);
int64_t reduce_sum_rows(const struct reduce_sum *sum);

/* Rows [first, end). `b` is not read for BROADCAST_SCALE; `out` may be `a` where strides agree. */
void broadcast_walk_run(const struct broadcast_walk *walk, void *out, const void *a, const void *b,
			int64_t first, int64_t end);
void reduce_sum_run(const struct reduce_sum *sum, float *out, const void *a, int64_t first,
		    int64_t end);

#endif
