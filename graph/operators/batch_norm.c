/* BatchNormalization and its gradient. */
#include "graph/operators/operator.h"

#include <math.h>

static const struct attribute_row batch_norm_attributes[] = {
	{ATTRIBUTE("epsilon", REAL, epsilon, 1e-5)},
	{ATTRIBUTE("momentum", REAL, momentum, 0.9)},
	{.name = NULL},
};

/* x has batch and channels; all other inputs have one number per channel. */
static enum prony_status check_channels(const struct graph *graph, const struct node *node,
					struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	enum prony_status status = node_need_float(graph, node, 0, err);

	if (status != PRONY_OK)
		return status;
	if (x->rank < 2)
		return node_error(node, err,
				  "its input has fewer than 2 dimensions, so no channels");
	for (int i = 1; i < 5; i++) {
		status = node_need_rank(graph, node, i, 1, err);
		if (status != PRONY_OK)
			return status;
		if (node_input_shape(graph, node, i)->dims[0] != x->dims[1])
			return node_error(
				node, err,
				"input %d ('%s') has %lld elements, but x has %lld channels", i,
				graph->values[node->inputs[i]].name,
				(long long)node_input_shape(graph, node, i)->dims[0],
				(long long)x->dims[1]);
	}
	return PRONY_OK;
}

static enum prony_status batch_norm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;
	enum prony_status status = check_channels(graph, node, err);
	struct shape channels;

	if (status != PRONY_OK)
		return status;
	/* Training writes these. */
	for (int i = 3; i < 5; i++) {
		const struct value *state = &graph->values[node->inputs[i]];

		if (state->kind != VALUE_STATE)
			return node_error(node, err, "'%s' must be a state", state->name);
	}
	if (node->inputs[3] == node->inputs[4])
		return node_error(node, err, "mean and variance must be two different states");
	if (!(a->epsilon > 0))
		return node_error(node, err, "epsilon is %g; it must be positive", a->epsilon);
	if (!(a->momentum >= 0 && a->momentum <= 1))
		return node_error(node, err, "momentum is %g; it must be between 0 and 1",
				  a->momentum);
	channels = *node_input_shape(graph, node, 1);
	status = node_copy_shape(graph, node, err);
	for (int i = 1; status == PRONY_OK && i < 3; i++)
		status = node_set_output(graph, node, i, DTYPE_F32, &channels, err);
	return status;
}

static enum prony_status batch_norm_backward(struct graph *graph, const struct node *node,
					     struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1],
			      node->outputs[1], node->outputs[2]};

	if (node->output_count < 3 || inputs[3] == VALUE_NONE || inputs[4] == VALUE_NONE)
		return node_error(
			node, err,
			"training needs its outputs for mean and variance, which are missing");
	return backward_node(graph, node, OP_BATCH_NORM_GRAD, inputs, 5, 0, 3, err);
}

/* The mean of one channel, and the mean of the squared differences from it. */
static void channel_moments(const double *x, const struct axis_split *s, int64_t channel,
			    double *mean, double *variance)
{
	double count = (double)(s->outer * s->inner), sum = 0, squares = 0;

	for (int64_t n = 0; n < s->outer; n++) {
		const double *plane = x + (n * s->size + channel) * s->inner;

		for (int64_t i = 0; i < s->inner; i++)
			sum += plane[i];
	}
	*mean = sum / count;
	for (int64_t n = 0; n < s->outer; n++) {
		const double *plane = x + (n * s->size + channel) * s->inner;

		for (int64_t i = 0; i < s->inner; i++)
			squares += (plane[i] - *mean) * (plane[i] - *mean);
	}
	*variance = squares / count;
}

/* Adds the rounding of two sums over the channel: that of the numbers, for the mean, and that of
 * squares, for the variance. */
static void round_moments(const struct kernel_call *call, int64_t c, int64_t count, double *mean,
			  double *variance)
{
	double n = (double)count, squares = n * (*variance + *mean * *mean);

	*mean += call->hooks->round_sum(call, 1, c, count, n * *mean, sqrt(squares)) / n;
	*variance += call->hooks->round_sum(call, 2, c, count, n * *variance, 0) / n;
}

/* The parts of the batch that have their own statistics. */
static int64_t parts_of(const struct kernel_call *call)
{
	int64_t ranks = call->node->attributes.ranks;

	return call->training && ranks > 1 ? ranks : 1;
}

/* One channel of one part, which begins at element `first` and has the samples of `s`. */
static void normalise_part(const struct kernel_call *call, int64_t c, struct axis_split s,
			   int64_t first)
{
	const double *x = kernel_input(call, 0) + first;
	double *y = kernel_output(call, 0) + first, bias = kernel_input(call, 2)[c];
	double mean = kernel_input(call, 3)[c], variance = kernel_input(call, 4)[c];

	if (call->training)
		channel_moments(x, &s, c, &mean, &variance);
	if (call->training && call->rounds)
		round_moments(call, c, s.outer * s.inner, &mean, &variance);
	double factor = kernel_input(call, 1)[c] / sqrt(variance + call->node->attributes.epsilon);
	if (call->rounds) {
		factor += call->hooks->round_value(call, 4, c, factor);
		bias += call->hooks->round_value(call, 5, c, mean * factor);
	}
	for (int64_t n = 0; n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = 0; i < s.inner; i++)
			y[at + i] = (x[at + i] - mean) * factor + bias;
		for (int64_t i = at; call->rounds && i < at + s.inner; i++)
			y[i] += call->hooks->round_value(call, 0, first + i, x[i] * factor);
	}
	if (kernel_output(call, 1))
		kernel_output(call, 1)[c] = mean;
	if (kernel_output(call, 2))
		kernel_output(call, 2)[c] = variance;
}

