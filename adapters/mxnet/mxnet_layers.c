/* Translates layers with a window or weights, normalisation, and losses into MXNet's operators. */
#include "adapters/mxnet/mxnet_symbol.h"
#include "adapters/mxnet/mxnet_translate_internal.h"

#include <float.h>
#include <string.h>

#include "graph/resize.h"
#include "graph/sliding_window.h"

static bool pads_symmetric(const struct node *node)
{
	const int64_t *pads = node->attributes.pads;

	return pads[0] == pads[2] && pads[1] == pads[3];
}

/* Convolution has one padding for both sides: uneven padding becomes a preceding Pad node. */
struct mx_symbol *mx_conv(struct translation *t, const struct node *node)
{
	static const int64_t none[2] = {0, 0};
	const struct attributes *a = &node->attributes;
	const struct shape *weight = mx_shape(t->graph, node->inputs[1]);
	bool symmetric = pads_symmetric(node);
	struct mx_symbol *in[3];
	int count = mx_all_in(t, in);

	if (!symmetric)
		in[0] = mx_pad_image(t, in[0], &a->pads[0], &a->pads[2], 0);
	return mx_op(t, "", "Convolution", in, count,
		     mx_text(t,
			     "kernel=%s stride=%s dilate=%s pad=%s num_filter=%lld num_group=%lld "
			     "no_bias=%s",
			     mx_pair(&weight->dims[2]).text, mx_pair(a->strides).text,
			     mx_pair(a->dilations).text, mx_pair(symmetric ? a->pads : none).text,
			     (long long)weight->dims[0], (long long)a->group,
			     mx_bool(!mx_has_bias(node))));
}

/* Deconvolution too has one padding for both sides: uneven padding is cut off behind it. */
struct mx_symbol *mx_conv_transpose(struct translation *t, const struct node *node)
{
	static const int64_t none[2] = {0, 0};
	const struct attributes *a = &node->attributes;
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	bool symmetric = pads_symmetric(node);
	struct mx_symbol *in[3], *whole;
	int count = mx_all_in(t, in);

	whole = mx_op(t, symmetric ? "" : "whole", "Deconvolution", in, count,
		      mx_text(t,
			      "kernel=%s stride=%s dilate=%s pad=%s adj=%s num_filter=%lld "
			      "num_group=%lld no_bias=%s",
			      mx_pair(a->kernel).text, mx_pair(a->strides).text,
			      mx_pair(a->dilations).text, mx_pair(symmetric ? a->pads : none).text,
			      mx_pair(a->output_padding).text, (long long)y->dims[1],
			      (long long)a->group, mx_bool(!mx_has_bias(node))));
	if (symmetric)
		return whole;
	return mx_op(t, "", "slice", &whole, 1,
		     mx_text(t, "begin=(None,None,%lld,%lld) end=(None,None,%lld,%lld)",
			     (long long)a->pads[0], (long long)a->pads[1],
			     (long long)(a->pads[0] + y->dims[2]),
			     (long long)(a->pads[1] + y->dims[3])));
}

/* The output size that MXNet computes. Its "full" rounds up and ignores where the last window
 * begins. */
static int64_t pooled(int64_t size, int64_t pads, int64_t kernel, int64_t stride, bool full)
{
	return (size + pads - kernel + (full ? stride - 1 : 0)) / stride + 1;
}

/* The description of a pool's windows for MXNet. */
struct pool_plan {
	int64_t pads[2];			      /* on both sides */
	int64_t explicit_begins[2], explicit_ends[2]; /* of a preceding Pad node */
	bool full, padded;
};

/* Whether MXNet has the same number of windows if the padding at the beginning is used on both
 * sides. */
static bool same_windows(const struct graph *graph, const struct node *node, bool full)
{
	const struct shape *x = mx_shape(graph, node->inputs[0]);
	const struct shape *y = mx_shape(graph, node->outputs[0]);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		if (pooled(x->dims[2 + i], 2 * a->pads[i], a->kernel[i], a->strides[i], full) !=
		    y->dims[2 + i])
			return false;
	}
	return true;
}

/* Values beyond the end of the input do not affect a maximum or a mean without padding. There only
 * the number of windows matters, and either rounding may produce it. Otherwise the padding becomes
 * a Pad node; for a maximum it extends as far as the last window reaches. */
