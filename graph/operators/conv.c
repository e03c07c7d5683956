/* Convolution: Conv and its gradients. */
#include "graph/operators/conv_internal.h"
#include "graph/operators/operator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/gemm_f64.h"

static const struct attribute_row conv_attributes[] = {
	{ATTRIBUTE("kernel_shape", INTS2, kernel, 0)}, {ATTRIBUTE("strides", INTS2, strides, 1)},
	{ATTRIBUTE("dilations", INTS2, dilations, 1)}, {ATTRIBUTE("pads", INTS4, pads, 0)},
	{ATTRIBUTE("group", INT, group, 1)},	       {.name = NULL},
};

/* Checks that channels, groups and kernel of the weights (O x I/group x H x W) agree with x and the
 * attributes. */
static enum prony_status check_weights(const struct graph *graph, struct node *node,
				       struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *w = node_input_shape(graph, node, 1);
	struct attributes *a = &node->attributes;

	if (a->group < 1 || x->dims[1] % a->group != 0 || w->dims[0] % a->group != 0)
		return node_error(node, err,
				  "group %lld must divide the numbers of input and output channels "
				  "(%lld and %lld)",
				  (long long)a->group, (long long)x->dims[1],
				  (long long)w->dims[0]);
	if (w->dims[1] != x->dims[1] / a->group)
		return node_error(
			node, err,
			"the weights are for %lld input channels per group, but the input has %lld",
			(long long)w->dims[1], (long long)(x->dims[1] / a->group));
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] == 0) /* ONNX: absent, so the weights give it */
			a->kernel[i] = w->dims[2 + i];
		if (a->kernel[i] != w->dims[2 + i])
			return node_error(node, err,
					  "kernel_shape says %lld, but the weights have %lld",
					  (long long)a->kernel[i], (long long)w->dims[2 + i]);
	}
	if (node_has_input(node, 2) && node_input_shape(graph, node, 2)->dims[0] != w->dims[0])
		return node_error(
			node, err,
			"the bias has %lld elements, but the weights have %lld output channels",
			(long long)node_input_shape(graph, node, 2)->dims[0],
			(long long)w->dims[0]);
	return PRONY_OK;
}

static enum prony_status conv_infer(struct graph *graph, struct node *node, struct error *err)
{
	struct shape y = {.rank = 4};
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);

	if (status == PRONY_OK)
		status = node_need_rank(graph, node, 1, 4, err);
	if (status == PRONY_OK && node_has_input(node, 2))
		status = node_need_rank(graph, node, 2, 1, err);
	if (status == PRONY_OK)
		status = check_weights(graph, node, err);
	if (status == PRONY_OK)
		status = node_sliding_windows(graph, node, 0, &y.dims[2], err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[0];
	y.dims[1] = node_input_shape(graph, node, 1)->dims[0];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static int64_t conv_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *w = node_input_shape(graph, node, 1);
	int64_t macs = shape_elements(node_output_shape(graph, node, 0));

	for (int i = 1; i < 4; i++)
		macs = saturating_multiply(macs, w->dims[i]);
	return macs;
}

/* Each of the two gradients of a convolution costs as much as the convolution. */
static int64_t conv_grad_macs(const struct graph *graph, const struct node *node)
{
	return conv_macs(graph, &graph->nodes[node->differentiates]);
}

static enum prony_status conv_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 1) || backward_wants(graph, node, 2))
		status = backward_node(graph, node, OP_CONV_GRAD_WEIGHT,
				       (const int[]){node->inputs[0], dy}, 2, 1,
				       backward_wants(graph, node, 2) ? 2 : 1, err);
	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = backward_node(graph, node, OP_CONV_GRAD_INPUT,
				       (const int[]){dy, node->inputs[1]}, 2, 0, 1, err);
	return status;
}

/*
 * Each convolution is a matrix product. The elements of one factor are gathered from windows of x
 * or dy (im2col), a panel at a time:
 *   y(o, nhw)   = k(o, crs) windows of x (crs, nhw)
 *   dk(o, crs)  = dy(o, nhw) windows of x (nhw, crs)
 *   dx(c, nhw)  = k(c, ors) windows of dy (ors, nhw)
 * In the last product, a window of dy holds the outputs that depend on the input pixel. With
 * strides, these are different taps for each residue of the pixel's row and column. So each residue
 * has its own product, in which every tap counts. A single product would multiply mostly zeros, or
 * would have to scatter its sums (col2im).
 */

