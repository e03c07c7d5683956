/* Depthwise convolution, in which each channel has its own window: forward, the gradient of the
 * data and that of the weights, for the cases in which the library's code is slow. Needs no library
 * and starts no threads: work is counted in items, and the caller shares the items among its
 * threads. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_DEPTHWISE_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

#define DEPTHWISE_SIDE_MAX 11 /* largest side of a window */

/* Strides of a tensor in floats. Channels c and c + 1 are adjacent unless a block ends between
 * them: channels last are one block, nChw16c are blocks of 16. */
struct depthwise_layout {
	int64_t sample, row, column, block, block_stride;
};

/* Pairs are height, width. */
struct depthwise {
	int64_t batch, channels;
	int64_t present; /* channels in memory, including the padding of the last block */
	int64_t in[2], out[2], kernel[2], strides[2], dilations[2];
	int64_t before[2];	      /* padding above and to the left */
	struct depthwise_layout x, y; /* of input and output, and of their gradients */
	struct {
		int64_t block, block_stride, row, column;
	} w; /* weights and their gradient; `block` channels are adjacent */
};

struct depthwise_loops;

/* Returns the loops for this layer. The processor must have the instruction set. */
const struct depthwise_loops *depthwise_pick(const struct depthwise *d, enum instruction_set set);

/* Computes items first to end - 1 of batch x out[0] rows: y = x * w + bias; with `relu` negative
 * values become zero. bias may be NULL. In padding channels y becomes zero. */
void depthwise_forward(const struct depthwise *d, const struct depthwise_loops *loops, float *y,
		       const float *x, const float *w, const float *bias, bool relu, size_t first,
		       size_t end);

/* Computes the input's gradient for items of batch x in[0] rows. */
void depthwise_data(const struct depthwise *d, const struct depthwise_loops *loops, float *dx,
		    const float *dy, const float *w, size_t first, size_t end);

/* The weights' gradient has two passes. In the first, each of units x parts items sums over a part
 * of the rows, into `partial` (depthwise_partial_bytes). In the second, each of units items adds up
 * the parts, always in the same order. The result depends on `parts`, which depends on the number
 * of threads. */
size_t depthwise_units(const struct depthwise *d, const struct depthwise_loops *loops);
size_t depthwise_parts(const struct depthwise *d, const struct depthwise_loops *loops, int threads);
size_t depthwise_partial_bytes(const struct depthwise *d, const struct depthwise_loops *loops,
			       size_t parts);
void depthwise_weights(const struct depthwise *d, const struct depthwise_loops *loops, size_t parts,
		       float *partial, const float *x, const float *dy, bool bias, size_t first,
		       size_t end);
/* db is NULL if the first pass was called without a bias. The padding of dw is not written. */
void depthwise_weights_sum(const struct depthwise *d, const struct depthwise_loops *loops,
			   size_t parts, float *dw, float *db, const float *partial, size_t first,
			   size_t end);

#endif
