/* Writes pools, normalisations, dropout, softmax, losses and Gather. */
#include <math.h>

#include "adapters/xla/emit_internal.h"
#include "graph/sliding_window.h"

/* Returns the windows of a pool over x with a result of shape y; both are N x H x W x C. */
static struct hlo_window pool_window(const struct attributes *a, const struct shape *x,
				     const struct shape *y)
{
	struct hlo_window window = {
		.size = {1, a->kernel[0], a->kernel[1], 1},
		.stride = {1, a->strides[0], a->strides[1], 1},
		.dilation = {1, a->dilations[0], a->dilations[1], 1},
		.low = {0, a->pads[0], a->pads[1], 0},
	};

	for (int i = 0; i < 2; i++)
		window.high[1 + i] = sliding_window_overhang(a, i, x->dims[1 + i], y->dims[1 + i]);
	return window;
}

void emit_max_pool(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input(l, node, 0);
	const struct shape y = emit_lying(l, node->outputs[0]);
	struct hlo_window window = pool_window(&node->attributes, &x.shape, &y);

	emit_output(l, node, 0, hlo_reduce_window(&l->h, "maximum", x, &window));
}

void emit_max_pool_grad(struct emitter *l, const struct node *node)
{
	struct hlo dy = emit_input(l, node, 0), x = emit_input(l, node, 1);
	struct hlo_window window = pool_window(&node->attributes, &x.shape, &dy.shape);

	emit_output(l, node, 0, hlo_select_and_scatter(&l->h, x, dy, &window));
}

/* Divides y by the number of elements that each window averages. */
static struct hlo averaged(struct emitter *l, const struct attributes *a, struct hlo y,
			   const struct shape *x)
{
	for (int i = 0; i < 2; i++) {
		int64_t size = y.shape.dims[1 + i];
		double *shares = arena_array(l->arena, (size_t)size, sizeof(*shares));
		const int axis = 1 + i;

		for (int64_t k = 0; k < size; k++)
			shares[k] = 1 / (double)sliding_window_divisor(a, i, x->dims[1 + i], k);
		y = hlo_binary(
			&l->h, "multiply", y,
			hlo_broadcast(&l->h, hlo_vector(&l->h, shares, size), &axis, &y.shape));
	}
	return y;
}

void emit_average_pool(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input_f32(l, node, 0);
	const struct shape y = emit_lying(l, node->outputs[0]);
	struct hlo_window window = pool_window(&node->attributes, &x.shape, &y);

	emit_output(l, node, 0,
		    averaged(l, &node->attributes, hlo_reduce_window(&l->h, "add", x, &window),
			     &x.shape));
}

/* Each element of x gets the sum over the windows that contain it: dy, spaced by `stride`, is
 * summed over windows. */
void emit_average_pool_grad(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const struct shape x = emit_lying(l, node->outputs[0]);
	struct hlo dy = averaged(l, a, emit_input_f32(l, node, 0), &x);
	struct hlo_window window = {.size = {1, a->kernel[0], a->kernel[1], 1},
				    .stride = {1, 1, 1, 1},
				    .dilation = {1, 1, 1, 1}};
	int64_t low[4] = {0}, high[4] = {0}, between[4] = {0};

	for (int i = 0; i < 2; i++) {
		low[1 + i] = a->kernel[i] - 1 - a->pads[i];
		between[1 + i] = a->strides[i] - 1;
		high[1 + i] = x.dims[1 + i] + a->kernel[i] - 1 - low[1 + i] -
			      (dy.shape.dims[1 + i] - 1) * a->strides[i] - 1;
	}
	dy = hlo_pad(&l->h, dy, 0, low, high, between);
	emit_output(l, node, 0, hlo_reduce_window(&l->h, "add", dy, &window));
}

/* Returns 1 / (number of elements per channel of x). */
static double channel_share(const struct shape *x)
{
	return 1 / (double)(shape_elements(x) / x->dims[emit_channel(x->rank)]);
}

static struct hlo channel_mean(struct emitter *l, struct hlo x)
{
	return hlo_with(&l->h, "multiply", emit_sum_channels(l, x), channel_share(&x.shape));
}

/* 1 / sqrt(variance + epsilon) */
static struct hlo inverse_deviation(struct emitter *l, const struct node *node, struct hlo variance)
{
	return hlo_unary(&l->h, "rsqrt",
			 hlo_with(&l->h, "add", variance, node->attributes.epsilon));
}