/* The taps of a window on one axis. */
struct taps {
	int64_t count;
	int64_t *tap;	 /* index in the kernel */
	int64_t *offset; /* from position * step to the tap's element; may be negative */
};

/* The windows of a group: element (channel, tap, position). */
struct windows {
	const double *data;		/* at the first sample and the first channel of the group */
	int64_t sample, height, width;	/* elements of a sample; size of a plane */
	int64_t rows, columns, step[2]; /* positions of a sample */
	struct taps taps[2];
};

static struct taps taps_new(int64_t count)
{
	size_t bytes = (size_t)count * sizeof(int64_t);

	return (struct taps){.tap = memory_alloc(bytes), .offset = memory_alloc(bytes)};
}

static void taps_add(struct taps *taps, int64_t tap, int64_t offset)
{
	taps->tap[taps->count] = tap;
	taps->offset[taps->count++] = offset;
}

static void windows_release(struct windows *windows)
{
	for (int axis = 0; axis < 2; axis++) {
		free(windows->taps[axis].tap);
		free(windows->taps[axis].offset);
	}
}

/* Neighbouring positions within one line of positions. */
struct run {
	const double *sample;
	int64_t row, column; /* of the first position's element at offset 0 */
	int64_t start, length;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Cuts positions [position, position + count) into runs, at most `count` of them. */
static int find_runs(const struct windows *w, int64_t position, int64_t count, struct run *runs)
{
	int found = 0;

	for (int64_t start = 0; start < count; found++) {
		int64_t line = (position + start) / w->columns;
		int64_t column = (position + start) % w->columns;

		runs[found] = (struct run){
			.sample = w->data + line / w->rows * w->sample,
			.row = line % w->rows * w->step[0],
			.column = column * w->step[1],
			.start = start,
			.length = least(count - start, w->columns - column),
		};
		start += runs[found].length;
	}
	return found;
}

/* One tap of one channel. */
struct tap_place {
	int64_t plane, row, column; /* plane: elements from the sample's start */
};

static struct tap_place find_tap(const struct windows *w, int64_t index)
{
	int64_t columns = w->taps[1].count, taps = w->taps[0].count * columns;