static void plan_pool(const struct graph *graph, const struct node *node, bool ends_matter,
		      struct pool_plan *plan)
{
	const struct shape *x = mx_shape(graph, node->inputs[0]);
	const struct shape *y = mx_shape(graph, node->outputs[0]);
	const struct attributes *a = &node->attributes;

	*plan = (struct pool_plan){.pads = {a->pads[0], a->pads[1]}};
	if (!ends_matter || pads_symmetric(node)) {
		plan->full = !same_windows(graph, node, false);
		if (!plan->full || same_windows(graph, node, true))
			return;
	}
	*plan = (struct pool_plan){.padded = true, .full = ends_matter && a->ceil_mode};
	for (int i = 0; i < 2; i++) {
		int64_t behind = sliding_window_overhang(a, i, x->dims[2 + i], y->dims[2 + i]);

		plan->explicit_begins[i] = a->pads[i];
		plan->explicit_ends[i] = ends_matter ? a->pads[2 + i] : behind;
	}
}

/* Whether the plan has as many windows as the graph, and none that MXNet thinks too large. */
static bool plan_holds(const struct graph *graph, const struct node *node,
		       const struct pool_plan *plan)
{
	const struct shape *x = mx_shape(graph, node->inputs[0]);
	const struct shape *y = mx_shape(graph, node->outputs[0]);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		int64_t pads =
			plan->explicit_begins[i] + plan->explicit_ends[i] + 2 * plan->pads[i];

		if (a->kernel[i] > x->dims[2 + i] + pads ||
		    pooled(x->dims[2 + i], pads, a->kernel[i], a->strides[i], plan->full) !=
			    y->dims[2 + i])
			return false;
	}
	return true;
}

void mx_refuse_pool(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	bool average = node->op == OP_AVERAGE_POOL;
	bool counts = average && node->attributes.count_include_pad;
	struct pool_plan plan;

	if (node->attributes.dilations[0] > 1 || node->attributes.dilations[1] > 1)
		mx_refuse(reasons, node, "dilations are not supported");
	plan_pool(graph, node, counts, &plan);
	if ((plan.padded && average && !counts) || !plan_holds(graph, node, &plan))
		mx_refuse(reasons, node, "MXNet's pooling cannot have this padding or rounding");
}

struct mx_symbol *mx_pool(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	bool average = node->op == OP_AVERAGE_POOL;
	bool counts = average && a->count_include_pad;
	struct mx_symbol *x = mx_in(t, 0);
	struct pool_plan plan;

	plan_pool(t->graph, node, counts, &plan);
	if (plan.padded)
		x = mx_pad_image(t, x, plan.explicit_begins, plan.explicit_ends,
				 average ? 0 : -(double)FLT_MAX);
	return mx_op(t, "", "Pooling", &x, 1,
		     mx_text(t, "pool_type=%s kernel=%s stride=%s pad=%s pooling_convention=%s%s%s",
			     average ? "avg" : "max", mx_pair(a->kernel).text,
			     mx_pair(a->strides).text, mx_pair(plan.pads).text,
			     plan.full ? "full" : "valid", average ? " count_include_pad=" : "",
			     average ? mx_bool(counts) : ""));
}

struct mx_symbol *mx_global_pool(struct translation *t, const struct node *node)
{
	(void)node;
	return mx_unary(t, "Pooling", "pool_type=avg global_pool=True kernel=(1,1)");
}

/* Whether the node is MXNet's FullyConnected: a weight of [out, in] and no scale. */
static bool is_fully_connected(const struct node *node)
{
	const struct attributes *a = &node->attributes;

	return !a->trans_a && a->trans_b && a->alpha == 1 && (!mx_has_bias(node) || a->beta == 1);
}

static struct mx_symbol *fully_connected(struct translation *t, const struct node *node)
{
	struct mx_symbol *in[3];
	int count = mx_all_in(t, in);

	return mx_op(t, "", "FullyConnected", in, count,
		     mx_text(t, "num_hidden=%lld no_bias=%s flatten=False",
			     (long long)mx_shape(t->graph, node->inputs[1])->dims[0],
			     mx_bool(!mx_has_bias(node))));
}

