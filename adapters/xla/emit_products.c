/* Writes convolutions and matrix products; the gradients follow JAX's rules. */
#include <string.h>

#include "adapters/xla/emit_internal.h"

/* The geometry of a convolution; its gradients have the same attributes. */
static struct hlo_conv geometry(const struct attributes *a)
{
	struct hlo_conv conv = {.lhs_dilation = {1, 1}, .groups = a->group, .batch_groups = 1};

	for (int i = 0; i < 2; i++) {
		conv.stride[i] = a->strides[i];
		conv.rhs_dilation[i] = a->dilations[i];
		conv.low[i] = a->pads[i];
		conv.high[i] = a->pads[i + 2];
	}
	return conv;
}

static int64_t reach(const struct attributes *a, int i)
{
	return (a->kernel[i] - 1) * a->dilations[i] + 1;
}

/* Returns the weight as H x W x I x O. A weight with other readers is stored as O x H x W x I. */
static struct hlo kernel(struct emitter *l, const struct node *node)
{
	static const int from_image[] = {1, 2, 3, 0};
	struct hlo w = emit_input(l, node, 1);

	return l->layouts.values[node->inputs[1]] == LAYOUT_KERNEL
		       ? w
		       : hlo_transpose(&l->h, w, from_image);
}

/* Convolves input 0 with input 1. */
static struct hlo convolved(struct emitter *l, const struct node *node)
{
	const struct shape lies = emit_lying(l, node->outputs[0]);
	const struct attributes *a = &node->attributes;
	struct hlo_conv conv = geometry(a);
	struct hlo x = emit_input(l, node, 0);
	struct hlo w = kernel(l, node);

	conv.dimensions = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
	conv.terms = a->kernel[0] * a->kernel[1] * w.shape.dims[2];
	return hlo_convolution(&l->h, x, w, &conv, l->compute, &lies);
}

/* Adds the bias, if there is one, and sets output 0. */
static void give_biased(struct emitter *l, const struct node *node, struct hlo y)
{
	if (node->input_count > 2 && node->inputs[2] != VALUE_NONE)
		y = hlo_binary(&l->h, "add", y, emit_channels(l, emit_input(l, node, 2), &y.shape));
	emit_output(l, node, 0, y);
}

void emit_conv(struct emitter *l, const struct node *node)
{
	give_biased(l, node, convolved(l, node));
}

/* dx is dy, spaced by `stride`, convolved with the reversed weights, with inputs and outputs
 * exchanged. With groups this is done within each group: O of H x W x I x O becomes I. */
static struct hlo convolved_back(struct emitter *l, const struct node *node)
{
	static const int to_inputs[] = {0, 1, 4, 3, 2};
	const struct attributes *a = &node->attributes;
	struct shape lies = emit_lying(l, node->outputs[0]);
	struct hlo_conv conv = geometry(a);
	struct hlo dy = emit_input(l, node, 0);
	struct hlo w = kernel(l, node);
	int64_t inputs = w.shape.dims[2], outputs = w.shape.dims[3] / a->group;

	w = hlo_reverse(&l->h, w, (const int[]){0, 1}, 2);
	conv.dimensions = "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]";
	if (a->group > 1) {
		struct shape parts = {
			.rank = 5, .dims = {a->kernel[0], a->kernel[1], inputs, a->group, outputs}};
		struct shape joined = {
			.rank = 4,
			.dims = {a->kernel[0], a->kernel[1], outputs, a->group * inputs}};

		w = hlo_transpose(&l->h, hlo_reshape(&l->h, w, &parts), to_inputs);
		w = hlo_reshape(&l->h, w, &joined);
		conv.dimensions = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
	}
	for (int i = 0; i < 2; i++) {
		int64_t spread = (dy.shape.dims[1 + i] - 1) * a->strides[i] + 1;

		conv.stride[i] = 1;
		conv.lhs_dilation[i] = a->strides[i];
		conv.low[i] = reach(a, i) - a->pads[i] - 1;
		conv.high[i] = lies.dims[1 + i] + reach(a, i) - 1 - spread - conv.low[i];
	}
	return hlo_convolution(&l->h, dy, w, &conv, l->compute, &lies);
}

void emit_conv_grad_input(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0, convolved_back(l, node));
}

/* The zeros between the elements of x are not multiplied. */
void emit_conv_transpose(struct emitter *l, const struct node *node)
{
	const int64_t *w = emit_shape(l, node->inputs[1])->dims;

	l->h.macs += shape_elements(emit_shape(l, node->inputs[0])) * w[1] * w[2] * w[3];
	give_biased(l, node, convolved_back(l, node));
}

void emit_conv_transpose_grad_input(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0, convolved(l, node));
}