	return (struct tap_place){
		.plane = index / taps * w->height * w->width,
		.row = w->taps[0].offset[index % taps / columns],
		.column = w->taps[1].offset[index % columns],
	};
}

/* Writes the elements of a tap at a run's positions, `stride` apart; elements outside the plane are
 * 0. */
static inline void read_run(const struct windows *w, const struct run *run, struct tap_place tap,
			    double *restrict to, int64_t stride)
{
	int64_t row = run->row + tap.row, column = run->column + tap.column, step = w->step[1];
	int64_t first = 0, end = 0;

	if (row >= 0 && row < w->height) {
		first = column < 0 ? least((-column + step - 1) / step, run->length) : 0;
		end = column < w->width ? (w->width - 1 - column) / step + 1 : 0;
		end = end < first ? first : least(end, run->length);
	}
	const double *from = run->sample + tap.plane + row * w->width + column;
	for (int64_t i = 0; i < first; i++)
		to[i * stride] = 0;
	if (step == 1)
		for (int64_t i = first; i < end; i++)
			to[i * stride] = from[i];
	else
		for (int64_t i = first; i < end; i++)
			to[i * stride] = from[i * step];
	for (int64_t i = end; i < run->length; i++)
		to[i * stride] = 0;
}

/* Lanes are positions, depth is (channel, tap). */
static void pack_positions(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel)
{
	const struct windows *w = factor->of;
	struct run runs[GEMM_F64_LANES];
	int count = find_runs(w, panel->first_lane, panel->lanes, runs);
	double *to = panel->to;

	for (int64_t k = 0; k < panel->depth; k++, to += panel->width) {
		struct tap_place tap = find_tap(w, panel->first + k);

		for (int i = 0; i < count; i++)
			read_run(w, &runs[i], tap, to + runs[i].start, 1);
		for (int64_t i = panel->lanes; i < panel->width; i++)
			to[i] = 0;
	}
}

/* Lanes are (channel, tap), depth is positions. */
static void pack_taps(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel)
{
	const struct windows *w = factor->of;
	struct run runs[GEMM_F64_DEPTH];
	struct tap_place taps[GEMM_F64_LANES];
	int count = find_runs(w, panel->first, panel->depth, runs);

	for (int64_t lane = 0; lane < panel->lanes; lane++)
		taps[lane] = find_tap(w, panel->first_lane + lane);
	for (int i = 0; i < count; i++) {
		double *to = panel->to + runs[i].start * panel->width;

		for (int64_t lane = 0; lane < panel->lanes; lane++)
			read_run(w, &runs[i], taps[lane], to + lane, panel->width);
	}
	for (int64_t k = 0; k < panel->depth; k++)
		for (int64_t lane = panel->lanes; lane < panel->width; lane++)
			panel->to[k * panel->width + lane] = 0;
}

/* The kernels of one group as a factor of dx: lanes are c, depth is (o, taps of the windows). */
struct kernels {
	const double *data;
	int64_t outer, plane, columns; /* elements of an output's kernel, of a plane, of its rows */
	const struct taps *taps;       /* one for each axis */
};

static void pack_kernels(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel)
{
	const struct kernels *kernels = factor->of;
	int64_t columns = kernels->taps[1].count, taps = kernels->taps[0].count * columns;
	double *to = panel->to;

	for (int64_t k = panel->first; k < panel->first + panel->depth; k++, to += panel->width) {
		const double *from = kernels->data + k / taps * kernels->outer +
				     kernels->taps[0].tap[k % taps / columns] * kernels->columns +
				     kernels->taps[1].tap[k % columns] +
				     panel->first_lane * kernels->plane;

		for (int64_t lane = 0; lane < panel->width; lane++)
			to[lane] = lane < panel->lanes ? from[lane * kernels->plane] : 0;
	}
}

static int64_t plane_of(const struct shape *shape)
{
	return shape->dims[2] * shape->dims[3];
}

/* If each position reads exactly one element, a plane becomes one long line: panels are then copied
 * in the longest possible pieces. */
static void flatten(struct windows *w)
{
	for (int axis = 0; axis < 2; axis++)
		if (w->taps[axis].count != 1 || w->taps[axis].offset[0] != 0 || w->step[axis] != 1)
			return;
	if (w->rows != w->height || w->columns != w->width)
		return;
	w->columns = w->width = w->height * w->width;
	w->rows = w->height = 1;
}

/* The windows of x; the positions are the elements of a plane of y. */
static struct windows windows_of_input(const struct conv *conv, const double *x, int64_t group)
{
	const struct attributes *attributes = conv->attributes;
	struct windows w = {
		.data = x + group * conv->k->dims[1] * plane_of(conv->x),
		.sample = conv->x->dims[1] * plane_of(conv->x),
		.height = conv->x->dims[2],
		.width = conv->x->dims[3],
		.rows = conv->y->dims[2],
		.columns = conv->y->dims[3],
		.step = {attributes->strides[0], attributes->strides[1]},
	};

