/* The layout of an array in memory. Planning reads strides; properties that strides cannot express,
 * such as blocks, are in the backend's own description. */
#ifndef PRONY_ADAPTERS_NATIVE_LAYOUT_H
#define PRONY_ADAPTERS_NATIVE_LAYOUT_H

#include <stdbool.h>

#include "graph/tensor.h"

struct layout {
	enum dtype type;
	int rank; /* at least 1: a scalar is a vector of one element */
	int64_t dims[TENSOR_MAX_RANK];
	/* In elements. If dimension 1 is blocked, its stride is the distance between blocks. */
	int64_t strides[TENSOR_MAX_RANK];
	int64_t block; /* adjacent elements of dimension 1; 0: the layout is of another kind */
	size_t bytes;  /* from the first element to the last, padding included */
	/*
	 * The backend's description, borrowed; NULL if the strides describe the layout completely.
	 */
	const void *blob;
};

struct layout layout_strided(enum dtype type, int rank, const int64_t *dims,
			     const int64_t *strides);
struct layout layout_row_major(enum dtype type, int rank, const int64_t *dims);
/* A layout with dimension 1 innermost: NHWC for images. */
struct layout layout_channels_last(enum dtype type, int rank, const int64_t *dims);

bool layout_has_dims(const struct layout *layout, int rank, const int64_t *dims);
bool layout_same_dims(const struct layout *a, const struct layout *b);
/* Whether two layouts without a blob are the same; strides of dimensions of 1 are ignored. */
bool layout_same_strides(const struct layout *a, const struct layout *b);

/* The number of elements in memory, padding included. */
size_t layout_elements(const struct layout *layout);

/* Permutes a layout without a blob: dimension i of the result is dimension order[i]. */
struct layout layout_permuted(const struct layout *layout, const int *order);
/* Reshapes a layout without a blob, if each of its dimensions is some neighbouring ones of `dims`.
 */
bool layout_split(const struct layout *layout, int rank, const int64_t *dims, struct layout *out);

#endif