static struct mx_symbol *scaled(struct translation *t, const char *suffix, double factor,
				struct mx_symbol *x)
{
	return factor == 1 ? x : mx_scalar(t, suffix, "_mul_scalar", x, factor);
}

/* Any other product, as a sequence of operators. */
static struct mx_symbol *product(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	bool alone = a->alpha == 1 && !mx_has_bias(node);
	struct mx_symbol *y = mx_op(t, alone ? "" : "dot", "dot", MX_IN(mx_in(t, 0), mx_in(t, 1)),
				    mx_text(t, "transpose_a=%s transpose_b=%s", mx_bool(a->trans_a),
					    mx_bool(a->trans_b)));

	y = scaled(t, "alpha", a->alpha, y);
	if (!mx_has_bias(node))
		return y;
	return mx_op(t, "", "broadcast_add", MX_IN(y, scaled(t, "beta", a->beta, mx_in(t, 2))),
		     NULL);
}

struct mx_symbol *mx_gemm(struct translation *t, const struct node *node)
{
	return is_fully_connected(node) ? fully_connected(t, node) : product(t, node);
}

struct mx_symbol *mx_broadcast(struct translation *t, const char *aligned, const char *suffix,
			       struct mx_symbol *x, const struct shape *from,
			       const struct shape *to)
{
	struct shape full = {.rank = to->rank};

	for (int i = 0; i < to->rank; i++) {
		int own = i - (to->rank - from->rank);

		full.dims[i] = own < 0 ? 1 : from->dims[own];
	}
	if (from->rank < to->rank)
		x = mx_op(t, aligned, "Reshape", &x, 1,
			  mx_text(t, "shape=%s", mx_list(full.dims, full.rank).text));
	return mx_op(t, suffix, "broadcast_to", &x, 1,
		     mx_text(t, "shape=%s", mx_list(to->dims, to->rank).text));
}

/* Factor i of a product as an array of matrices, repeated as often as the result has them. */
static struct mx_symbol *matrices(struct translation *t, const struct node *node, int i)
{
	static const char *const names[2][3] = {{"a.aligned", "a.repeated", "a"},
						{"b.aligned", "b.repeated", "b"}};
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	const struct shape *own = mx_shape(t->graph, node->inputs[i]);
	struct shape full = *y;
	struct mx_symbol *x = mx_in(t, i);
	int64_t list[3] = {1, own->dims[own->rank - 2], own->dims[own->rank - 1]};

	for (int k = 0; k < 2; k++)
		full.dims[y->rank - 2 + k] = list[1 + k];
	for (int k = 0; k < y->rank - 2; k++)
		list[0] *= y->dims[k];
	if (!shape_equal(&full, own))
		x = mx_broadcast(t, names[i][0], names[i][1], x, own, &full);
	return y->rank == 3 ? x
			    : mx_op(t, names[i][2], "Reshape", &x, 1,
				    mx_text(t, "shape=%s", mx_list(list, 3).text));
}

/* MXNet's batch_dot multiplies arrays of matrices, so leading dimensions become one. */
struct mx_symbol *mx_matmul(struct translation *t, const struct node *node)
{
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	struct mx_symbol *a, *b;

	if (y->rank == 2)
		return mx_op(t, "", "dot", MX_IN(mx_in(t, 0), mx_in(t, 1)), NULL);
	a = matrices(t, node, 0);
	b = matrices(t, node, 1);
	if (y->rank == 3)
		return mx_op(t, "", "batch_dot", MX_IN(a, b), NULL);
	a = mx_op(t, "product", "batch_dot", MX_IN(a, b), NULL);
	return mx_op(t, "", "Reshape", &a, 1,
		     mx_text(t, "shape=%s", mx_list(y->dims, y->rank).text));
}

/* MXNet's momentum has ONNX's meaning; its defaults fix gamma at 1 and use another epsilon. */
struct mx_symbol *mx_batch_norm(struct translation *t, const struct node *node)
{
	struct mx_symbol *in[5];
	int count = mx_all_in(t, in);

	return mx_op(t, "", "BatchNorm", in, count,
		     mx_text(t, "eps=%.17g momentum=%.9g fix_gamma=False use_global_stats=False",
			     node->attributes.epsilon, node->attributes.momentum));
}

