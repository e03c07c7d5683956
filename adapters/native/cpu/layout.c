/* Layouts in oneDNN's words, and back. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cpu/cpu.h"

static const struct {
	enum dtype type;
	dnnl_data_type_t library;
} types[] = {
	{DTYPE_F32, dnnl_f32}, {DTYPE_BF16, dnnl_bf16}, {DTYPE_I32, dnnl_s32}, {DTYPE_U8, dnnl_u8}};

dnnl_data_type_t cpu_type(enum dtype type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].type == type)
			return types[i].library;
	}
	return dnnl_data_type_undef;
}

enum prony_status cpu_describe(const struct onednn *dnn, const struct layout *layout,
			       dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_dims_t dims = {0}, strides = {0}; /* the library reads arrays of its own length */

	if (layout->blob)
		return onednn_check(dnn->memory_desc_clone(out, layout->blob), "memory descriptor",
				    "operand", err);
	memcpy(dims, layout->dims, sizeof(layout->dims));
	memcpy(strides, layout->strides, sizeof(layout->strides));
	return onednn_check(dnn->memory_desc_create_with_strides(out, layout->rank, dims,
								 cpu_type(layout->type), strides),
			    "memory descriptor", "operand", err);
}

/* Whether strides and type say everything about a descriptor; fills them. */
static bool read_strides(const struct onednn *dnn, const_dnnl_memory_desc_t desc,
			 struct layout *out)
{
	const dnnl_dims_t *strides = NULL, *padded = NULL, *sizes = NULL, *which = NULL;
	int blocks = 0;
	dnnl_dim_t offset = 0;

	if (dnn->memory_desc_query(desc, dnnl_query_strides, &strides) || !strides)
		return false;
	memcpy(out->strides, *strides, (size_t)out->rank * sizeof(int64_t));
	dnn->memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
	dnn->memory_desc_query(desc, dnnl_query_inner_blks, &sizes);
	dnn->memory_desc_query(desc, dnnl_query_inner_idxs, &which);
	dnn->memory_desc_query(desc, dnnl_query_padded_dims, &padded);
	dnn->memory_desc_query(desc, dnnl_query_submemory_offset_s64, &offset);
	if (blocks == 1 && (*which)[0] == 1 && offset == 0)
		out->block = (*sizes)[0];
	return blocks == 0 && offset == 0 && cpu_type(out->type) == onednn_type(dnn, desc) &&
	       (!padded || memcmp(*padded, out->dims, (size_t)out->rank * sizeof(int64_t)) == 0);
}

struct layout cpu_layout(const struct onednn *dnn, const_dnnl_memory_desc_t desc)
{
	struct layout layout = {.type = DTYPE_U8, .bytes = dnn->memory_desc_get_size(desc)};
	const dnnl_dims_t *dims = NULL;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].library == onednn_type(dnn, desc))
			layout.type = types[i].type;
	}
	dnn->memory_desc_query(desc, dnnl_query_ndims_s32, &layout.rank);
	dnn->memory_desc_query(desc, dnnl_query_dims, &dims);
	memcpy(layout.dims, *dims, (size_t)layout.rank * sizeof(int64_t));
	if (!read_strides(dnn, desc, &layout))
		layout.blob = desc;
	return layout;
}

/* Keeps a descriptor until the device is closed; NULL where there is no memory for that. */
static const_dnnl_memory_desc_t keep(struct device *device, dnnl_memory_desc_t desc)
{
	if (device->desc_count == device->desc_capacity) {
		int capacity = device->desc_capacity ? 2 * device->desc_capacity : 64;
		dnnl_memory_desc_t *grown =
			realloc(device->descs, (size_t)capacity * sizeof(*grown));

		if (!grown) {
			device->dnn.memory_desc_destroy(desc);
			return NULL;
		}
		device->descs = grown;
		device->desc_capacity = capacity;
	}
	return device->descs[device->desc_count++] = desc;
}

/* The layout of a descriptor (taken). */
static bool take(struct device *device, dnnl_memory_desc_t desc, struct layout *out)
{
	*out = cpu_layout(&device->dnn, desc);
	if (!out->blob)
		device->dnn.memory_desc_destroy(desc);
	else
		out->blob = keep(device, desc);
	return out->blob || out->block == 0;
}

enum prony_status cpu_tagged(const struct lowering *l, enum dtype type, int rank,
			     const int64_t *dims, dnnl_format_tag_t tag, struct layout *out,
			     struct error *err)
{
	dnnl_dims_t all = {0};
	dnnl_memory_desc_t desc = NULL;
	enum prony_status status;

