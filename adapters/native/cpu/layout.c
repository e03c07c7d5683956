/* Converts layouts to oneDNN's descriptors and back. */
#include <stdlib.h>
#include <string.h>

#include "adapters/native/cpu/cpu.h"
#include "base/memory.h"

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

static dnnl_status_t create(const struct onednn *dnn, const struct layout *layout,
			    dnnl_memory_desc_t *out)
{
	dnnl_dims_t dims = {0}, strides = {0}; /* the library reads arrays of a fixed length */

	if (layout->blob)
		return dnn->memory_desc_clone(out, layout->blob);
	memcpy(dims, layout->dims, sizeof(layout->dims));
	memcpy(strides, layout->strides, sizeof(layout->strides));
	return dnn->memory_desc_create_with_strides(out, layout->rank, dims, cpu_type(layout->type),
						    strides);
}

enum prony_status cpu_describe(const struct onednn *dnn, const struct layout *layout,
			       dnnl_memory_desc_t *out, struct error *err)
{
	return onednn_check(create(dnn, layout, out), "memory descriptor", "operand", err);
}

/* Whether strides and type describe a descriptor completely; fills them. */
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

struct kept {
	dnnl_memory_desc_t desc;
	dnnl_primitive_attr_t attributes;
};

void cpu_keep(struct device *device, dnnl_memory_desc_t desc, dnnl_primitive_attr_t attributes)
{
	if (device->kept_count == device->kept_capacity) {
		device->kept_capacity = device->kept_capacity ? 2 * device->kept_capacity : 64;
		device->kept = memory_realloc(device->kept, (size_t)device->kept_capacity *
								    sizeof(*device->kept));
	}
	device->kept[device->kept_count++] = (struct kept){desc, attributes};
}

void cpu_release_kept(struct device *device)
{
	for (int i = 0; i < device->kept_count; i++) {
		if (device->kept[i].desc)
			device->dnn.memory_desc_destroy(device->kept[i].desc);
		if (device->kept[i].attributes)
			device->dnn.primitive_attr_destroy(device->kept[i].attributes);
	}
	free(device->kept);
	device->kept = NULL;
	device->attributes = NULL;
	device->kept_count = device->kept_capacity = 0;
}

/* Keeps the descriptor that the library created, or its error. */
static const_dnnl_memory_desc_t keep(struct device *device, dnnl_status_t made,
				     const dnnl_memory_desc_t *desc)
{
	if (made == dnnl_success)
		cpu_keep(device, *desc, NULL);
	else
		device->failed = made;
	return *desc;
}

const_dnnl_memory_desc_t cpu_desc_of(const struct lowering *l, const struct layout *layout)
{
	dnnl_memory_desc_t desc = NULL;

	if (layout->blob)
		return layout->blob;
	return keep(l->program->device, create(cpu_onednn(l), layout, &desc), &desc);
}

const_dnnl_memory_desc_t cpu_row_major(const struct lowering *l, enum dtype type, int rank,
				       const int64_t *dims)
{
	struct layout rows = layout_row_major(type, rank, dims);

	return cpu_desc_of(l, &rows);
}

/* The descriptor of a tag, kept; NULL if the library has no such tag. */
static const_dnnl_memory_desc_t tagged(struct device *device, enum dtype type, int rank,
				       const int64_t *dims, dnnl_format_tag_t tag)
{
	dnnl_dims_t all = {0};
	dnnl_memory_desc_t desc = NULL;

	memcpy(all, dims, (size_t)rank * sizeof(int64_t));
	return keep(device,
		    device->dnn.memory_desc_create_with_tag(&desc, rank, all, cpu_type(type), tag),
		    &desc);
}

const_dnnl_memory_desc_t cpu_any(const struct lowering *l, enum dtype type, int rank,
				 const int64_t *dims)
{
	return tagged(l->program->device, type, rank, dims, dnnl_format_tag_any);
}

struct layout cpu_tagged(const struct lowering *l, enum dtype type, int rank, const int64_t *dims,
			 dnnl_format_tag_t tag)
{
	const_dnnl_memory_desc_t desc = tagged(l->program->device, type, rank, dims, tag);

	return desc ? cpu_layout(cpu_onednn(l), desc) : layout_row_major(type, rank, dims);
}

const_dnnl_memory_desc_t cpu_desc(const struct lowering *l, int operand)
{
	return l->program->operands[operand].description;
}

