#include <string.h>

#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/broadcast_reduce.h"
#include "adapters/native/lower/lower_internal.h"

/* What moves data without computing: parts of arrays are views that the library reorders from or
 * into. */

static bool has_dims(const struct lowering *l, const_dnnl_memory_desc_t desc,
		     const struct shape *shape)
{
	const int64_t *dims = lower_dims(l, desc);
	int rank = lower_rank(l, desc), same = 0;

	while (same < rank && rank == shape->rank && dims[same] == shape->dims[same])
		same++;
	return rank > 0 && same == rank;
}

enum prony_status lower_reshape(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int x = l->values[node->inputs[0]].operand, y;
	const_dnnl_memory_desc_t desc = l->program->operands[x].desc;
	dnnl_memory_desc_t plain = NULL;
	enum prony_status status;

	/* A matrix is left as it is: most users, matrix products above all, need no other order. So
	 * is what was left as it was and gets its own dimensions back, as the gradient behind a
	 * Flatten does: its blocks or its order of channels are nobody else's concern. */
	if ((shape->rank == 2 && lower_rank(l, desc) >= 2 &&
	     lower_dims(l, desc)[0] == shape->dims[0]) ||
	    has_dims(l, desc, shape)) {
		l->values[node->outputs[0]].operand = x;
		return PRONY_OK;
	}
	status = lower_value(l, node->inputs[0], node->name, &x, err);
	if (status == PRONY_OK)
		status = lower_plain(l, lower_type(l, x), shape->rank, shape->dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	status = lower_as(l, x, plain, node->name, &y, err);
	l->dnn->memory_desc_destroy(plain);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = y;
	return status;
}

/* Dimension i of the output is dimension order[i] of the input: often only another name for a
 * layout (NHWC to NCHW). */
enum prony_status lower_transpose(struct lowering *l, int n, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	dnnl_memory_desc_t permuted = NULL, like = NULL;
	int to[TENSOR_MAX_RANK] = {0}; /* where the library wants each input dimension */
	int x, view;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	for (int i = 0; i < shape->rank; i++)
		to[node->attributes.ints.items[i]] = i;
	if (status == PRONY_OK)
		status = onednn_check(
			dnn->memory_desc_permute_axes(&permuted, l->program->operands[x].desc, to),
			"transposition", node->name, err);
	if (status == PRONY_OK)
		status = lower_like(l, permuted, shape->rank, shape->dims, &like, err);
	if (status == PRONY_OK)
		/* Equal but for the strides of dimensions of 1: then in the usual ones, for the
		 * library's sums misread others. */
		status = program_alias(l->program, x,
				       dnn->memory_desc_equal(permuted, like) ? like : permuted, 0,
				       &view, err);
	if (status == PRONY_OK)
		status = lower_as(l, view, like, node->name, &l->values[node->outputs[0]].operand,
				  err);
	if (like)
		dnn->memory_desc_destroy(like);
	if (permuted)
		dnn->memory_desc_destroy(permuted);
	return status;
}

/* A box of an array: `dims` elements of each dimension from `start` on, every step-th of them. */
struct box {
	dnnl_dims_t start, dims;
	int64_t step;
	int axis; /* of the step */
	int rank;
};

static bool channels_whole(const struct box *box, const int64_t *dims)
{
	for (int i = 0; i < 2 && i < box->rank; i++) {
		if (box->dims[i] != dims[i])
			return false;
	}
	return true;
}

/* A view of the box within `operand`. PRONY_UNSUPPORTED where the layout does not allow one. */
static enum prony_status view_box(struct lowering *l, int operand, const struct box *box, int *out,
				  struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_memory_desc_t view = NULL;
	enum prony_status status = onednn_check(
		dnn->memory_desc_create_submemory(&view, l->program->operands[operand].desc,
						  box->dims, box->start),
		"view", "box", err);

	if (status != PRONY_OK)
		return status;
	status = program_alias(l->program, operand, view, 0, out, err);
	dnn->memory_desc_destroy(view);
	return status;
}

/* Where the box's elements are in an unblocked operand; returns that of the first. */
static int64_t box_strides(const struct lowering *l, int operand, const struct box *box,
			   int64_t *out)
{
	const dnnl_dims_t *strides = NULL;
	int64_t start = 0;

	l->dnn->memory_desc_query(l->program->operands[operand].desc, dnnl_query_strides, &strides);
	for (int i = 0; i < box->rank; i++) {
		out[i] = (*strides)[i] * (i == box->axis ? box->step : 1);
		start += box->start[i] * (*strides)[i];
	}
	return start;
}

/* Copies every step-th element between two row-major arrays: the library has no views of those. */
static void copy_steps(struct lowering *l, const char *name, int to, int from,
		       const struct box *box, bool taking)
{
	const struct box whole = {.step = 1, .rank = box->rank};
	struct broadcast_walk walk = {.op = BROADCAST_SCALE,
				      .bf16 = lower_type(l, from) == dnnl_bf16,
				      .factor = 1,
				      .rank = box->rank};

	for (int i = 0; i < box->rank; i++)
		walk.dims[i] = box->dims[i];
	walk.a_start = box_strides(l, from, taking ? box : &whole, walk.a);
	walk.out_start = box_strides(l, to, taking ? &whole : box, walk.out);
	lower_copy(l, name, to, from, &walk);
}

/* Where the smaller array of a node lies within the larger one. */
static struct box box_of(const struct node *node, const struct shape *part)
{
	const struct attributes *a = &node->attributes;
	struct box box = {.step = 1, .rank = part->rank};

	for (int i = 0; i < part->rank; i++)
		box.dims[i] = part->dims[i];
	if (node->op == OP_SLICE || node->op == OP_SLICE_GRAD) {
		box.axis = (int)a->axis;
		box.start[box.axis] = a->start;
		box.step = a->step;
	} else {
		for (int i = 0; i < part->rank; i++)
			box.start[i] = a->ints.items[i];
	}
	return box;
}

static enum prony_status take_steps(struct lowering *l, int n, const struct box *box,
				    struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	dnnl_memory_desc_t plain = NULL;
	int x, y;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status == PRONY_OK)
		status = lower_plain(l, lower_type(l, x), box->rank, box->dims, &plain, err);
	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, plain, REGION_PLANNED, &y, err);
	l->dnn->memory_desc_destroy(plain);
	if (status != PRONY_OK)
		return status;
	copy_steps(l, node->name, y, x, box, true);
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

