/*
 * Local response normalisation: MXNet's own operator in evaluation. In training its gradient is
 * wrong between convolutions or pools (docs/frameworks-c.md), and the same is made of operators
 * whose gradients are right: a mean over neighbouring channels is a pool over them.
 */
#include "adapters/mxnet/mxnet_translate_internal.h"

static void refuse_lrn(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (node->attributes.size % 2 == 0)
		mx_refuse(reasons, node, "an even size");
	if (mx_shape(graph, node->inputs[0])->rank != 4)
		mx_refuse(reasons, node, "an input without height and width");
}

/* alpha is divided by the size, as in ONNX (src/operator/nn/lrn-inl.h). */
static enum prony_status emit_own(struct translation *t, const struct node *node,
				  struct mx_inputs *inputs, struct error *err)
{
	struct mx_options options = {0};

	mx_option(&options, "alpha", "%.9g", node->attributes.alpha);
	mx_option(&options, "beta", "%.9g", node->attributes.beta);
	mx_option(&options, "knorm", "%.9g", node->attributes.bias);
	mx_option(&options, "nsize", "%lld", (long long)node->attributes.size);
	return mx_emit(t, node, "LRN", &options, inputs, err);
}

/* The next step over the only symbol in `inputs`, which becomes its result. */
static enum prony_status next(struct translation *t, const struct node *node, const char *suffix,
			      const char *operator, const struct mx_options * options,
			      struct mx_inputs *inputs, struct error *err)
{
	return mx_make_part(t, node, suffix, operator, options, inputs, &inputs->symbols[0], err);
}

static enum prony_status next_scalar(struct translation *t, const struct node *node,
				     const char *suffix, const char *operator, double scalar,
				     struct mx_inputs *inputs, struct error *err)
{
	struct mx_options options = {0};

	mx_option(&options, "scalar", "%.17g", scalar);
	return next(t, node, suffix, operator, & options, inputs, err);
}

/* The mean of the squares of `size` channels around each, zeros beyond the first and the last. */
static enum prony_status mean_of_squares(struct translation *t, const struct node *node,
					 struct mx_inputs *inputs, struct error *err)
{
	const struct shape *x = mx_shape(t->graph, node->inputs[0]);
	const int64_t flat[4] = {x->dims[0], 1, x->dims[1], x->dims[2] * x->dims[3]};
	const int64_t size = node->attributes.size;
	const struct mx_options none = {0};
	struct mx_options channels = {0}, pool = {0}, back = {0};
	enum prony_status status = next(t, node, "squares", "square", &none, inputs, err);

	mx_option_list(&channels, "shape", flat, 4);
	if (status == PRONY_OK)
		status = next(t, node, "channels", "Reshape", &channels, inputs, err);
	mx_option(&pool, "pool_type", "avg");
	mx_option(&pool, "count_include_pad", "True");
	mx_option_pair(&pool, "kernel", size, 1);
	mx_option_pair(&pool, "pad", size / 2, 0);
	mx_option_pair(&pool, "stride", 1, 1);
	if (status == PRONY_OK)
		status = next(t, node, "mean", "Pooling", &pool, inputs, err);
	mx_option_list(&back, "shape", x->dims, 4);
	if (status == PRONY_OK)
		status = next(t, node, "places", "Reshape", &back, inputs, err);
	return status;
}

/* x (bias + alpha mean)^-beta */
static enum prony_status emit_composed(struct translation *t, const struct node *node,
				       struct mx_inputs *inputs, struct error *err)
{
	const struct attributes *a = &node->attributes;
	const struct mx_options none = {0};
	struct mx_inputs product = {0};
	struct mx_symbol *x = inputs->symbols[0];
	enum prony_status status = mean_of_squares(t, node, inputs, err);

	if (status == PRONY_OK)
		status = next_scalar(t, node, "alpha", "_mul_scalar", a->alpha, inputs, err);
	if (status == PRONY_OK)
		status = next_scalar(t, node, "bias", "_plus_scalar", a->bias, inputs, err);
	if (status == PRONY_OK)
		status = next_scalar(t, node, "beta", "_power_scalar", -a->beta, inputs, err);
	if (status != PRONY_OK)
		return status;
	mx_input(&product, "lhs", x);
	mx_input(&product, "rhs", inputs->symbols[0]);
	return mx_emit(t, node, "elemwise_mul", &none, &product, err);
}

static enum prony_status emit_lrn(struct translation *t, const struct node *node, struct error *err)
{
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	if (status != PRONY_OK)
		return status;
	return t->loss ? emit_composed(t, node, &inputs, err) : emit_own(t, node, &inputs, err);
}

const struct mx_row mx_lrn = {refuse_lrn, emit_lrn};