void emit_batch_norm(struct emitter *l, const struct node *node)
{
	const struct shape lies = emit_lying(l, node->inputs[0]), *shape = &lies;
	struct hlo_text *h = &l->h;
	struct hlo x = emit_input_f32(l, node, 0), scale = emit_input_f32(l, node, 1), factor;
	struct hlo mean = emit_input_f32(l, node, 3), variance = emit_input_f32(l, node, 4);

	if (l->training)
		mean = channel_mean(l, x);
	x = hlo_binary(h, "subtract", x, emit_channels(l, mean, shape));
	if (l->training)
		variance = channel_mean(l, hlo_binary(h, "multiply", x, x));
	factor = hlo_binary(h, "multiply", scale, inverse_deviation(l, node, variance));
	x = hlo_binary(h, "multiply", x, emit_channels(l, factor, shape));
	x = hlo_binary(h, "add", x, emit_channels(l, emit_input_f32(l, node, 2), shape));
	emit_output(l, node, 0, x);
	emit_output(l, node, 1, mean);
	emit_output(l, node, 2, variance);
}

/* dx = scale / deviation * (dy - mean of dy - z * mean of dy z), where z is x normalised. */
void emit_batch_norm_grad(struct emitter *l, const struct node *node)
{
	const struct shape lies = emit_lying(l, node->inputs[1]), *shape = &lies;
	struct hlo_text *h = &l->h;
	struct hlo dy = emit_input_f32(l, node, 0), x = emit_input_f32(l, node, 1);
	struct hlo inverse = inverse_deviation(l, node, emit_input_f32(l, node, 4));
	struct hlo dbias = emit_sum_channels(l, dy), dscale, factor, z, dx;
	double share = channel_share(shape);

	z = hlo_binary(h, "subtract", x, emit_channels(l, emit_input_f32(l, node, 3), shape));
	dscale = emit_sum_channels(l, hlo_binary(h, "multiply", dy, z));
	dscale = hlo_binary(h, "multiply", dscale, inverse);
	factor = hlo_binary(h, "multiply", hlo_with(h, "multiply", dscale, share), inverse);
	dx = hlo_binary(h, "subtract", dy,
			emit_channels(l, hlo_with(h, "multiply", dbias, share), shape));
	dx = hlo_binary(h, "subtract", dx,
			hlo_binary(h, "multiply", z, emit_channels(l, factor, shape)));
	factor = hlo_binary(h, "multiply", emit_input_f32(l, node, 2), inverse);
	dx = hlo_binary(h, "multiply", dx, emit_channels(l, factor, shape));
	emit_output(l, node, 0, dx);
	emit_output(l, node, 1, dscale);
	emit_output(l, node, 2, dbias);
}

/* A layer normalisation of `value`: its axes in memory order. */
struct layer {
	struct emitter *l;
	int value, first;	    /* `first` is the first normalised axis */
	int order[TENSOR_MAX_RANK]; /* the graph axis at each place in memory order */
	int outer[TENSOR_MAX_RANK]; /* the axes that are not normalised, in memory order */
	struct hlo normal, inverse; /* x normalised; 1 / deviation, broadcast */
};

/* Returns the mean over the normalised axes, broadcast to the shape of the value. */
static struct hlo layer_mean(const struct layer *n, struct hlo x)
{
	int summed[TENSOR_MAX_RANK], count = 0;
	int64_t elements = 1;

	for (int i = 0; i < x.shape.rank; i++) {
		if (n->order[i] < n->first)
			continue;
		summed[count++] = i;
		elements *= x.shape.dims[i];
	}
	x = hlo_with(&n->l->h, "multiply", hlo_reduce(&n->l->h, "add", x, summed, count),
		     1 / (double)elements);
	return emit_spread(n->l, x, n->outer, n->value);
}

static bool subtracts_mean(const struct node *node)
{
	return node->op == OP_LAYER_NORM || node->op == OP_LAYER_NORM_GRAD;
}

/* RMSNormalization has no mean. */
static struct layer layer_of(struct emitter *l, const struct node *node, int value, struct hlo x)
{
	struct layer n = {.l = l, .value = value, .first = (int)node->attributes.axis};
	struct hlo variance;
	int count = 0;

	emit_order(l, value, n.order);
	for (int i = 0; i < x.shape.rank; i++) {
		if (n.order[i] < n.first)
			n.outer[count++] = n.order[i];
	}
	if (subtracts_mean(node))
		x = hlo_binary(&l->h, "subtract", x, layer_mean(&n, x));
	variance = layer_mean(&n, hlo_binary(&l->h, "multiply", x, x));
	n.inverse = inverse_deviation(l, node, variance);
	n.normal = hlo_binary(&l->h, "multiply", x, n.inverse);
	return n;
}

