/* Response normalisation across channels (Krizhevsky et al. 2012, section 3.3), position by
 * position: y = x * s^-beta, s = bias + scale * (sum of x^2 over a window of channels). Needs no
 * library and starts no threads: the caller shares the positions among its threads. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LRN_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_LRN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

struct lrn_loops;

/* Returns the loops for an instruction set, which the processor must have. */
const struct lrn_loops *lrn_pick(enum instruction_set set);

/* Channel c of position p of a sample is its element c / block * block_stride + c % block + p *
 * position_stride: channels last, or in blocks. */
struct lrn {
	int64_t channels, positions; /* of a sample */
	int64_t block;		     /* number of adjacent channels */
	int64_t block_stride, position_stride, sample_stride;
	int64_t before, after; /* channels of the window on either side, at most all */
	float scale, bias, beta;
	bool bf16; /* type of the arrays; computed in fp32 */
	const struct lrn_loops *loops;
};

/* The number of floats of scratch memory per thread. They must be zero before its first call; later
 * calls reuse their contents. */
size_t lrn_scratch_floats(const struct lrn *lrn);

/* Computes positions first to end - 1 of all samples. out may be x. */
void lrn_forward(const struct lrn *lrn, void *out, const void *x, float *scratch, size_t first,
		 size_t end);
/* dx_i = dy_i s_i^-beta - 2 beta scale x_i (sum over all j whose window contains i of dy_j y_j /
 * s_j); dx may be dy. */
void lrn_backward(const struct lrn *lrn, void *dx, const void *x, const void *dy, float *scratch,
		  size_t first, size_t end);

#endif
