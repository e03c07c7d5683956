/* Creates and compares layouts without a blob. */
#include "adapters/native/layout.h"

#include <string.h>

struct layout layout_strided(enum dtype type, int rank, const int64_t *dims, const int64_t *strides)
{
	struct layout layout = {.type = type, .rank = rank};
	int64_t elements = 1;

	for (int i = 0; i < rank; i++) {
		layout.dims[i] = dims[i];
		layout.strides[i] = strides[i];
		if (dims[i] > 1 && dims[i] * strides[i] > elements)
			elements = dims[i] * strides[i];
	}
	if (rank == 0) {
		layout.rank = 1;
		layout.dims[0] = layout.strides[0] = 1;
	}
	layout.bytes = (size_t)elements * dtype_bytes(type);
	return layout;
}

struct layout layout_row_major(enum dtype type, int rank, const int64_t *dims)
{
	int64_t strides[TENSOR_MAX_RANK], stride = 1;

	for (int i = rank - 1; i >= 0; i--) {
		strides[i] = stride;
		stride *= dims[i];
	}
	return layout_strided(type, rank, dims, strides);
}

struct layout layout_channels_last(enum dtype type, int rank, const int64_t *dims)
{
	int64_t strides[TENSOR_MAX_RANK], stride = dims[1];

	strides[1] = 1;
	for (int i = rank - 1; i >= 2; i--) {
		strides[i] = stride;
		stride *= dims[i];
	}
	strides[0] = stride;
	return layout_strided(type, rank, dims, strides);
}

bool layout_has_dims(const struct layout *layout, int rank, const int64_t *dims)
{
	return layout->rank == rank &&
	       memcmp(layout->dims, dims, (size_t)rank * sizeof(*dims)) == 0;
}

bool layout_same_dims(const struct layout *a, const struct layout *b)
{
	return layout_has_dims(a, b->rank, b->dims);
}

bool layout_same_strides(const struct layout *a, const struct layout *b)
{
	if (a->type != b->type || !layout_same_dims(a, b))
		return false;
	for (int i = 0; i < a->rank; i++) {
		if (a->dims[i] != 1 && a->strides[i] != b->strides[i])
			return false;
	}
	return true;
}

size_t layout_elements(const struct layout *layout)
{
	return layout->bytes / dtype_bytes(layout->type);
}

struct layout layout_permuted(const struct layout *layout, const int *order)
{
	int64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];

	for (int i = 0; i < layout->rank; i++) {
		dims[i] = layout->dims[order[i]];
		strides[i] = layout->strides[order[i]];
	}
	return layout_strided(layout->type, layout->rank, dims, strides);
}

bool layout_split(const struct layout *layout, int rank, const int64_t *dims, struct layout *out)
{
	int64_t strides[TENSOR_MAX_RANK];
	int i = rank - 1;

	for (int k = layout->rank - 1; k >= 0; k--) {
		int64_t inside = 1;

		for (; i >= 0 && inside < layout->dims[k]; i--) {
			strides[i] = layout->strides[k] * inside;
			inside *= dims[i];
		}
		if (inside != layout->dims[k])
			return false;
	}
	for (; i >= 0; i--)
		strides[i] = 1; /* these are 1 */
	*out = layout_strided(layout->type, rank, dims, strides);
	return !layout->blob;
}