/* Returns scale or bias, broadcast to all rows. */
static struct hlo layer_weight(const struct layer *n, const struct node *node, int i)
{
	int from[TENSOR_MAX_RANK];
	struct hlo weight = emit_input_f32(n->l, node, i);

	emit_order(n->l, node->inputs[i], from);
	for (int k = 0; k < weight.shape.rank; k++)
		from[k] += n->first;
	return emit_spread(n->l, weight, from, n->value);
}

void emit_layer_norm(struct emitter *l, const struct node *node)
{
	struct layer n = layer_of(l, node, node->inputs[0], emit_input_f32(l, node, 0));
	struct hlo y = hlo_binary(&l->h, "multiply", n.normal, layer_weight(&n, node, 1));

	if (node->input_count == 3)
		y = hlo_binary(&l->h, "add", y, layer_weight(&n, node, 2));
	emit_output(l, node, 0, y);
}

/* Sums over the rows and sets output i: the gradient of scale or bias, in its memory order. */
static void give_row_sum(const struct layer *n, const struct node *node, int i, struct hlo x)
{
	int summed[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], count = 0,
										 kept = 0;

	if (i >= node->output_count || node->outputs[i] == VALUE_NONE)
		return;
	for (int k = 0; k < x.shape.rank; k++) {
		if (n->order[k] < n->first)
			summed[count++] = k;
		else
			from[kept++] = n->order[k];
	}
	emit_order(n->l, node->outputs[i], to);
	for (int k = 0; k < kept; k++)
		to[k] += n->first;
	if (count > 0)
		x = hlo_reduce(&n->l->h, "add", x, summed, count);
	emit_output(n->l, node, i, emit_arrange(n->l, x, from, to, kept));
}

/* dx = (g - mean of g - z * mean of g z) / deviation, where g = scale dy and z is x normalised;
 * without the mean of g if there is no mean to subtract. */
void emit_layer_norm_grad(struct emitter *l, const struct node *node)
{
	struct hlo_text *h = &l->h;
	struct hlo dy = emit_input_f32(l, node, 0), g, dx;
	struct layer n = layer_of(l, node, node->inputs[1], emit_input_f32(l, node, 1));

	g = hlo_binary(h, "multiply", dy, layer_weight(&n, node, 2));
	dx = hlo_binary(h, "multiply", n.normal,
			layer_mean(&n, hlo_binary(h, "multiply", g, n.normal)));
	if (subtracts_mean(node))
		g = hlo_binary(h, "subtract", g, layer_mean(&n, g));
	dx = hlo_binary(h, "subtract", g, dx);
	emit_output(l, node, 0, hlo_binary(h, "multiply", dx, n.inverse));
	give_row_sum(&n, node, 1, hlo_binary(h, "multiply", dy, n.normal));
	give_row_sum(&n, node, 2, dy);
}

/* Sums `size` channels around each channel. An even size includes one more channel above it, or
 * below it if more_below. */
static struct hlo sum_around(struct emitter *l, struct hlo x, int64_t size, bool more_below)
{
	int channel = emit_channel(x.shape.rank);
	struct hlo_window window;

	for (int i = 0; i < x.shape.rank; i++) {
		window.size[i] = window.stride[i] = window.dilation[i] = 1;
		window.low[i] = window.high[i] = 0;
	}
	window.size[channel] = size;
	window.low[channel] = more_below ? size / 2 : (size - 1) / 2;
	window.high[channel] = size - 1 - window.low[channel];
	return hlo_reduce_window(&l->h, "add", x, &window);
}

/* bias + alpha / size * sum of squares over the surrounding channels */
static struct hlo lrn_scale(struct emitter *l, const struct attributes *a, struct hlo x)
{
	struct hlo sum = sum_around(l, hlo_binary(&l->h, "multiply", x, x), a->size, false);

	sum = hlo_with(&l->h, "multiply", sum, a->alpha / (double)a->size);
	return hlo_with(&l->h, "add", sum, a->bias);
}

void emit_lrn(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo x = emit_input_f32(l, node, 0), scale = lrn_scale(l, a, x);

	emit_output(l, node, 0,
		    hlo_binary(&l->h, "multiply", x, hlo_with(&l->h, "power", scale, -a->beta)));
}