	for (int axis = 0; axis < 2; axis++) {
		w.taps[axis] = taps_new(conv->k->dims[2 + axis]);
		for (int64_t tap = 0; tap < conv->k->dims[2 + axis]; tap++)
			taps_add(&w.taps[axis], tap,
				 tap * attributes->dilations[axis] - attributes->pads[axis]);
	}
	flatten(&w);
	return w;
}

/* The windows of dy, or of a group's part of it: those outputs that depend on pixels of dx with
 * these residues modulo the strides. */
static struct windows windows_of_output(const struct conv *conv, const double *dy, int64_t group,
					const int64_t residue[2])
{
	const struct attributes *attributes = conv->attributes;
	struct windows w = {
		.data = dy + group * (conv->y->dims[1] / attributes->group) * plane_of(conv->y),
		.sample = conv->y->dims[1] * plane_of(conv->y),
		.height = conv->y->dims[2],
		.width = conv->y->dims[3],
		.step = {1, 1},
	};
	int64_t positions[2];

	for (int axis = 0; axis < 2; axis++) {
		int64_t stride = attributes->strides[axis], size = conv->x->dims[2 + axis];

		positions[axis] =
			residue[axis] < size ? (size - 1 - residue[axis]) / stride + 1 : 0;
		w.taps[axis] = taps_new(conv->k->dims[2 + axis]);
		for (int64_t tap = 0; tap < conv->k->dims[2 + axis]; tap++) {
			int64_t at = residue[axis] + attributes->pads[axis] -
				     tap * attributes->dilations[axis];

			if (at % stride == 0)
				taps_add(&w.taps[axis], tap, at / stride);
		}
	}
	w.rows = positions[0];
	w.columns = positions[1];
	return w;
}

/* Whether to compute directly: groups have fewer channels than a tile of the product has rows. */
static bool is_direct(const struct conv *conv)
{
	return conv->attributes->group > 1 && conv->k->dims[1] < 4 &&
	       conv->y->dims[1] / conv->attributes->group < 4;
}

static void group_forward(const struct conv *conv, const struct conv_data *data, int64_t group)
{
	int64_t outputs = conv->y->dims[1] / conv->attributes->group;
	int64_t depth = conv->k->dims[1] * plane_of(conv->k), plane = plane_of(conv->y);
	struct windows w = windows_of_input(conv, data->x, group);

	gemm_f64(&(struct gemm_f64){
		.rows = outputs,
		.columns = conv->y->dims[0] * plane,
		.depth = depth,
		.alpha = 1,
		.a = gemm_f64_matrix(data->k + group * outputs * depth, 1, depth),
		.b = {.pack = pack_positions, .of = &w},
		.target = {.data = data->y + group * outputs * plane,
			   .row = plane,
			   .lines = 1,
			   .positions = plane,
			   .sample = conv->y->dims[1] * plane,
			   .step = 1},
	});
	windows_release(&w);
}

void conv_fill(const struct shape *shape, double *y, const double *bias)
{
	int64_t plane = plane_of(shape);

	for (int64_t i = 0; i < shape->dims[0] * shape->dims[1]; i++)
		for (int64_t j = 0; j < plane; j++)
			y[i * plane + j] = bias ? bias[i % shape->dims[1]] : 0;
}

void conv_forward(const struct conv *conv, const struct conv_data *data)
{
	if (is_direct(conv)) {
		conv_direct(conv, data);
		return;
	}
	for (int64_t group = 0; group < conv->attributes->group; group++)
		group_forward(conv, data, group);
}

static void conv_compute(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_input_shape(call, 0),
			    .k = kernel_input_shape(call, 1),
			    .y = kernel_output_shape(call, 0)};
	struct conv_data data = {kernel_input(call, 0), kernel_input(call, 1),
				 kernel_output(call, 0)};

	conv_fill(conv.y, data.y, kernel_input(call, 2));
	conv_forward(&conv, &data);
}

/* Computes the pixels of dx with these residues, in one group. */
static void group_grad_input(const struct conv *conv, const struct conv_data *data, int64_t group,
			     const int64_t residue[2])
{
	const int64_t *strides = conv->attributes->strides;
	int64_t outputs = conv->y->dims[1] / conv->attributes->group, channels = conv->k->dims[1];
	int64_t plane = plane_of(conv->x), width = conv->x->dims[3];
	struct windows w = windows_of_output(conv, data->y, group, residue);
	int64_t lines = w.rows, positions = w.columns;
	struct kernels kernels = {
		.data = data->k + group * outputs * channels * plane_of(conv->k),
		.outer = channels * plane_of(conv->k),
		.plane = plane_of(conv->k),
		.columns = conv->k->dims[3],
		.taps = w.taps,
	};

	flatten(&w);
	gemm_f64(&(struct gemm_f64){
		.rows = channels,
		.columns = conv->x->dims[0] * lines * positions,
		.depth = outputs * w.taps[0].count * w.taps[1].count,
		.alpha = 1,
		.a = {.pack = pack_kernels, .of = &kernels},
		.b = {.pack = pack_positions, .of = &w},
		.target = {.data = data->x + group * channels * plane + residue[0] * width +
				   residue[1],
			   .row = plane,
			   .lines = lines,
			   .positions = positions,
			   .sample = conv->x->dims[1] * plane,
			   .line = strides[0] * width,
			   .step = strides[1]},
	});
	windows_release(&w);
}

void conv_grad_input(const struct conv *conv, const struct conv_data *data)
{
	int64_t residue[2];

	if (is_direct(conv)) {
		conv_direct_grad_input(conv, data);
		return;
	}
	for (int64_t group = 0; group < conv->attributes->group; group++)
		for (residue[0] = 0; residue[0] < conv->attributes->strides[0]; residue[0]++)
			for (residue[1] = 0; residue[1] < conv->attributes->strides[1];
			     residue[1]++)
				group_grad_input(conv, data, group, residue);
}

