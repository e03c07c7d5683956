/*
 * Sums of any number of arrays in one pass, with what follows them in a training step: each term is
 * read once and the result written once. Calls no library.
 */
#ifndef PRONY_ADAPTERS_NATIVE_KERNELS_ADD_N_H
#define PRONY_ADAPTERS_NATIVE_KERNELS_ADD_N_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/kernels/instruction_set.h"

#define SUM_TERMS_MAX 8

enum sum_then {
	SUM_ONLY,
	SUM_RELU,     /* x > 0 ? x : 0 */
	SUM_RELU_GRAD /* mask > 0 ? x : 0, the mask being the ReLU's output */
};

/*
 * out[i] = terms[0][i] + terms[1][i] + ..., one after the other, in fp32; all arrays are fp32 or
 * all bf16. `out` may be one of the terms, not the mask.
 */
typedef void sum_loop(void *out, const void *const *terms, int count, enum sum_then then,
		      const void *mask, size_t n);

sum_loop *sum_pick(bool bf16, enum instruction_set set);

/*
 * Arrays of rows: a row of `inner` numbers that lie together, and the next one `strides[k]` numbers
 * further on, `starts[k]` being where the first one of array k begins. A part of the channels of an
 * array is such. Array 0 is the result, then come the terms, then the mask if there is one.
 */
#define SUM_ARRAYS_MAX (SUM_TERMS_MAX + 2)
struct sum_rows {
	sum_loop *loop;
	enum sum_then then;
	int count; /* terms */
	bool bf16;
	size_t inner, strides[SUM_ARRAYS_MAX], starts[SUM_ARRAYS_MAX];
};

/* Numbers [first, end) of the result, counted row by row. */
void sum_rows_run(const struct sum_rows *rows, void *const *arrays, size_t first, size_t end);

#endif
