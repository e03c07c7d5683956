/*
 * The gradient of max-pooling in one pass that writes each element of the input's gradient once: a
 * point asks the windows over it whether they chose it. oneDNN 3 clears the gradient and adds each
 * window's to it, so that it goes through the caches twice. Calls no library.
 */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_MAX_POOL_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_MAX_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

/* The windows over a row or a column of the input: `count` from `first` on. The first of them has
 * it at `tap`, each further one a stride before. */
struct max_pool_span {
	int64_t first, count, tap;
};

/* A layer without dilation. A point is `channels` numbers that lie together, a plane is in[0] x
 * in[1] points: an image where all channels lie together, else a block of channels of an image. */
struct max_pool {
	int64_t in[2], out[2], strides[2], channels;
	int64_t kernel_width;
	const struct max_pool_span *rows, *columns; /* in[0] and in[1] of them */
	int64_t inner, inner_count;		    /* see max_pool_find_inner */
};

/* Fills `spans`, one for each of `in` places along one dimension. */
void max_pool_spans(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t before,
		    struct max_pool_span *spans);

/* Sets `inner` and `inner_count` from the rest and the padding before a row: strides of points,
 * from a point on, none of whose windows is missing; -1 and 0 where there are none. */
void max_pool_find_inner(struct max_pool *p, int64_t before);

/*
 * Rows [first, end) of dx, counted through all planes. `chosen` says for each output which tap of
 * its window is the maximum, in row-major order, as oneDNN's workspace does; a tap that lies in the
 * padding gets nothing. Numbers are fp32, or bf16 that are added in fp32.
 */
typedef void max_pool_gradient(const struct max_pool *p, void *dx, const void *dy,
			       const uint8_t *chosen, size_t first, size_t end);

/* Never NULL: for few channels it is that of a lesser set. */
max_pool_gradient *max_pool_pick(int64_t channels, bool bf16, enum instruction_set set);

#endif