/* dx = dy scale^-beta - 2 alpha beta / size * x * s, where s is the sum of dy y / scale over the
 * surrounding channels. */
void emit_lrn_grad(struct emitter *l, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct hlo_text *h = &l->h;
	struct hlo dy = emit_input_f32(l, node, 0), x = emit_input_f32(l, node, 1);
	struct hlo y = emit_input_f32(l, node, 2), scale = lrn_scale(l, a, x), through;

	through = hlo_binary(h, "divide", hlo_binary(h, "multiply", dy, y), scale);
	through = hlo_binary(h, "multiply", x, sum_around(l, through, a->size, true));
	through = hlo_with(h, "multiply", through, 2 * a->alpha * a->beta / (double)a->size);
	dy = hlo_binary(h, "multiply", dy, hlo_with(h, "power", scale, -a->beta));
	emit_output(l, node, 0, hlo_binary(h, "subtract", dy, through));
}

/* Reduces x over one axis and broadcasts the result to the shape of x. */
static struct hlo over_axis(struct emitter *l, const char *op, struct hlo x, int axis)
{
	int others[TENSOR_MAX_RANK], count = 0;

	for (int i = 0; i < x.shape.rank; i++)
		if (i != axis)
			others[count++] = i;
	return hlo_broadcast(&l->h, hlo_reduce(&l->h, op, x, &axis, 1), others, &x.shape);
}

/* Returns e^(x - maximum); *sum gets their sum. */
static struct hlo exponentials(struct emitter *l, struct hlo x, int axis, struct hlo *sum)
{
	struct hlo largest = over_axis(l, "maximum", x, axis);

	x = hlo_unary(&l->h, "exponential", hlo_binary(&l->h, "subtract", x, largest));
	*sum = over_axis(l, "add", x, axis);
	return x;
}

void emit_softmax(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input_f32(l, node, 0), sum;

	x = exponentials(l, x, emit_axis(l, node->inputs[0], node->attributes.axis), &sum);
	emit_output(l, node, 0, hlo_binary(&l->h, "divide", x, sum));
}

void emit_softmax_grad(struct emitter *l, const struct node *node)
{
	struct hlo dy = emit_input_f32(l, node, 0), y = emit_input_f32(l, node, 1), sum;

	sum = over_axis(l, "add", hlo_binary(&l->h, "multiply", dy, y),
			emit_axis(l, node->inputs[1], node->attributes.axis));
	emit_output(l, node, 0,
		    hlo_binary(&l->h, "multiply", y, hlo_binary(&l->h, "subtract", dy, sum)));
}

static bool drops(const struct emitter *l)
{
	return l->training && l->recipe->dropout;
}

/* The mask is 1 / (1 - ratio) if the random bits are below (1 - ratio) 2^32, else 0. */
void emit_dropout(struct emitter *l, const struct node *node)
{
	double kept = 1 - node->attributes.ratio;
	struct hlo x = emit_input(l, node, 0), bits, mask;

	if (drops(l)) {
		bits = hlo_random(&l->h, &l->random, &x.shape);
		mask = hlo_compare(&l->h, "LT", bits,
				   hlo_number(&l->h, bits, fmin(kept * 0x1p32, 0xffffffffp0)));
		mask = hlo_select(&l->h, mask, hlo_number(&l->h, x, 1 / kept),
				  hlo_number(&l->h, x, 0));
		emit_output(l, node, 1, mask);
		x = hlo_binary(&l->h, "multiply", x, mask);
	}
	emit_output(l, node, 0, x);
}

void emit_dropout_grad(struct emitter *l, const struct node *node)
{
	struct hlo dx = emit_input(l, node, 0);

	if (drops(l))
		dx = hlo_binary(&l->h, "multiply", dx, emit_input(l, node, 1));
	emit_output(l, node, 0, dx);
}

/* Returns the labels, one per row of the logits. */
static struct hlo row_labels(struct emitter *l, const struct node *node)
{
	struct hlo labels = emit_value_as(l, node->inputs[1], HLO_I32);
	struct shape flat = {.rank = 1, .dims = {shape_elements(&labels.shape)}};

	return hlo_reshape(&l->h, labels, &flat);
}

/* Whether labels can be invalid. One-dimensional labels are all valid: xla_feed rejects others. */
static bool ignores(const struct emitter *l, const struct node *node)
{
	return emit_shape(l, node->inputs[1])->rank != 1;
}

