/* Loops that normalise rows of an array: RMSNormalization, GroupNormalization and
 * InstanceNormalization. oneDNN has the first from 3.8 on and the second from 3.3 on. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_ROW_NORM_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_ROW_NORM_H

#include <stdbool.h>
#include <stddef.h>

/* Row r holds `length` elements. Element i of it has the scale (r % groups) * length / inner + i /
 * inner: with one group and inner = 1 a scale for each element; with channels in groups `inner` is
 * the size of a channel. */
struct row_norm {
	bool bf16;    /* type of x, y and their gradients; else fp32 */
	bool centred; /* the mean is subtracted; else it counts as 0 */
	float epsilon;
	size_t rows, length, groups, inner;
	const void *x, *dy;
	void *y, *dx;
	const float *scale, *shift; /* shift: NULL for none */
	float *moments;		    /* mean and 1 / sqrt(variance + epsilon) of each row; or NULL */
	float *dscale, *dshift;	    /* or NULL */
};

/* The number of scales. */
static inline size_t row_norm_scales(const struct row_norm *norm)
{
	return norm->groups * norm->length / norm->inner;
}

struct row_norm_loops {
	/* y of rows [first, end), and their moments. */
	void (*forward)(const struct row_norm *norm, size_t first, size_t end);
	/* dx of rows [first, end), from their moments. */
	void (*gradient)(const struct row_norm *norm, size_t first, size_t end);
	/* dscale and dshift of scales [first, end). */
	void (*sums)(const struct row_norm *norm, size_t first, size_t end);
};

/* Returns the loops for this processor. */
const struct row_norm_loops *row_norm_pick(void);

#endif