/* The statistics that remain are those of the first part. */
static void batch_norm_channel(void *context, int64_t c)
{
	const struct kernel_call *call = context;
	struct axis_split s = split_axis(kernel_input_shape(call, 0), 1);
	int64_t parts = parts_of(call);

	s.outer /= parts;
	for (int64_t part = parts - 1; part >= 0; part--)
		normalise_part(call, c, s, part * s.outer * s.size * s.inner);
}

static void batch_norm_compute(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 0);
	struct kernel_call shared = *call;

	kernel_parts(x->dims[1], shape_elements(x), batch_norm_channel, &shared);
}

/* With z = (x - mean) / sqrt(var + eps), y = scale z + bias, and sums over the n elements of a
 * channel: dscale = sum dy z, dbias = sum dy, dx = scale / sqrt(var + eps) (dy - dbias / n - z
 * dscale / n), because mean and variance depend on x (Ioffe and Szegedy 2015, arXiv 1502.03167). */
static void part_gradient(const struct kernel_call *call, int64_t c, struct axis_split s,
			  int64_t first)
{
	const double *dy = kernel_input(call, 0) + first, *x = kernel_input(call, 1) + first;
	double *dx = kernel_output(call, 0), count = (double)(s.outer * s.inner);
	double mean = kernel_input(call, 3)[c], variance = kernel_input(call, 4)[c];
	double dscale = 0, dbias = 0, squares[2] = {0};

	if (first > 0)
		channel_moments(x, &s, c, &mean, &variance);
	double inverse = 1 / sqrt(variance + call->node->attributes.epsilon);

	for (int64_t n = 0; n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = at; i < at + s.inner; i++) {
			double product = dy[i] * (x[i] - mean) * inverse;

			dscale += product;
			dbias += dy[i];
			squares[0] += product * product;
			squares[1] += dy[i] * dy[i];
		}
	}
	double factor = kernel_input(call, 2)[c] * inverse;
	if (call->rounds) {
		int64_t terms = s.outer * s.inner;

		dscale += call->hooks->round_sum(call, 1, c, terms, dscale, sqrt(squares[0]));
		dbias += call->hooks->round_sum(call, 2, c, terms, dbias, sqrt(squares[1]));
	}
	dx = dx ? dx + first : NULL;
	for (int64_t n = 0; dx && n < s.outer; n++) {
		int64_t at = (n * s.size + c) * s.inner;

		for (int64_t i = at; i < at + s.inner; i++)
			dx[i] = factor *
				(dy[i] - dbias / count - (x[i] - mean) * inverse * dscale / count);
		for (int64_t i = at; call->rounds && i < at + s.inner; i++)
			dx[i] += call->hooks->round_value(call, 0, first + i, factor * dy[i]);
	}
	if (kernel_output(call, 1))
		kernel_output(call, 1)[c] = dscale + (first > 0 ? kernel_output(call, 1)[c] : 0);
	if (kernel_output(call, 2))
		kernel_output(call, 2)[c] = dbias + (first > 0 ? kernel_output(call, 2)[c] : 0);
}

static void batch_norm_grad_channel(void *context, int64_t c)
{
	const struct kernel_call *call = context;
	struct axis_split s = split_axis(kernel_input_shape(call, 1), 1);
	int64_t parts = parts_of(call);

	s.outer /= parts;
	for (int64_t part = 0; part < parts; part++)
		part_gradient(call, c, s, part * s.outer * s.size * s.inner);
}

static void batch_norm_grad_compute(const struct kernel_call *call)
{
	const struct shape *x = kernel_input_shape(call, 1);
	struct kernel_call shared = *call;

	kernel_parts(x->dims[1], shape_elements(x), batch_norm_grad_channel, &shared);
}

/* clang-format off */
const struct operator_row row_BATCH_NORM = {
	ARITY(5, 5, 3), .attributes = batch_norm_attributes, .statistics = 3,
	.infer = batch_norm_infer, .backward = batch_norm_backward,
	.compute = batch_norm_compute, .terms = terms_none,
	.samples = samples_beside_channels, .joins_box = true, .short_name = "BatchNorm",
	.training_outputs = "statistics",
};

const struct operator_row row_BATCH_NORM_GRAD = {
	GRADIENT(5, 3, batch_norm_attributes), .leaves_out = true,
	.compute = batch_norm_grad_compute, .terms = terms_none,
};
/* clang-format on */
