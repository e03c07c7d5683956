/* Layers with a window or weights, normalisation, and losses, in MXNet's operators. */
#include "adapters/mxnet/mxnet_translate_internal.h"

#include <float.h>
#include <string.h>

static bool pads_symmetric(const struct node *node)
{
	const int64_t *pads = node->attributes.pads;

	return pads[0] == pads[2] && pads[1] == pads[3];
}

/* Pads of height and width, in front of the operator. */
static enum prony_status pad_image(struct translation *t, const struct node *node,
				   const int64_t begins[2], const int64_t ends[2], double value,
				   struct mx_inputs *inputs, struct error *err)
{
	const int64_t pads[8] = {0, 0, begins[0], begins[1], 0, 0, ends[0], ends[1]};

	return mx_pad(t, node, pads, value, inputs, err);
}

/* Convolution has one padding for both sides: uneven ones become a Pad node in front. */
static enum prony_status emit_conv(struct translation *t, const struct node *node,
				   struct error *err)
{
	static const char *const keys[] = {"data", "weight", "bias"};
	const struct attributes *a = &node->attributes;
	const struct shape *weight = mx_shape(t->graph, node->inputs[1]);
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	bool symmetric = pads_symmetric(node);
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);

	if (status == PRONY_OK && !symmetric)
		status = pad_image(t, node, &a->pads[0], &a->pads[2], 0, &inputs, err);
	if (status != PRONY_OK)
		return status;
	mx_option_pair(&options, "kernel", weight->dims[2], weight->dims[3]);
	mx_option_pair(&options, "stride", a->strides[0], a->strides[1]);
	mx_option_pair(&options, "dilate", a->dilations[0], a->dilations[1]);
	mx_option_pair(&options, "pad", symmetric ? a->pads[0] : 0, symmetric ? a->pads[1] : 0);
	mx_option(&options, "num_filter", "%lld", (long long)weight->dims[0]);
	mx_option(&options, "num_group", "%lld", (long long)a->group);
	mx_option(&options, "no_bias", "%s", mx_has_bias(node) ? "False" : "True");
	return mx_emit(t, node, "Convolution", &options, &inputs, err);
}

/* A size that MXNet computes; its "full" rounds up without looking where the last window begins. */
static int64_t pooled(int64_t size, int64_t pads, int64_t kernel, int64_t stride, bool full)
{
	return (size + pads - kernel + (full ? stride - 1 : 0)) / stride + 1;
}

/* How MXNet is told about the windows of a pool. */
struct pool_plan {
	int64_t pads[2];			      /* on both sides */
	int64_t explicit_begins[2], explicit_ends[2]; /* of a Pad node in front */
	bool full, padded;
};

/* Whether the windows are those of MXNet with the begins as padding on both sides. */
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

/*
 * What lies behind the input counts in no maximum and in no mean without padding, so that there the
 * number of windows is all that matters, and either convention may give it. Else the padding
 * becomes a Pad node, for a maximum as far as the last window reaches.
 */
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
		int64_t reach = (y->dims[2 + i] - 1) * a->strides[i] + a->kernel[i];
		int64_t behind = reach - a->pads[i] - x->dims[2 + i];

		plan->explicit_begins[i] = a->pads[i];
		plan->explicit_ends[i] = ends_matter ? a->pads[2 + i] : behind > 0 ? behind : 0;
	}
}

/* Whether the plan's windows are the graph's. */
static bool plan_holds(const struct graph *graph, const struct node *node,
		       const struct pool_plan *plan)
{
	const struct shape *x = mx_shape(graph, node->inputs[0]);
	const struct shape *y = mx_shape(graph, node->outputs[0]);
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		int64_t pads =
			plan->explicit_begins[i] + plan->explicit_ends[i] + 2 * plan->pads[i];

		if (pooled(x->dims[2 + i], pads, a->kernel[i], a->strides[i], plan->full) !=
		    y->dims[2 + i])
			return false;
	}
	return true;
}

