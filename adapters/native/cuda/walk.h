/* Builds the walks over arrays that kernels take (kernels/arguments.h). */
#ifndef PRONY_ADAPTERS_NATIVE_CUDA_WALK_H
#define PRONY_ADAPTERS_NATIVE_CUDA_WALK_H

#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

/* Adds an inner dimension to one or two walks (b may be NULL) over the same elements. A dimension
 * that all arrays walk as one with the last is merged into it. */
static inline void walk_push(struct cuda_walk *a, int64_t a_stride, struct cuda_walk *b,
			     int64_t b_stride, int64_t dim)
{
	struct cuda_walk *const walks[] = {a, b};
	const int64_t strides[] = {a_stride, b_stride};
	bool joins = a->rank > 0;

	if (dim == 1)
		return;
	for (int k = 0; k < 2 && walks[k] && joins; k++)
		joins = walks[k]->strides[walks[k]->rank - 1] == strides[k] * dim;
	for (int k = 0; k < 2 && walks[k]; k++) {
		struct cuda_walk *walk = walks[k];
		int last = joins ? walk->rank - 1 : walk->rank++;

		walk->dims[last] = (joins ? walk->dims[last] : 1) * (int)dim;
		walk->strides[last] = strides[k];
	}
}

/* The dimensions of a layout in descending order of their strides. */
static inline void walk_order(const struct layout *layout, int *order)
{
	for (int i = 0; i < layout->rank; i++) {
		int at = i;

		for (; at > 0 && layout->strides[order[at - 1]] < layout->strides[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

/* Kernels count the elements of a walk with 32 bits. */
static inline enum prony_status walk_check(const struct node *node, const struct layout *layout,
					   struct error *err)
{
	return layout_elements(layout) <= INT32_MAX
		       ? PRONY_OK
		       : error_set(err, PRONY_UNSUPPORTED,
				   "'%s' has more than 2^31 - 1 elements; use a smaller batch",
				   node->name);
}

#endif
