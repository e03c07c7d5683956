#include <string.h>

#include "adapters/native/lower/lower.h"

/* Layouts, and operands in the layout that somebody wants. */

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

static bool same_dims(const struct lowering *l, const_dnnl_memory_desc_t a,
		      const_dnnl_memory_desc_t b)
{
	int rank = lower_rank(l, a);

	return rank == lower_rank(l, b) &&
	       memcmp(lower_dims(l, a), lower_dims(l, b), (size_t)rank * sizeof(int64_t)) == 0;
}

static enum prony_status reorder_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				    const char *name, const char *what, int *out, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_attr_t attributes;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	status = onednn_check(
		dnn->reorder_primitive_desc_create(&pd, l->program->operands[operand].desc,
						   dnn->engine, desc, dnn->engine, attributes),
		"reorder", name, err);
	dnn->primitive_attr_destroy(attributes);
	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, desc, REGION_PLANNED, out, err);
	if (status == PRONY_OK)
		status = program_primitive(l->program, name, what, pd,
					   (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO},
					   (const int[]){operand, *out}, 2, err);
	dnn->primitive_desc_destroy(pd);
	return status;
}

static enum prony_status reorder(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				 const char *name, int *out, struct error *err)
{
	return reorder_as(l, operand, desc, name, "reorder", out, err);
}

enum prony_status lower_part(struct lowering *l, int view, const_dnnl_memory_desc_t desc,
			     const char *name, int *out, struct error *err)
{
	return reorder_as(l, view, desc, name, "part", out, err);
}

/* Another shape: through row-major memory, where it is only another name for the same bytes. */
static enum prony_status reshape(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
				 const char *name, int *out, struct error *err)
{
	const_dnnl_memory_desc_t own = l->program->operands[operand].desc;
	dnnl_memory_desc_t plain = NULL;
	int row_major = operand;
	enum prony_status status = lower_plain(l, lower_type(l, operand), lower_rank(l, own),
					       lower_dims(l, own), &plain, err);

	if (status != PRONY_OK)
		return status;
	if (!l->dnn->memory_desc_equal(own, plain))
		status = reorder(l, operand, plain, name, &row_major, err);
	l->dnn->memory_desc_destroy(plain);
	if (status != PRONY_OK)
		return status;
	status = lower_plain(l, lower_type(l, operand), lower_rank(l, desc), lower_dims(l, desc),
			     &plain, err);
	if (status != PRONY_OK)
		return status;
	status = program_alias(l->program, row_major, plain, 0, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

enum prony_status lower_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			   const char *name, int *out, struct error *err)
{
	if (!same_dims(l, l->program->operands[operand].desc, desc)) {
		enum prony_status status = reshape(l, operand, desc, name, &operand, err);

		if (status != PRONY_OK)
			return status;
	}
	if (l->dnn->memory_desc_equal(l->program->operands[operand].desc, desc)) {
		*out = operand;
		return PRONY_OK;
	}
	return reorder(l, operand, desc, name, out, err);
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

enum prony_status lower_typed(struct lowering *l, int operand, dnnl_data_type_t type,
			      const char *name, int *out, struct error *err)
{
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status;

	*out = operand;
	if (lower_type(l, operand) == type)
		return PRONY_OK;
	status = lower_retype(l, l->program->operands[operand].desc, type, &desc, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, operand, desc, name, out, err);
	l->dnn->memory_desc_destroy(desc);
	return status;
}

enum prony_status lower_data_operand(struct lowering *l, int value, int *out, struct error *err)
{
	const struct value *row = &l->graph->values[value];
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	if (l->values[value].operand != OPERAND_NONE) {
		*out = l->values[value].operand;
		return PRONY_OK;
	}
	status = lower_plain(l, dnnl_f32, row->shape.rank, row->shape.dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	if (row->kind == VALUE_PARAMETER) {
		status = lower_parameter(l, value, plain, plain, err);
		*out = lower_find_parameter(l, value)->operand;
	} else {
		struct parameter *state = &l->states[l->state_count++];

		*state = (struct parameter){.value = value,
					    .gradient = OPERAND_NONE,
					    .plain = plain,
					    .folded = -1,
					    .copies = {OPERAND_NONE, OPERAND_NONE}};
		status = program_operand(l->program, plain, REGION_LASTING, &state->operand, err);
		*out = state->operand;
	}
	l->values[value].operand = *out;
	return status;
}

enum prony_status lower_value(struct lowering *l, int value, const char *name, int *out,
			      struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	int operand = l->values[value].operand;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	if (operand == OPERAND_NONE)
		return lower_data_operand(l, value, out, err);
	status = lower_plain(l, lower_type(l, operand), shape->rank, shape->dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	if (same_dims(l, l->program->operands[operand].desc, plain))
		*out = operand;
	else
		status = lower_as(l, operand, plain, name, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
}

enum prony_status lower_activation(struct lowering *l, int value, const char *name, int *out,
				   struct error *err)
{
	enum prony_status status = lower_value(l, value, name, out, err);

	return status == PRONY_OK ? lower_typed(l, *out, l->data, name, out, err) : status;
}

enum prony_status lower_unblocked(struct lowering *l, int operand, const char *name, int *out,
				  struct error *err)
{
	const_dnnl_memory_desc_t desc = l->program->operands[operand].desc;
	dnnl_memory_desc_t plain = NULL;
	int blocks = 0;
	enum prony_status status;

	*out = operand;
	l->dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
	if (blocks == 0)
		return PRONY_OK;
	status = lower_plain(l, lower_type(l, operand), lower_rank(l, desc), lower_dims(l, desc),
			     &plain, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, operand, plain, name, out, err);
	l->dnn->memory_desc_destroy(plain);
	return status;
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