static void refuse_pool(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	bool average = node->op == OP_AVERAGE_POOL;
	bool counts = average && node->attributes.count_include_pad;
	struct pool_plan plan;

	if (node->attributes.dilations[0] > 1 || node->attributes.dilations[1] > 1)
		mx_refuse(reasons, node, "dilations");
	plan_pool(graph, node, counts, &plan);
	if ((plan.padded && average && !counts) || !plan_holds(graph, node, &plan))
		mx_refuse(reasons, node, "padding or rounding that MXNet's pooling has not");
}

static enum prony_status emit_pool(struct translation *t, const struct node *node,
				   struct error *err)
{
	const struct attributes *a = &node->attributes;
	bool average = node->op == OP_AVERAGE_POOL;
	bool counts = average && a->count_include_pad;
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	struct pool_plan plan;
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	plan_pool(t->graph, node, counts, &plan);
	if (status == PRONY_OK && plan.padded)
		status = pad_image(t, node, plan.explicit_begins, plan.explicit_ends,
				   average ? 0 : -(double)FLT_MAX, &inputs, err);
	if (status != PRONY_OK)
		return status;
	mx_option(&options, "pool_type", "%s", average ? "avg" : "max");
	mx_option_pair(&options, "kernel", a->kernel[0], a->kernel[1]);
	mx_option_pair(&options, "stride", a->strides[0], a->strides[1]);
	mx_option_pair(&options, "pad", plan.pads[0], plan.pads[1]);
	mx_option(&options, "pooling_convention", "%s", plan.full ? "full" : "valid");
	if (average)
		mx_option(&options, "count_include_pad", "%s", counts ? "True" : "False");
	return mx_emit(t, node, "Pooling", &options, &inputs, err);
}

static enum prony_status emit_global_pool(struct translation *t, const struct node *node,
					  struct error *err)
{
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	if (status != PRONY_OK)
		return status;
	mx_option(&options, "pool_type", "avg");
	mx_option(&options, "global_pool", "True");
	mx_option_pair(&options, "kernel", 1, 1);
	return mx_emit(t, node, "Pooling", &options, &inputs, err);
}

/* The layer that MXNet has for it: a weight of [out, in], and nothing scaled. */
static bool is_fully_connected(const struct node *node)
{
	const struct attributes *a = &node->attributes;

	return !a->trans_a && a->trans_b && a->alpha == 1 && (!mx_has_bias(node) || a->beta == 1);
}

static enum prony_status emit_fully_connected(struct translation *t, const struct node *node,
					      struct error *err)
{
	static const char *const keys[] = {"data", "weight", "bias"};
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	mx_option(&options, "num_hidden", "%lld",
		  (long long)mx_shape(t->graph, node->inputs[1])->dims[0]);
	mx_option(&options, "no_bias", "%s", mx_has_bias(node) ? "False" : "True");
	mx_option(&options, "flatten", "False");
	return mx_emit(t, node, "FullyConnected", &options, &inputs, err);
}

static enum prony_status scale(struct translation *t, const struct node *node, const char *suffix,
			       double factor, struct mx_symbol **symbol, struct error *err)
{
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};

	if (factor == 1)
		return PRONY_OK;
	mx_option(&options, "scalar", "%.17g", factor);
	mx_input(&inputs, "data", *symbol);
	return mx_make_part(t, node, suffix, "_mul_scalar", &options, &inputs, symbol, err);
}

/* Any other product: its parts one after the other. */
static enum prony_status emit_product(struct translation *t, const struct node *node,
				      struct error *err)
{
	static const char *const keys[] = {"lhs", "rhs", "bias"};
	const struct attributes *a = &node->attributes;
	const struct mx_options none = {0};
	struct mx_options options = {0};
	struct mx_inputs all = {0}, inputs = {0}, sum = {0};
	struct mx_symbol *product = NULL;
	enum prony_status status = mx_get_inputs(t, node, keys, &all, err);

