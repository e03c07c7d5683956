#include <string.h>

#include "adapters/native/lower/lower_internal.h"

/* Layouts of memory. */

enum prony_status lower_plain(const struct lowering *l, dnnl_data_type_t type, int rank,
			      const int64_t *dims, dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_dims_t all = {0}, strides = {0}; /* the library's type: an array of its own length */
	const int64_t one = 1;
	int64_t stride = 1;

	if (rank == 0) { /* the library has no scalars */
		rank = 1;
		dims = &one;
	}
	for (int i = rank - 1; i >= 0; i--) {
		all[i] = dims[i];
		strides[i] = stride;
		stride *= dims[i];
	}
	return onednn_check(l->dnn->memory_desc_create_with_strides(out, rank, all, type, strides),
			    "memory descriptor", "row-major", err);
}

enum prony_status lower_any(const struct lowering *l, dnnl_data_type_t type, int rank,
			    const int64_t *dims, dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_dims_t all = {0};

	memcpy(all, dims, (size_t)rank * sizeof(int64_t));
	return onednn_check(
		l->dnn->memory_desc_create_with_tag(out, rank, all, type, dnnl_format_tag_any),
		"memory descriptor", "any layout", err);
}

int lower_rank(const struct lowering *l, const_dnnl_memory_desc_t desc)
{
	int rank = 0;

	l->dnn->memory_desc_query(desc, dnnl_query_ndims_s32, &rank);
	return rank;
}

const int64_t *lower_dims(const struct lowering *l, const_dnnl_memory_desc_t desc)
{
	const dnnl_dims_t *dims = NULL;

	l->dnn->memory_desc_query(desc, dnnl_query_dims, &dims);
	return *dims;
}

dnnl_data_type_t lower_type(const struct lowering *l, int operand)
{
	return onednn_type(l->dnn, l->program->operands[operand].desc);
}

bool lower_same_dims(const struct lowering *l, const_dnnl_memory_desc_t a,
		     const_dnnl_memory_desc_t b)
{
	int rank = lower_rank(l, a);

	return rank == lower_rank(l, b) &&
	       memcmp(lower_dims(l, a), lower_dims(l, b), (size_t)rank * sizeof(int64_t)) == 0;
}

/* The tag that describes four dimensions in an ordinary way, or dnnl_format_tag_undef. */
static dnnl_format_tag_t tag_of(const struct lowering *l, const_dnnl_memory_desc_t desc)
{
	static const dnnl_format_tag_t tags[] = {dnnl_nhwc, dnnl_nChw16c, dnnl_nChw8c, dnnl_nChw4c};
	const struct onednn *dnn = l->dnn;

	for (size_t i = 0; lower_rank(l, desc) == 4 && i < 4; i++) {
		dnnl_memory_desc_t own = NULL;
		dnnl_dims_t all;
		int equal;

		memcpy(all, lower_dims(l, desc), sizeof(int64_t) * 4);
		if (dnn->memory_desc_create_with_tag(&own, 4, all, onednn_type(dnn, desc), tags[i]))
			continue;
		equal = dnn->memory_desc_equal(own, desc);
		dnn->memory_desc_destroy(own);
		if (equal)
			return tags[i];
	}
	return dnnl_format_tag_undef;
}

enum prony_status lower_retype(const struct lowering *l, const_dnnl_memory_desc_t desc,
			       dnnl_data_type_t type, dnnl_memory_desc_t *out, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	int rank = lower_rank(l, desc), blocks = 0;
	const dnnl_dims_t *strides = NULL;
	dnnl_format_tag_t tag = tag_of(l, desc);
	dnnl_dims_t all = {0};

	memcpy(all, lower_dims(l, desc), (size_t)rank * sizeof(int64_t));
	if (tag != dnnl_format_tag_undef)
		return onednn_check(dnn->memory_desc_create_with_tag(out, rank, all, type, tag),
				    "memory descriptor", "in another type", err);
	dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
	if (blocks > 0 || dnn->memory_desc_query(desc, dnnl_query_strides, &strides))
		return lower_plain(l, type, rank, all, out, err);
	return onednn_check(dnn->memory_desc_create_with_strides(out, rank, all, type, *strides),
			    "memory descriptor", "in another type", err);
}

enum prony_status lower_like(const struct lowering *l, const_dnnl_memory_desc_t desc, int rank,
			     const int64_t *dims, dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_format_tag_t tag = rank == 4 ? tag_of(l, desc) : dnnl_format_tag_undef;
	dnnl_data_type_t type = onednn_type(l->dnn, desc);
	dnnl_dims_t all;

	if (tag != dnnl_format_tag_undef) {
		memcpy(all, dims, sizeof(int64_t) * 4);
		return onednn_check(l->dnn->memory_desc_create_with_tag(out, 4, all, type, tag),
				    "memory descriptor", "like another", err);
	}
	return lower_plain(l, type, rank, dims, out, err);
}

size_t lower_elements(const struct lowering *l, int operand)
{
	return l->program->operands[operand].bytes / onednn_type_bytes(lower_type(l, operand));
}