enum prony_status lower_take(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	struct box box = box_of(node, shape);
	dnnl_memory_desc_t like = NULL;
	int x, view;
	enum prony_status status;

	if (box.step > 1)
		return take_steps(l, n, &box, err);
	status = lower_value(l, node->inputs[0], node->name, &x, err);
	if (status != PRONY_OK)
		return status;
	status = lower_like(l, l->program->operands[x].desc, shape->rank, shape->dims, &like, err);
	if (status != PRONY_OK)
		return status;
	if (view_box(l, x, &box, &view, NULL) != PRONY_OK) {
		status = lower_unblocked(l, x, node->name, &x, err);
		if (status == PRONY_OK)
			status = view_box(l, x, &box, &view, err);
	}
	/* Always a copy: a view has gaps, which most implementations cannot have. */
	if (status == PRONY_OK)
		status = lower_part(l, view, like, node->name, &l->values[node->outputs[0]].operand,
				    err);
	l->dnn->memory_desc_destroy(like);
	return status;
}

static void run_fill(struct program *program, const struct command *command)
{
	void *out = lower_data(program, command, 0);
	uint16_t low = bf16_from_float((float)command->ratio);

	if (command->ratio == 0)
		memset(out, 0, program->operands[command->operands[0]].bytes);
	else if (command->bf16)
		for (size_t i = 0; i < command->elements; i++)
			((uint16_t *)out)[i] = low;
	else
		for (size_t i = 0; i < command->elements; i++)
			((float *)out)[i] = (float)command->ratio;
}

/* The larger array's operand, whose layout follows the part's where that can be viewed. */
static enum prony_status make_whole(struct lowering *l, int n, int x, double value,
				    const struct box *box, int *whole, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	const_dnnl_memory_desc_t desc = l->program->operands[x].desc;
	dnnl_memory_desc_t like = NULL;
	/* Padding of blocked channels must stay zero. */
	bool follow = channels_whole(box, shape->dims) && value == 0 && box->step == 1;
	enum prony_status status =
		follow ? lower_like(l, desc, shape->rank, shape->dims, &like, err)
		       : lower_plain(l, lower_type(l, x), shape->rank, shape->dims, &like, err);

	if (status != PRONY_OK)
		return status;
	status = program_operand(l->program, like, REGION_PLANNED, whole, err);
	l->dnn->memory_desc_destroy(like);
	return status;
}