	memcpy(all, dims, (size_t)rank * sizeof(int64_t));
	status = onednn_check(
		cpu_onednn(l)->memory_desc_create_with_tag(&desc, rank, all, cpu_type(type), tag),
		"memory descriptor", "layout", err);
	if (status == PRONY_OK && !take(l->program->device, desc, out))
		return error_set(err, PRONY_NOMEM, "no memory for a descriptor");
	return status;
}

const_dnnl_memory_desc_t cpu_desc(const struct lowering *l, int operand)
{
	return l->program->operands[operand].description;
}

enum prony_status cpu_any(const struct lowering *l, enum dtype type, int rank, const int64_t *dims,
			  dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_dims_t all = {0};

	memcpy(all, dims, (size_t)rank * sizeof(int64_t));
	return onednn_check(cpu_onednn(l)->memory_desc_create_with_tag(
				    out, rank, all, cpu_type(type), dnnl_format_tag_any),
			    "memory descriptor", "any layout", err);
}

enum prony_status cpu_plain(const struct lowering *l, enum dtype type, int rank,
			    const int64_t *dims, dnnl_memory_desc_t *out, struct error *err)
{
	struct layout rows = layout_row_major(type, rank, dims);

	return cpu_describe(cpu_onednn(l), &rows, out, err);
}

bool cpu_same_layout(const struct device *device, const struct layout *a, const struct layout *b)
{
	return device->dnn.memory_desc_equal(a->blob, b->blob);
}

/* The tag of four dimensions with such blocks, or dnnl_format_tag_undef. */
static dnnl_format_tag_t tag_of(const struct onednn *dnn, const struct layout *layout)
{
	dnnl_format_tag_t tag = layout->block == 16  ? dnnl_nChw16c
				: layout->block == 8 ? dnnl_nChw8c
				: layout->block == 4 ? dnnl_nChw4c
						     : dnnl_format_tag_undef;
	dnnl_dims_t dims = {0};
	dnnl_memory_desc_t own = NULL;
	bool equal;

	memcpy(dims, layout->dims, sizeof(layout->dims));
	if (layout->rank != 4 ||
	    dnn->memory_desc_create_with_tag(&own, 4, dims, onednn_type(dnn, layout->blob), tag))
		return dnnl_format_tag_undef;
	equal = dnn->memory_desc_equal(own, layout->blob);
	dnn->memory_desc_destroy(own);
	return equal ? tag : dnnl_format_tag_undef;
}

bool cpu_same_blocks(struct device *device, const struct layout *like, enum dtype type, int rank,
		     const int64_t *dims, struct layout *out)
{
	dnnl_format_tag_t tag = tag_of(&device->dnn, like);
	dnnl_dims_t all = {0};
	dnnl_memory_desc_t desc = NULL;

	if (tag == dnnl_format_tag_undef || rank != 4)
		return false;
	memcpy(all, dims, 4 * sizeof(int64_t));
	return device->dnn.memory_desc_create_with_tag(&desc, 4, all, cpu_type(type), tag) ==
		       dnnl_success &&
	       take(device, desc, out);
}

bool cpu_view(struct device *device, const struct layout *whole, const int64_t *start,
	      const int64_t *dims, struct layout *out)
{
	dnnl_dims_t from = {0}, all = {0};
	dnnl_memory_desc_t view = NULL;

	memcpy(from, start, (size_t)whole->rank * sizeof(int64_t));
	memcpy(all, dims, (size_t)whole->rank * sizeof(int64_t));
	return device->dnn.memory_desc_create_submemory(&view, whole->blob, all, from) ==
		       dnnl_success &&
	       take(device, view, out);
}

bool cpu_permute(struct device *device, const struct layout *layout, const int *order,
		 struct layout *out)
{
	int to[DNNL_MAX_NDIMS] = {0}; /* where the library wants each dimension */
	dnnl_memory_desc_t permuted = NULL;

	for (int i = 0; i < layout->rank; i++)
		to[order[i]] = i;
	return device->dnn.memory_desc_permute_axes(&permuted, layout->blob, to) == dnnl_success &&
	       take(device, permuted, out);
}

enum prony_status cpu_operand(struct lowering *l, const_dnnl_memory_desc_t desc, int *out,
			      struct error *err)
{
	struct layout layout = cpu_layout(cpu_onednn(l), desc);

	return program_operand(l->program, &layout, REGION_PLANNED, out, err);
}

enum prony_status cpu_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			 const char *name, int *out, struct error *err)
{
	struct layout layout = cpu_layout(cpu_onednn(l), desc);

	return lower_as(l, operand, &layout, name, out, err);
}