	if (status != PRONY_OK)
		return status;
	mx_option(&options, "transpose_a", "%s", a->trans_a ? "True" : "False");
	mx_option(&options, "transpose_b", "%s", a->trans_b ? "True" : "False");
	mx_input(&inputs, "lhs", all.symbols[0]);
	mx_input(&inputs, "rhs", all.symbols[1]);
	if (a->alpha == 1 && !mx_has_bias(node))
		return mx_emit(t, node, "dot", &options, &inputs, err);
	status = mx_make_part(t, node, "dot", "dot", &options, &inputs, &product, err);
	if (status == PRONY_OK)
		status = scale(t, node, "alpha", a->alpha, &product, err);
	if (status != PRONY_OK)
		return status;
	if (!mx_has_bias(node)) {
		t->values[node->outputs[0]] = product;
		return PRONY_OK;
	}
	status = scale(t, node, "beta", a->beta, &all.symbols[2], err);
	if (status != PRONY_OK)
		return status;
	mx_input(&sum, "lhs", product);
	mx_input(&sum, "rhs", all.symbols[2]);
	return mx_emit(t, node, "broadcast_add", &none, &sum, err);
}

static enum prony_status emit_gemm(struct translation *t, const struct node *node,
				   struct error *err)
{
	return is_fully_connected(node) ? emit_fully_connected(t, node, err)
					: emit_product(t, node, err);
}

/* MXNet's momentum is ONNX's; its defaults fix gamma at 1 and have another epsilon. */
static enum prony_status emit_batch_norm(struct translation *t, const struct node *node,
					 struct error *err)
{
	static const char *const keys[] = {"data", "gamma", "beta", "moving_mean", "moving_var"};
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	mx_option(&options, "eps", "%.17g", node->attributes.epsilon);
	mx_option(&options, "momentum", "%.9g", node->attributes.momentum);
	mx_option(&options, "fix_gamma", "False");
	mx_option(&options, "use_global_stats", "False");
	return mx_emit(t, node, "BatchNorm", &options, &inputs, err);
}

static void refuse_loss(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (node->op == OP_SOFTMAX_CROSS_ENTROPY && mx_shape(graph, node->inputs[0])->rank != 2)
		mx_refuse(reasons, node, "logits are not batch x classes");
	if (node->inputs[0] != graph->logits)
		mx_refuse(reasons, node, "is not taken of the logits");
}

static enum prony_status emit_cross_entropy(struct translation *t, const struct node *node,
					    struct error *err)
{
	static const char *const keys[] = {"data", "label"};
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};

	if (!t->loss)
		return PRONY_OK;
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);
	if (status != PRONY_OK)
		return status;
	/* Divides the gradient by the batch size: the loss is a mean. */
	mx_option(&options, "normalization", "batch");
	return mx_make(t, "SoftmaxOutput", node->name, &options, &inputs, &t->objective, err);
}

/* Half the sum of squares, made an objective: the backward pass begins with 1. */
static enum prony_status emit_half_squares(struct translation *t, const struct node *node,
					   struct error *err)
{
	const struct mx_options none = {0};
	struct mx_options half = {0};
	struct mx_inputs inputs = {0};
	struct mx_symbol *symbol = NULL;

	if (!t->loss)
		return PRONY_OK;
	enum prony_status status = mx_get_data(t, node, &inputs, err);
	if (status == PRONY_OK)
		status = mx_make_part(t, node, "square", "square", &none, &inputs,
				      &inputs.symbols[0], err);
	if (status == PRONY_OK)
		status = mx_make_part(t, node, "sum", "sum", &none, &inputs, &symbol, err);
	if (status != PRONY_OK)
		return status;
	inputs.symbols[0] = symbol;
	mx_option(&half, "grad_scale", "0.5");
	return mx_make(t, "MakeLoss", node->name, &half, &inputs, &t->objective, err);
}

const struct mx_row mx_conv = {NULL, emit_conv};
const struct mx_row mx_max_pool = {refuse_pool, emit_pool};
const struct mx_row mx_average_pool = {refuse_pool, emit_pool};
const struct mx_row mx_global_average_pool = {NULL, emit_global_pool};
const struct mx_row mx_gemm = {NULL, emit_gemm};
const struct mx_row mx_batch_norm = {NULL, emit_batch_norm};
const struct mx_row mx_cross_entropy = {refuse_loss, emit_cross_entropy};
const struct mx_row mx_half_squares = {refuse_loss, emit_half_squares};