/* Returns 1 for each row with a valid label, else 0; *count gets their sum. */
static struct hlo valid_rows(struct emitter *l, const struct node *node, struct hlo *count)
{
	static const int rows = 0;
	struct hlo labels = row_labels(l, node), valid;

	valid = hlo_compare(&l->h, "GE", labels, hlo_number(&l->h, labels, 0));
	valid = hlo_convert(&l->h, valid, HLO_F32);
	*count = hlo_reduce(&l->h, "add", valid, &rows, 1);
	return valid;
}

/* Returns where column == label. */
static struct hlo is_label(struct emitter *l, const struct node *node, const struct shape *shape)
{
	static const int rows = 0;
	struct hlo labels = row_labels(l, node);

	return hlo_compare(&l->h, "EQ", hlo_iota(&l->h, HLO_I32, shape, 1),
			   hlo_broadcast(&l->h, labels, &rows, shape));
}

/* The mean over the valid labels of log(sum of e^logit) - (logit of the label), with the largest
 * logit subtracted from all logits. */
void emit_cross_entropy(struct emitter *l, const struct node *node)
{
	static const int all[] = {0, 1};
	struct hlo_text *h = &l->h;
	struct hlo x = emit_input_f32(l, node, 0), sum, loss, valid;

	x = hlo_binary(h, "subtract", x, over_axis(l, "maximum", x, 1));
	sum = over_axis(l, "add", hlo_unary(h, "exponential", x), 1);
	loss = hlo_binary(h, "subtract", hlo_unary(h, "log", sum), x);
	loss = hlo_select(h, is_label(l, node, &x.shape), loss, hlo_number(h, loss, 0));
	loss = hlo_reduce(h, "add", loss, all, 2);
	if (ignores(l, node)) {
		valid_rows(l, node, &valid);
		loss = hlo_binary(h, "divide", loss, valid);
	} else {
		loss = hlo_with(h, "multiply", loss, 1 / (double)x.shape.dims[0]);
	}
	emit_output(l, node, 0, loss);
}

void emit_cross_entropy_grad(struct emitter *l, const struct node *node)
{
	struct hlo_text *h = &l->h;
	static const int rows = 0;
	struct hlo x = emit_input_f32(l, node, 0), sum, one, share;

	x = exponentials(l, x, 1, &sum);
	one = hlo_convert(h, is_label(l, node, &x.shape), HLO_F32);
	x = hlo_binary(h, "subtract", hlo_binary(h, "divide", x, sum), one);
	if (ignores(l, node)) {
		share = valid_rows(l, node, &sum);
		share = hlo_binary(h, "divide", share, hlo_broadcast(h, sum, NULL, &share.shape));
		x = hlo_binary(h, "multiply", x, hlo_broadcast(h, share, &rows, &x.shape));
	} else {
		x = hlo_with(h, "multiply", x, 1 / (double)x.shape.dims[0]);
	}
	emit_output(l, node, 0, x);
}

void emit_half_squares(struct emitter *l, const struct node *node)
{
	static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct hlo x = emit_input_f32(l, node, 0);

	x = hlo_reduce(&l->h, "add", hlo_binary(&l->h, "multiply", x, x), all, x.shape.rank);
	emit_output(l, node, 0, hlo_with(&l->h, "multiply", x, 0.5));
}

void emit_half_squares_grad(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0, emit_input(l, node, 0));
}

/* The result of Gather is computed in graph order. Tables and indices of four dimensions are stored
 * in another order and are refused. */
void emit_gather(struct emitter *l, const struct node *node)
{
	struct hlo indices = emit_value_as(l, node->inputs[1], HLO_I32);
	struct hlo y = hlo_rows(&l->h, emit_input(l, node, 0), indices);
	int order[TENSOR_MAX_RANK];

	emit_order(l, node->outputs[0], order);
	emit_output(l, node, 0, hlo_transpose(&l->h, y, order));
}

void emit_gather_grad(struct emitter *l, const struct node *node)
{
	struct hlo dy = emit_input_f32(l, node, 0);
	struct hlo indices = emit_value_as(l, node->inputs[1], HLO_I32);
	const struct shape table = emit_lying(l, node->outputs[0]);
	int back[TENSOR_MAX_RANK];

	for (int i = 0; i < dy.shape.rank; i++)
		back[i] = emit_axis(l, node->inputs[0], i);
	dy = hlo_transpose(&l->h, dy, back);
	emit_output(l, node, 0, hlo_add_rows(&l->h, dy, indices, &table));
}
