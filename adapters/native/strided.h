/*
 * Loops over arrays of any strides, for what broadcasts or reduces: oneDNN has these too, but only
 * with one of two operands repeated and, when reducing, on reference code.
 */
#ifndef PRONY_ADAPTERS_NATIVE_STRIDED_H
#define PRONY_ADAPTERS_NATIVE_STRIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRIDED_MAX_RANK 12

enum strided_op { STRIDED_ADD, STRIDED_SUB, STRIDED_MUL, STRIDED_DIV, STRIDED_SCALE };

/* out[i] = a[i] op b[i], or factor * a[i] for STRIDED_SCALE. Strides count elements; 0 repeats. */
struct strided_walk {
	enum strided_op op;
	bool bf16; /* all arrays; else fp32 */
	float factor;
	int rank; /* at least 1 */
	int64_t dims[STRIDED_MAX_RANK];
	int64_t out[STRIDED_MAX_RANK], a[STRIDED_MAX_RANK], b[STRIDED_MAX_RANK];
	int64_t out_start, a_start; /* elements before the first */
};

/*
 * out[i] = factor * sum over the reduced dimensions of a. The first `kept` dimensions are those of
 * out, the others are summed up.
 */
struct strided_sum {
	bool bf16; /* a; out is fp32 in any case */
	float factor;
	int rank, kept;
	int64_t dims[STRIDED_MAX_RANK];
	int64_t out[STRIDED_MAX_RANK], a[STRIDED_MAX_RANK];
};

/* Joins neighbouring dimensions that every array runs through as one, and drops those of 1. */
void strided_walk_simplify(struct strided_walk *walk);
void strided_sum_simplify(struct strided_sum *sum);

/* Work can be split by rows: all dimensions but the last, and the kept ones. */
int64_t strided_walk_rows(const struct strided_walk *walk);
int64_t strided_sum_rows(const struct strided_sum *sum);

/* Rows [first, end). `b` is not read for STRIDED_SCALE; `out` may be `a` where strides agree. */
void strided_walk_run(const struct strided_walk *walk, void *out, const void *a, const void *b,
		      int64_t first, int64_t end);
void strided_sum_run(const struct strided_sum *sum, float *out, const void *a, int64_t first,
		     int64_t end);

#endif