static void conv_grad_input_compute(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_output_shape(call, 0),
			    .k = kernel_input_shape(call, 1),
			    .y = kernel_input_shape(call, 0)};
	struct conv_data data = {kernel_output(call, 0), kernel_input(call, 1),
				 kernel_input(call, 0)};

	memset(data.x, 0, (size_t)kernel_output_count(call, 0) * sizeof(*data.x));
	conv_grad_input(&conv, &data);
}

/* dy itself as a factor: windows of one element. */
static struct windows windows_of_one(const struct conv *conv, const double *dy, int64_t group)
{
	struct windows w = {
		.data = dy +
			group * (conv->y->dims[1] / conv->attributes->group) * plane_of(conv->y),
		.sample = conv->y->dims[1] * plane_of(conv->y),
		.height = 1,
		.width = plane_of(conv->y),
		.rows = 1,
		.columns = plane_of(conv->y),
		.step = {1, 1},
	};

	for (int axis = 0; axis < 2; axis++) {
		w.taps[axis] = taps_new(1);
		taps_add(&w.taps[axis], 0, 0);
	}
	return w;
}

static void group_grad_weight(const struct conv *conv, const struct conv_data *data, int64_t group)
{
	int64_t outputs = conv->y->dims[1] / conv->attributes->group;
	int64_t taps = conv->k->dims[1] * plane_of(conv->k);
	struct windows w = windows_of_input(conv, data->x, group);
	struct windows dy = windows_of_one(conv, data->y, group);

	gemm_f64(&(struct gemm_f64){
		.rows = outputs,
		.columns = taps,
		.depth = conv->y->dims[0] * plane_of(conv->y),
		.alpha = 1,
		.a = {.pack = pack_taps, .of = &dy},
		.b = {.pack = pack_taps, .of = &w},
		.target = gemm_f64_rows(data->k + group * outputs * taps, taps),
	});
	windows_release(&dy);
	windows_release(&w);
}

void conv_grad_weight(const struct conv *conv, const struct conv_data *data)
{
	memset(data->k, 0, (size_t)shape_elements(conv->k) * sizeof(*data->k));
	if (is_direct(conv))
		conv_direct_grad_weight(conv, data);
	else
		for (int64_t group = 0; group < conv->attributes->group; group++)
			group_grad_weight(conv, data, group);
}

void conv_grad_bias(const struct shape *shape, const double *dy, double *db)
{
	int64_t plane = plane_of(shape);

	memset(db, 0, (size_t)shape->dims[1] * sizeof(*db));
	for (int64_t i = 0; i < shape->dims[0] * shape->dims[1]; i++)
		for (int64_t j = 0; j < plane; j++)
			db[i % shape->dims[1]] += dy[i * plane + j];
}

static void conv_grad_weight_compute(const struct kernel_call *call)
{
	struct conv conv = {.attributes = &call->node->attributes,
			    .x = kernel_input_shape(call, 0),
			    .k = kernel_output_shape(call, 0),
			    .y = kernel_input_shape(call, 1)};
	struct conv_data data = {kernel_input(call, 0), kernel_output(call, 0),
				 kernel_input(call, 1)};

	conv_grad_weight(&conv, &data);
	if (kernel_output(call, 1))
		conv_grad_bias(conv.y, data.y, kernel_output(call, 1));
}

/* clang-format off */
const struct operator_row row_CONV = {
	ARITY(2, 3, 1), .attributes = conv_attributes, .infer = conv_infer,
	.macs = conv_macs, .backward = conv_backward, .compute = conv_compute,
	.samples = samples_first, .layout = LAYOUT_CONVOLVES,
};

const struct operator_row row_CONV_GRAD_INPUT = {
	GRADIENT(2, 1, conv_attributes), .macs = conv_grad_macs,
	.compute = conv_grad_input_compute,
};

const struct operator_row row_CONV_GRAD_WEIGHT = {
	GRADIENT(2, 2, conv_attributes), .first_target = 1, .macs = conv_grad_macs,
	.compute = conv_grad_weight_compute, .terms = terms_of_weight_gradient,
};
/* clang-format on */
