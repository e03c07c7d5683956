/* Translates local response normalisation. Evaluation uses MXNet's own operator. In training its
 * gradient is wrong between convolutions or pools (docs/frameworks-c.md), so the function is
 * composed of operators with correct gradients: a mean over neighbouring channels is a pool over
 * channels. */
#include "adapters/mxnet/mxnet_translate_internal.h"

void mx_refuse_lrn(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (node->attributes.size % 2 == 0)
		mx_refuse(reasons, node, "the size must be odd");
	if (mx_shape(graph, node->inputs[0])->rank != 4)
		mx_refuse(reasons, node, "the input has no height and width");
}

/* The mean of the squares of `size` channels around each channel, with zeros beyond the first and
 * the last. */
static struct mx_symbol *mean_of_squares(struct translation *t, const struct node *node)
{
	const struct shape *shape = mx_shape(t->graph, node->inputs[0]);
	const int64_t *d = shape->dims, flat[4] = {d[0], 1, d[1], d[2] * d[3]};
	const long long size = node->attributes.size;
	struct mx_symbol *x = mx_op(t, "squares", "square", MX_IN(mx_in(t, 0)), NULL);

	x = mx_op(t, "channels", "Reshape", &x, 1, mx_text(t, "shape=%s", mx_list(flat, 4).text));
	x = mx_op(t, "mean", "Pooling", &x, 1,
		  mx_text(t,
			  "pool_type=avg count_include_pad=True kernel=(%lld,1) pad=(%lld,0) "
			  "stride=(1,1)",
			  size, size / 2));
	return mx_op(t, "places", "Reshape", &x, 1, mx_text(t, "shape=%s", mx_list(d, 4).text));
}

/* MXNet's alpha is divided by the size, as in ONNX (src/operator/nn/lrn-inl.h). The composed form
 * is x (bias + alpha mean)^-beta. */
struct mx_symbol *mx_lrn(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct mx_symbol *scale;

	if (!t->loss)
		return mx_unary(t, "LRN",
				mx_text(t, "alpha=%.9g beta=%.9g knorm=%.9g nsize=%lld", a->alpha,
					a->beta, a->bias, (long long)a->size));
	scale = mx_scalar(t, "alpha", "_mul_scalar", mean_of_squares(t, node), a->alpha);
	scale = mx_scalar(t, "bias", "_plus_scalar", scale, a->bias);
	scale = mx_scalar(t, "beta", "_power_scalar", scale, -a->beta);
	return mx_op(t, "", "elemwise_mul", MX_IN(mx_in(t, 0), scale), NULL);
}
