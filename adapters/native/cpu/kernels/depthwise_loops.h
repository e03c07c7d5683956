/* The innermost loops of depthwise.c, one set for each instruction set and vector width. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_DEPTHWISE_LOOPS_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_DEPTHWISE_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

#define DEPTHWISE_LANES_MAX 16

struct depthwise_tap {
	const float *in, *weight; /* the tap's input at the first point; its weights, a vector */
};

/* Points of an output row, `to_step` floats apart, whose inputs are `in_step` apart. */
struct depthwise_points {
	float *to;
	int64_t to_step, in_step, count;
	const float *start; /* a vector */
	const struct depthwise_tap *taps;
	int tap_count;
	bool relu;
};

/* Products of a row of dy with rows of x, `x_row` apart, at taps `tap_step` apart. */
struct depthwise_products {
	const float *dy, *x;
	int64_t dy_step, x_step, x_row, tap_step, count;
	float *sums;	  /* the sums of the first tap; those of a row follow */
	int64_t sums_row; /* distance between the sums of two rows */
};

/* Widths of the parts of a window that are summed at once, and the number of rows for each. */
enum { DEPTHWISE_WIDTHS = 4, DEPTHWISE_ROWS_MAX = 3 };
extern const int depthwise_widths[DEPTHWISE_WIDTHS], depthwise_rows[DEPTHWISE_WIDTHS];

struct depthwise_loops {
	int lanes;
	void (*points)(const struct depthwise_points *p);
	void (*products[DEPTHWISE_WIDTHS][DEPTHWISE_ROWS_MAX])(const struct depthwise_products *p);
	void (*total)(const float *dy, int64_t step, int64_t count, float *sum);
};

#endif