/* x / sqrt(mean of x^2 + epsilon) scale, over the last axis */
static struct mx_symbol *rms_norm(struct translation *t, const struct node *node,
				  struct mx_symbol *const in[2], const char *name)
{
	struct mx_symbol *size = mx_op(t, "squares", "square", &in[0], 1, NULL);

	size = mx_op(t, "mean", "mean", &size, 1, "axis=-1 keepdims=True");
	size = mx_scalar(t, "plus", "_plus_scalar", size, node->attributes.epsilon);
	size = mx_op(t, "inverse", "rsqrt", &size, 1, NULL);
	size = mx_op(t, "normal", "broadcast_mul", MX_IN(in[0], size), NULL);
	return mx_op(t, name, "broadcast_mul", MX_IN(size, in[1]), NULL);
}

/* MXNet normalises one axis: several axes are first merged into one. */
struct mx_symbol *mx_layer_norm(struct translation *t, const struct node *node)
{
	const struct shape *x = mx_shape(t->graph, node->inputs[0]);
	const int64_t row = shape_elements(mx_shape(t->graph, node->inputs[1]));
	const int64_t rows[2] = {shape_elements(x) / row, row};
	bool flat = node->attributes.axis < x->rank - 1;
	struct mx_symbol *in[3], *y;

	for (int i = 0; i < node->input_count; i++) {
		static const char *const names[] = {"rows", "scale", "bias"};
		struct mx_list shape = i == 0 ? mx_list(rows, 2) : mx_list(&row, 1);

		in[i] = mx_in(t, i);
		if (flat)
			in[i] = mx_op(t, names[i], "Reshape", &in[i], 1,
				      mx_text(t, "shape=%s", shape.text));
	}
	if (node->op == OP_RMS_NORM)
		y = rms_norm(t, node, in, flat ? "normalised" : "");
	else
		y = mx_op(t, flat ? "normalised" : "", "LayerNorm", in, 3,
			  mx_text(t, "axis=-1 eps=%.17g", node->attributes.epsilon));
	return flat ? mx_op(t, "", "Reshape", &y, 1,
			    mx_text(t, "shape=%s", mx_list(x->dims, x->rank).text))
		    : y;
}

/* Composed, because MXNet's GroupNorm has scale and bias for each group. */
struct mx_symbol *mx_group_norm(struct translation *t, const struct node *node)
{
	const struct shape *x = mx_shape(t->graph, node->inputs[0]);
	int64_t count = node->op == OP_GROUP_NORM ? node->attributes.group : x->dims[1];
	const int64_t groups[3] = {x->dims[0], count, shape_elements(x) / (x->dims[0] * count)};
	struct shape along = {.rank = x->rank, .dims = {1, x->dims[1], 1, 1, 1, 1, 1, 1}};
	struct mx_symbol *in[3] = {mx_in(t, 0), mx_in(t, 1), mx_in(t, 2)}, *size, *y;

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"groups", "scale", "bias"};

		in[i] = mx_op(
			t, names[i], "Reshape", &in[i], 1,
			mx_text(t, "shape=%s",
				(i == 0 ? mx_list(groups, 3) : mx_list(along.dims, along.rank))
					.text));
	}
	y = mx_op(t, "mean", "mean", &in[0], 1, "axis=2 keepdims=True");
	y = mx_op(t, "centred", "broadcast_sub", MX_IN(in[0], y), NULL);
	size = mx_op(t, "squares", "square", &y, 1, NULL);
	size = mx_op(t, "variance", "mean", &size, 1, "axis=2 keepdims=True");
	size = mx_scalar(t, "plus", "_plus_scalar", size, node->attributes.epsilon);
	size = mx_op(t, "inverse", "rsqrt", &size, 1, NULL);
	y = mx_op(t, "normal", "broadcast_mul", MX_IN(y, size), NULL);
	y = mx_op(t, "image", "Reshape", &y, 1,
		  mx_text(t, "shape=%s", mx_list(x->dims, x->rank).text));
	y = mx_op(t, "scaled", "broadcast_mul", MX_IN(y, in[1]), NULL);
	return mx_op(t, "", "broadcast_add", MX_IN(y, in[2]), NULL);
}

