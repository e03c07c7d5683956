/* Attention of one head of one sample: softmax(scale q k' + mask) v, and its gradients. Scores are
 * computed by blocks of rows, which stay in the caches, and are never stored: the gradients compute
 * them again from the logarithm of each row's sum (Dao et al. 2022, arXiv 2205.14135). With a
 * causal mask, scores above the diagonal are not computed. Needs no library and starts no threads.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_ATTENTION_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"
#include "adapters/native/dropout.h"

struct attention_loops;

/* Returns the loops for an instruction set, which the processor must have. */
const struct attention_loops *attention_pick(enum instruction_set set);

struct attention_head {
	int64_t queries, keys, width; /* rows of q, rows of k and v, features of a row */
	bool causal;		      /* a query sees keys up to its own place; queries = keys */
	bool bf16;		      /* arrays are bf16 instead of fp32; sums are always fp32 */
	float scale;
	const float *mask; /* queries x keys numbers that are added to the scaled scores, or NULL */
	bool drops;	   /* weights are dropped as by a Dropout of the whole array ... */
	struct dropout_draw draw; /* ... with this draw; `first` is the array's index of the */
	uint64_t first;		  /* head's first weight */
};

/* A matrix whose rows are `row` elements apart. */
struct attention_rows {
	void *data;
	int64_t row;
};

/* The number of floats of `scratch`, which starts at a multiple of 64 bytes. */
size_t attention_scratch_floats(const struct attention_head *h, const struct attention_loops *loops,
				bool gradient);

/* `at`: q, k, v and the result y. log_sums, unless NULL: the logarithm of the sum of each query's
 * row. */
void attention_forward(const struct attention_head *h, const struct attention_loops *loops,
		       const struct attention_rows at[4], float *log_sums, float *scratch);

/* `in`: q, k, v, y and dy; log_sums: those of the forward pass; `out`: dq, dk and dv. */
void attention_gradient(const struct attention_head *h, const struct attention_loops *loops,
			const struct attention_rows in[5], const float *log_sums,
			const struct attention_rows out[3], float *scratch);

#endif