/* Appends the copy of x into the box of the larger array. */
static enum prony_status put_box(struct lowering *l, const char *name, int x, int whole,
				 const struct box *box, struct error *err)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_attr_t attributes = NULL;
	int view;
	enum prony_status status = view_box(l, whole, box, &view, err);

	if (status == PRONY_OK)
		status = lower_attributes(l, false, &attributes, err);
	if (status != PRONY_OK)
		return status;
	status = onednn_check(dnn->reorder_primitive_desc_create(
				      &pd, l->program->operands[x].desc, dnn->engine,
				      l->program->operands[view].desc, dnn->engine, attributes),
			      "copy", name, err);
	dnn->primitive_attr_destroy(attributes);
	if (status == PRONY_OK)
		status = program_primitive(l->program, name, "copy", pd,
					   (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO},
					   (const int[]){x, view}, 2, err);
	if (pd)
		dnn->primitive_desc_destroy(pd);
	return status;
}

enum prony_status lower_put(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	double value = node->op == OP_PAD ? node->attributes.value : 0;
	struct box box = box_of(node, &l->graph->values[node->inputs[0]].shape);
	int x, whole;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK && box.step > 1)
		status = lower_unblocked(l, x, node->name, &x, err);
	if (status == PRONY_OK)
		status = make_whole(l, n, x, value, &box, &whole, err);
	if (status != PRONY_OK)
		return status;
	lower_command(l, node->name, "fill", run_fill, &whole, 1)->ratio = value;
	if (box.step > 1)
		copy_steps(l, node->name, whole, x, &box, false);
	else
		status = put_box(l, node->name, x, whole, &box, err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = whole;
	return status;
}

/* The input with the most elements: its layout costs the least. */
static int largest(const struct lowering *l, const int *operands, int count)
{
	int best = 0;

	for (int i = 1; i < count; i++) {
		if (lower_elements(l, operands[i]) > lower_elements(l, operands[best]))
			best = i;
	}
	return operands[best];
}

static enum prony_status describe_concat(struct lowering *l, int n, const int *operands,
					 const_dnnl_memory_desc_t dst, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const_dnnl_memory_desc_t sources[NODE_MAX_INPUTS];
	dnnl_primitive_attr_t attributes = NULL;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < node->input_count; i++)
		sources[i] = l->program->operands[operands[i]].desc;
	status = onednn_check(l->dnn->concat_primitive_desc_create(
				      &l->nodes[n].forward, l->dnn->engine, dst, node->input_count,
				      (int)node->attributes.axis, sources, attributes),
			      "concatenation", node->name, err);
	l->dnn->primitive_attr_destroy(attributes);
	return status;
}

static enum prony_status append_concat(struct lowering *l, int n, const int *operands,
				       struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	int args[NODE_MAX_INPUTS + 1], all[NODE_MAX_INPUTS + 1], count = node->input_count;
	enum prony_status status = program_operand(
		l->program, l->dnn->primitive_desc_query_md(state->forward, dnnl_query_dst_md, 0),
		REGION_PLANNED, &state->dst, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < count; i++) {
		args[i] = DNNL_ARG_MULTIPLE_SRC + i;
		all[i] = operands[i];
	}
	args[count] = DNNL_ARG_DST;
	all[count] = state->dst;
	status = program_primitive(l->program, node->name, "", state->forward, args, all, count + 1,
				   err);
	if (status == PRONY_OK)
		l->values[node->outputs[0]].operand = state->dst;
	return status;
}

enum prony_status lower_concat(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	int operands[NODE_MAX_INPUTS];
	dnnl_memory_desc_t dst = NULL;
	enum prony_status status = PRONY_OK, described;

	for (int i = 0; status == PRONY_OK && i < node->input_count; i++)
		status = lower_activation(l, node->inputs[i], node->name, &operands[i], err);
	if (status == PRONY_OK)
		status = lower_like(
			l, l->program->operands[largest(l, operands, node->input_count)].desc,
			shape->rank, shape->dims, &dst, err);
	if (status != PRONY_OK)
		return status;
	described = describe_concat(l, n, operands, dst, NULL);
	l->dnn->memory_desc_destroy(dst);
	/* Blocked channels cannot be joined within a block. */
	if (described != PRONY_OK) {
		dnnl_memory_desc_t plain = NULL;

		status = lower_plain(l, lower_type(l, operands[0]), shape->rank, shape->dims,
				     &plain, err);
		if (status == PRONY_OK)
			status = describe_concat(l, n, operands, plain, err);
		if (plain)
			l->dnn->memory_desc_destroy(plain);
	}
	return status == PRONY_OK ? append_concat(l, n, operands, err) : status;
}