bool cpu_same_layout(const struct device *device, const struct layout *a, const struct layout *b)
{
	return device->dnn.memory_desc_equal(a->blob, b->blob);
}

bool cpu_same_blocks(struct device *device, const struct layout *like, enum dtype type, int rank,
		     const int64_t *dims, struct layout *out)
{
	dnnl_format_tag_t tag = like->block == 16  ? dnnl_nChw16c
				: like->block == 8 ? dnnl_nChw8c
						   : dnnl_nChw4c;
	const_dnnl_memory_desc_t own;

	if (like->rank != 4 || rank != 4 ||
	    (like->block != 16 && like->block != 8 && like->block != 4))
		return false;
	own = tagged(device, like->type, 4, like->dims, tag);
	if (!own || !device->dnn.memory_desc_equal(own, like->blob))
		return false;
	own = tagged(device, type, 4, dims, tag);
	if (own)
		*out = cpu_layout(&device->dnn, own);
	return own;
}

/* The layout of a descriptor; false if the library cannot create it. */
static bool keep_layout(struct device *device, dnnl_status_t made, const dnnl_memory_desc_t *desc,
			struct layout *out)
{
	if (made != dnnl_success)
		return false;
	cpu_keep(device, *desc, NULL);
	*out = cpu_layout(&device->dnn, *desc);
	return true;
}

bool cpu_view(struct device *device, const struct layout *whole, const int64_t *start,
	      const int64_t *dims, struct layout *out)
{
	dnnl_dims_t from = {0}, all = {0};
	dnnl_memory_desc_t view = NULL;

	memcpy(from, start, (size_t)whole->rank * sizeof(int64_t));
	memcpy(all, dims, (size_t)whole->rank * sizeof(int64_t));
	return keep_layout(device,
			   device->dnn.memory_desc_create_submemory(&view, whole->blob, all, from),
			   &view, out);
}

bool cpu_permute(struct device *device, const struct layout *layout, const int *order,
		 struct layout *out)
{
	int to[DNNL_MAX_NDIMS] = {0}; /* the library's position of each dimension */
	dnnl_memory_desc_t permuted = NULL;

	for (int i = 0; i < layout->rank; i++)
		to[order[i]] = i;
	return keep_layout(device,
			   device->dnn.memory_desc_permute_axes(&permuted, layout->blob, to),
			   &permuted, out);
}

struct sliding_window cpu_window(const struct lowering *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	bool back = node->op == OP_CONV_TRANSPOSE; /* its windows slide over its result */
	const struct shape *x = &l->graph->values[back ? node->outputs[0] : node->inputs[0]].shape;
	const struct shape *y = &l->graph->values[back ? node->inputs[0] : node->outputs[0]].shape;
	struct sliding_window w = {0};

	for (int i = 0; i < 2; i++) {
		w.kernel[i] = a->kernel[i];
		w.strides[i] = a->strides[i];
		w.dilations[i] = a->dilations[i] - 1;
		w.before[i] = a->pads[i];
		/* The distance by which the last window extends past the end. With ceil_mode it is
		 * larger than pads; an incomplete last stride makes it smaller. */
		w.after[i] = (y->dims[2 + i] - 1) * a->strides[i] +
			     (a->kernel[i] - 1) * a->dilations[i] + 1 - x->dims[2 + i] - a->pads[i];
	}
	return w;
}

enum prony_status cpu_operand(struct lowering *l, const_dnnl_memory_desc_t desc, int *out,
			      struct error *err)
{
	struct layout layout = cpu_layout(cpu_onednn(l), desc);

	return program_operand(l->program, &layout, REGION_PLANNED, out, err);
}

enum prony_status cpu_workspace(struct lowering *l, const_dnnl_primitive_desc_t pd, int *out,
				struct error *err)
{
	const_dnnl_memory_desc_t desc =
		cpu_onednn(l)->primitive_desc_query_md(pd, dnnl_query_workspace_md, 0);

	*out = OPERAND_NONE;
	if (!l->training || !desc || cpu_onednn(l)->memory_desc_get_size(desc) == 0)
		return PRONY_OK;
	return cpu_operand(l, desc, out, err);
}

enum prony_status cpu_as(struct lowering *l, int operand, const_dnnl_memory_desc_t desc,
			 const char *name, int *out, struct error *err)
{
	struct layout layout = cpu_layout(cpu_onednn(l), desc);

	return lower_as(l, operand, &layout, name, out, err);
}