/* dw is x convolved with dy, spaced by `stride`, summed over the batch. */
static void give_kernel_gradient(struct emitter *l, const struct node *node, struct hlo x,
				 struct hlo dy)
{
	static const int to_image[] = {3, 0, 1, 2};
	const struct attributes *a = &node->attributes;
	const int64_t *w = emit_shape(l, node->outputs[0])->dims;
	struct shape shape = {.rank = 4, .dims = {w[2], w[3], w[1], w[0]}};
	struct hlo_conv conv = geometry(a);
	struct hlo dw;

	conv.dimensions = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]";
	conv.groups = 1;
	conv.batch_groups = a->group;
	for (int i = 0; i < 2; i++) {
		int64_t spread = (dy.shape.dims[1 + i] - 1) * a->strides[i] + 1;

		conv.stride[i] = a->dilations[i];
		conv.rhs_dilation[i] = a->strides[i];
		conv.high[i] = spread - x.shape.dims[1 + i] + reach(a, i) - a->pads[i] - 1;
	}
	dw = hlo_convolution(&l->h, x, dy, &conv, HLO_F32, &shape);
	if (l->layouts.values[node->outputs[0]] != LAYOUT_KERNEL)
		dw = hlo_transpose(&l->h, dw, to_image);
	emit_output(l, node, 0, dw);
	if (node->output_count > 1 && node->outputs[1] != VALUE_NONE)
		emit_output(l, node, 1, emit_sum_channels(l, emit_input(l, node, 1)));
}

void emit_conv_grad_weight(struct emitter *l, const struct node *node)
{
	give_kernel_gradient(l, node, emit_input(l, node, 0), emit_input(l, node, 1));
}

void emit_conv_transpose_grad_weight(struct emitter *l, const struct node *node)
{
	give_kernel_gradient(l, node, emit_input(l, node, 1), emit_input(l, node, 0));
}

static struct hlo scaled(struct emitter *l, struct hlo x, double by)
{
	return by == 1 ? x : hlo_with(&l->h, "multiply", x, by);
}

void emit_gemm(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input(l, node, 0), w = emit_input(l, node, 1);
	struct hlo y = hlo_dot(&l->h, x, a->trans_a ? 0 : 1, w, a->trans_b ? 1 : 0, l->compute);

	y = scaled(l, y, a->alpha);
	if (node->input_count > 2 && node->inputs[2] != VALUE_NONE)
		y = hlo_binary(
			&l->h, "add", y,
			emit_channels(l, scaled(l, emit_input(l, node, 2), a->beta), &y.shape));
	emit_output(l, node, 0, y);
}

void emit_gemm_grad_input(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo dy = emit_input(l, node, 0), w = emit_input(l, node, 1);
	int columns = a->trans_b ? 0 : 1;
	struct hlo dx = a->trans_a ? hlo_dot(&l->h, w, columns, dy, 1, l->compute)
				   : hlo_dot(&l->h, dy, 1, w, columns, l->compute);

	emit_output(l, node, 0, scaled(l, dx, a->alpha));
}

void emit_gemm_grad_weight(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input(l, node, 0), dy = emit_input(l, node, 1);
	int rows = a->trans_a ? 1 : 0;
	struct hlo dw = a->trans_b ? hlo_dot(&l->h, dy, 0, x, rows, HLO_F32)
				   : hlo_dot(&l->h, x, rows, dy, 0, HLO_F32);

	emit_output(l, node, 0, scaled(l, dw, a->alpha));
	if (node->output_count > 1 && node->outputs[1] != VALUE_NONE)
		emit_output(l, node, 1, scaled(l, emit_sum_channels(l, dy), a->beta));
}

/* Input i of a product in the graph's order, its leading dimensions repeated like the result's. */
static struct hlo factor(struct emitter *l, const struct node *node, int i)
{
	const struct shape *own = emit_shape(l, node->inputs[i]);
	struct shape full = *emit_shape(l, node->outputs[0]), kept = {.rank = 0};
	int from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], lead = full.rank - own->rank;
	struct hlo x;

	emit_order(l, node->inputs[i], from);
	for (int k = 0; k < own->rank; k++)
		to[k] = k;
	x = emit_arrange(l, emit_input(l, node, i), from, to, own->rank);
	for (int k = own->rank - 2; k < own->rank; k++)
		full.dims[lead + k] = own->dims[k];
	if (shape_equal(&x.shape, &full))
		return x;
	for (int k = 0; k < own->rank; k++) {
		if (own->dims[k] == 1 && full.dims[lead + k] != 1)
			continue;
		to[kept.rank] = lead + k;
		kept.dims[kept.rank++] = own->dims[k];
	}
	return hlo_broadcast(&l->h, hlo_reshape(&l->h, x, &kept), to, &full);
}

void emit_matmul(struct emitter *l, const struct node *node)
{
	struct hlo a = factor(l, node, 0), b = factor(l, node, 1);
	struct hlo y = hlo_matrices(&l->h, a, b, l->compute);
	int from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK];

	for (int k = 0; k < y.shape.rank; k++)
		from[k] = k;
	emit_order(l, node->outputs[0], to);
	emit_output(l, node, 0, emit_arrange(l, y, from, to, y.shape.rank));
}