struct mx_symbol *mx_resize(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const int64_t *y = mx_shape(t->graph, node->outputs[0])->dims;
	struct mx_symbol *rows = mx_in(t, 0);

	if (a->mode == RESIZE_LINEAR)
		return mx_op(t, "", "_contrib_BilinearResize2D", &rows, 1,
			     mx_text(t, "height=%lld width=%lld align_corners=%s", (long long)y[2],
				     (long long)y[3],
				     mx_bool(a->coordinates == RESIZE_ALIGN_CORNERS)));
	rows = mx_op(t, "rows", "repeat", &rows, 1,
		     mx_text(t, "repeats=%lld axis=2", (long long)a->strides[0]));
	return mx_op(t, "", "repeat", &rows, 1,
		     mx_text(t, "repeats=%lld axis=3", (long long)a->strides[1]));
}

void mx_refuse_loss(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (node->op == OP_SOFTMAX_CROSS_ENTROPY && mx_shape(graph, node->inputs[0])->rank != 2)
		mx_refuse(reasons, node, "the logits must have the shape batch x classes");
	if (node->inputs[0] != graph->logits)
		mx_refuse(reasons, node, "the loss must read the logits");
}

bool mx_ignores_labels(const struct graph *graph)
{
	return mx_shape(graph, graph_label(graph, 0))->rank != 1;
}

/* Minus the mean log probability of the labels that are not -1. */
static struct mx_symbol *mean_of_valid(struct translation *t)
{
	struct mx_symbol *labels = mx_op(t, "rows", "Reshape", MX_IN(mx_in(t, 1)), "shape=(-1,)");
	struct mx_symbol *valid = mx_scalar(t, "valid", "_greater_equal_scalar", labels, 0);
	struct mx_symbol *classes = mx_scalar(t, "classes", "_maximum_scalar", labels, 0);
	struct mx_symbol *y = mx_op(t, "log", "log_softmax", MX_IN(mx_in(t, 0)), "axis=-1");

	y = mx_op(t, "right", "pick", MX_IN(y, classes), "axis=1");
	y = mx_op(t, "kept", "elemwise_mul", MX_IN(y, valid), NULL);
	y = mx_op(t, "sum", "sum", MX_IN(y), NULL);
	y = mx_op(t, "mean", "elemwise_div", MX_IN(y, mx_op(t, "count", "sum", MX_IN(valid), NULL)),
		  NULL);
	y = mx_scalar(t, "negative", "_mul_scalar", y, -1);
	return mx_op(t, "", "MakeLoss", MX_IN(y), NULL);
}

/* SoftmaxOutput divides the gradient by the batch size: the loss is a mean over all labels. */
struct mx_symbol *mx_cross_entropy(struct translation *t, const struct node *node)
{
	(void)node;
	if (t->loss && mx_ignores_labels(t->graph))
		t->objective = mean_of_valid(t);
	else if (t->loss)
		t->objective = mx_op(t, "", "SoftmaxOutput", MX_IN(mx_in(t, 0), mx_in(t, 1)),
				     "normalization=batch");
	return NULL;
}

/* Half the sum of squares as an objective: the backward pass begins with a gradient of 1. */
struct mx_symbol *mx_half_squares(struct translation *t, const struct node *node)
{
	struct mx_symbol *x;

	(void)node;
	if (!t->loss)
		return NULL;
	x = mx_op(t, "square", "square", MX_IN(mx_in(t, 0)), NULL);
	x = mx_op(t, "sum", "sum", &x, 1, NULL);
	t->objective = mx_op(t, "", "MakeLoss", &x, 1, "grad_scale=0.5");
	return NULL;
}

/* Rows of a table. A table of rank 2 becomes Embedding, as a user would write it. */
struct mx_symbol *mx_gather(struct translation *t, const struct node *node)
{
	const struct shape *table = mx_shape(t->graph, node->inputs[0]);
	struct mx_symbol *rows = mx_in(t, 0), *indices = mx_in(t, 1);

	if (table->rank != 2)
		return mx_op(t, "", "take", MX_IN(rows, indices), "axis=0 mode=clip");
	return mx_op(t, "", "Embedding", MX_IN(indices, rows),
		     mx_text(t, "input_dim=%lld output_dim=%lld", (long long)table->dims[0],
			     (long long)table->dims[1]));
}
