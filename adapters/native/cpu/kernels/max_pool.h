/* The gradient of max-pooling in one pass that writes each element of the input's gradient once:
 * for each point, the windows that contain it are searched for those whose maximum it is. oneDNN 3
 * clears the gradient and adds each window's gradient to it, which passes through the caches twice.
 * Calls no library. */
#ifndef PRONY_ADAPTERS_NATIVE_CPU_KERNELS_MAX_POOL_H
#define PRONY_ADAPTERS_NATIVE_CPU_KERNELS_MAX_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/cpu/kernels/instruction_set.h"

/* The windows that contain a place in a row or a column of the input: `count` from `first` on. The
 * place is the first window's tap `tap`; in each further window the tap is smaller by a stride. */
struct max_pool_span {
	int64_t first, count, tap;
};

/* A layer without dilation. A point is `channels` adjacent numbers; a plane is in[0] x in[1]
 * points. A plane is an image if all channels are adjacent, else a block of an image's channels. */
struct max_pool {
	int64_t in[2], out[2], strides[2], channels;
	int64_t kernel_width;
	const struct max_pool_span *rows, *columns; /* height and width, in[0] and in[1] spans */
	int64_t inner, inner_count;		    /* see max_pool_find_inner */
};

/* Fills `spans`, one for each of the `in` places along one dimension. */
void max_pool_spans(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t before,
		    struct max_pool_span *spans);

/* Sets `inner` and `inner_count` from the other members and the padding before a row. They are the
 * first point and the number of consecutive strides of points that have all their windows; -1 and 0
 * if there are none. */
void max_pool_find_inner(struct max_pool *p, int64_t before);

/* Computes rows [first, end) of dx, counted through all planes. For each output `chosen` is the tap
 * of its window with the maximum, in row-major order, as in oneDNN's workspace; a tap in the
 * padding receives no gradient. Numbers are fp32, or bf16 that are added in fp32. */
typedef void max_pool_gradient(const struct max_pool *p, void *dx, const void *dy,
			       const uint8_t *chosen, size_t first, size_t end);

/* Never NULL: few channels get the function of a narrower set. */
max_pool_gradient *max_pool_pick(int64_t channels, bool bf16, enum instruction_set set);

#endif
