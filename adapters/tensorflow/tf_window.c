/* Translates convolutions and pools. */
#include "adapters/tensorflow/tf_translate_internal.h"

#include <float.h>
#include <string.h>

#include "graph/sliding_window.h"

/* Padding of the input: TensorFlow's name for it, or explicit zeros before the operation, as in
 * Keras's own models. Conv2D accepts explicit_paddings, but its gradients then do not use oneDNN: a
 * convolution of ResNet-50 is 1.3 times as slow in fp32, 120 times in bf16 (docs/measured). */
struct padding {
	const char *word; /* SAME or VALID */
	bool before;	  /* pad first, then use VALID */
	int64_t pads[4];  /* top, left, bottom, right */
};

/* Height and width of an image in memory order. */
static const int64_t *sides(const struct tf_translation *t, const struct shape *lying)
{
	return &lying->dims[t->last ? 1 : 2];
}

/*
 * Returns how far the windows reach beyond x, and whether TensorFlow has a name for this padding.
 */
static struct padding padding_of(const struct node *node, const struct shape *x,
				 const struct shape *y)
{
	const struct attributes *a = &node->attributes;
	struct padding p = {.word = "VALID"};
	bool same = true, valid = true;

	for (int i = 0; i < 2; i++) {
		int64_t in = x->dims[2 + i], out = y->dims[2 + i];
		int64_t reach =
			(out - 1) * a->strides[i] + (a->kernel[i] - 1) * a->dilations[i] + 1 - in;
		int64_t both = reach > 0 ? reach : 0;

		p.pads[i] = a->pads[i];
		p.pads[i + 2] = sliding_window_overhang(a, i, in, out);
		valid = valid && p.pads[i] == 0 && p.pads[i + 2] == 0;
		same = same && out == (in + a->strides[i] - 1) / a->strides[i] &&
		       p.pads[i] == both / 2 && p.pads[i + 2] == both - both / 2;
	}
	if (!valid && same)
		p.word = "SAME";
	p.before = !valid && !same;
	return p;
}

/* The value that the windows of a node cover: the output of a transposed convolution, which is the
 * gradient of a convolution. */
static int covered(const struct node *forward)
{
	return forward->op == OP_CONV_TRANSPOSE ? forward->outputs[0] : forward->inputs[0];
}

static struct padding node_padding(const struct tf_translation *t, const struct node *forward)
{
	bool transposed = forward->op == OP_CONV_TRANSPOSE;
	int windows = transposed ? forward->inputs[0] : forward->outputs[0];

	return padding_of(forward, tf_graph_shape(t, covered(forward)), tf_graph_shape(t, windows));
}

/* An attribute of four numbers in memory order, with the two given ones for height and width. */
static struct tf_attribute spatial(const struct tf_translation *t, const char *name,
				   const int64_t *two)
{
	const int64_t last[] = {1, two[0], two[1], 1}, first[] = {1, 1, two[0], two[1]};

	return tf_ints(name, t->last ? last : first, 4);
}

/* Pads height and width of an image in memory order. */
static struct tf_output pad_sides(struct tf_translation *t, struct tf_output x, const int64_t *pads,
				  double value)
{
	int64_t all[8] = {0};
	int at = t->last ? 1 : 2;

	for (int i = 0; i < 2; i++) {
		all[at + i] = pads[i];
		all[4 + at + i] = pads[i + 2];
	}
	return tf_pad(t, x, all, 4, value);
}

/* Removes the padding that pad_sides added. */
static struct tf_output crop_sides(struct tf_translation *t, struct tf_output x,
				   const int64_t *pads, const struct shape *size)
{
	int64_t begin[4] = {0};
	int at = t->last ? 1 : 2;

	begin[at] = pads[0];
	begin[at + 1] = pads[1];
	return tf_slice(&t->e, x, begin, size);
}

static struct shape padded_shape(const struct tf_translation *t, struct shape lying,
				 const int64_t *pads)
{
	int at = t->last ? 1 : 2;

	for (int i = 0; i < 2; i++)
		lying.dims[at + i] += pads[i] + pads[i + 2];
	return lying;
}

bool tf_is_depthwise(const struct graph *graph, const struct node *conv)
{
	int64_t channels = graph->values[covered(conv)].shape.dims[1];

	return conv->attributes.group > 1 && conv->attributes.group == channels;
}

/* Appends a convolution, or a gradient of one, with the attributes of the forward node. */
static struct tf_output convolve(struct tf_translation *t, const struct node *forward,
				 const char *type, const struct tf_output *inputs, int count)
{
	const struct attributes *a = &forward->attributes;
	struct padding p = node_padding(t, forward);

	return tf_op(&t->e, type, inputs, count,
		     TF_WITH(TF_TEXT("data_format", tf_data_format(t)),
			     spatial(t, "strides", a->strides), TF_TEXT("padding", p.word),
			     spatial(t, "dilations", a->dilations)));
}

/* Splits x into equal parts along an axis; one part is x itself. */
static void split(struct tf_translation *t, struct tf_output x, int axis, int64_t parts,
		  struct tf_output *out)
{
	struct tf_output first = x;

	if (parts > 1)
		first = tf_op(&t->e, "Split", TF_IN(tf_index(&t->e, axis), x),
			      TF_WITH(TF_INT("num_split", parts)));
	for (int i = 0; i < parts; i++)
		out[i] = tf_nth(first, parts > 1 ? i : x.index);
}

/* Returns the number of parallel convolutions. Groups are separate convolutions, as in TensorFlow's
 * own AlexNet, because its CPU kernel has no groups. */
static int64_t parts_of(const struct tf_translation *t, const struct node *conv)
{
	return tf_is_depthwise(t->graph, conv) ? 1 : conv->attributes.group;
}

static struct tf_output *part_array(struct tf_translation *t, int64_t parts)
{
	return arena_array(t->arena, (size_t)parts, sizeof(struct tf_output));
}

static int channel_axis(const struct tf_translation *t)
{
	return t->last ? 3 : 1;
}

/* Returns x padded for the convolution that the node is, or of which it is the gradient; keeps it.
 */
static struct tf_output padded(struct tf_translation *t, const struct node *conv,
			       struct tf_output x)
{
	struct padding p = node_padding(t, conv);
	struct tf_output *kept = tf_kept(t, conv);

	if (!kept->operation)
		*kept = p.before ? pad_sides(t, x, p.pads, 0) : x;
	return *kept;
}

/* Returns x, padded, convolved with w. */
static struct tf_output convolved(struct tf_translation *t, const struct node *conv,
				  struct tf_output all, struct tf_output weight)
{
	int64_t parts = parts_of(t, conv);
	struct tf_output *x = part_array(t, parts), *w = part_array(t, parts);
	const char *type = tf_is_depthwise(t->graph, conv) ? "DepthwiseConv2dNative" : "Conv2D";

	split(t, all, channel_axis(t), parts, x);
	split(t, weight, 3, parts, w);
	for (int64_t i = 0; i < parts; i++)
		x[i] = convolve(t, conv, type, TF_IN(x[i], w[i]));
	return tf_join(t, x, parts, channel_axis(t));
}

static void give_biased(struct tf_translation *t, const struct node *node, struct tf_output y)
{
	if (node->input_count > 2 && node->inputs[2] != VALUE_NONE)
		y = tf_op(&t->e, "BiasAdd", TF_IN(y, tf_take(t, node, 2)),
			  TF_WITH(TF_TEXT("data_format", tf_data_format(t))));
	tf_give(t, node, 0, y);
}

void tf_conv(struct tf_translation *t, const struct node *node)
{
	struct tf_output x = padded(t, node, tf_take(t, node, 0));

	give_biased(t, node, convolved(t, node, x, tf_take(t, node, 1)));
}

void tf_conv_transpose_grad_input(struct tf_translation *t, const struct node *node)
{
	const struct node *conv = tf_forward(t, node);
	struct tf_output dy = padded(t, conv, tf_take(t, node, 0));

	tf_give(t, node, 0, convolved(t, conv, dy, tf_take(t, node, 1)));
}

/* The shape of a part's weight: HWIO, or HWI and multiplier. */
static struct shape weight_shape(const struct tf_translation *t, const struct node *conv)
{
	const int64_t *w = tf_graph_shape(t, conv->inputs[1])->dims;
	int64_t group = conv->attributes.group;
	struct shape shape = {.rank = 4, .dims = {w[2], w[3], w[1], w[0] / group}};

	if (tf_is_depthwise(t->graph, conv))
		shape.dims[2] = group;
	return shape;
}

/* Sets output 0: the gradient of the weight of a convolution of x, padded, with that of its result.
 * Output 1 is the sum over input 1, the gradient of the bias. */
static void give_weight_gradient(struct tf_translation *t, const struct node *node,
				 struct tf_output all, struct tf_output gradient)
{
	const struct node *conv = tf_forward(t, node);
	bool depthwise = tf_is_depthwise(t->graph, conv);
	struct shape shape = weight_shape(t, conv);
	int64_t parts = parts_of(t, conv);
	struct tf_output *x = part_array(t, parts), *dy = part_array(t, parts);

	split(t, all, channel_axis(t), parts, x);
	split(t, gradient, channel_axis(t), parts, dy);
	for (int64_t i = 0; i < parts; i++)
		x[i] = convolve(t, conv,
				depthwise ? "DepthwiseConv2dNativeBackpropFilter"
					  : "Conv2DBackpropFilter",
				TF_IN(x[i], tf_dims(&t->e, &shape), dy[i]));
	t->values[node->outputs[0]] = tf_join(t, x, parts, 3);
	if (node->output_count > 1 && node->outputs[1] != VALUE_NONE)
		t->values[node->outputs[1]] =
			tf_op(&t->e, "BiasAddGrad", TF_IN(tf_take(t, node, 1)),
			      TF_WITH(TF_TEXT("data_format", tf_data_format(t))));
}

void tf_conv_grad_weight(struct tf_translation *t, const struct node *node)
{
	const struct node *conv = tf_forward(t, node);

	give_weight_gradient(t, node, padded(t, conv, tf_take(t, conv, 0)), tf_take(t, node, 1));
}

void tf_conv_transpose_grad_weight(struct tf_translation *t, const struct node *node)
{
	const struct node *conv = tf_forward(t, node);

	give_weight_gradient(t, node, padded(t, conv, tf_take(t, node, 1)), tf_take(t, node, 0));
}

/* Returns the gradient of the input of a convolution, without its padding. */
static struct tf_output convolved_back(struct tf_translation *t, const struct node *conv,
				       struct tf_output gradient, struct tf_output weight)
{
	bool depthwise = tf_is_depthwise(t->graph, conv);
	struct padding p = node_padding(t, conv);
	struct shape x = tf_lying_shape(t, covered(conv)), size = x;
	int64_t parts = parts_of(t, conv);
	struct tf_output *dy = part_array(t, parts), *w = part_array(t, parts), dx;

	if (p.before)
		size = padded_shape(t, x, p.pads);
	size.dims[channel_axis(t)] /= parts;
	split(t, gradient, channel_axis(t), parts, dy);
	split(t, weight, 3, parts, w);
	for (int64_t i = 0; i < parts; i++)
		dy[i] = convolve(t, conv,
				 depthwise ? "DepthwiseConv2dNativeBackpropInput"
					   : "Conv2DBackpropInput",
				 TF_IN(tf_dims(&t->e, &size), w[i], dy[i]));
	dx = tf_join(t, dy, parts, channel_axis(t));
	return p.before ? crop_sides(t, dx, p.pads, &x) : dx;
}

void tf_conv_grad_input(struct tf_translation *t, const struct node *node)
{
	tf_give(t, node, 0,
		convolved_back(t, tf_forward(t, node), tf_take(t, node, 0), tf_take(t, node, 1)));
}

void tf_conv_transpose(struct tf_translation *t, const struct node *node)
{
	const int64_t *w = tf_graph_shape(t, node->inputs[1])->dims;

	give_biased(t, node, convolved_back(t, node, tf_take(t, node, 0), tf_take(t, node, 1)));
	if (t->e.macs >= 0)
		t->e.macs +=
			shape_elements(tf_graph_shape(t, node->inputs[0])) * w[1] * w[2] * w[3];
}

static struct tf_output pool(struct tf_translation *t, const struct node *forward, const char *type,
			     const char *padding, const struct tf_output *inputs, int count)
{
	return tf_op(&t->e, type, inputs, count,
		     TF_WITH(TF_TEXT("data_format", tf_data_format(t)),
			     spatial(t, "ksize", forward->attributes.kernel),
			     spatial(t, "strides", forward->attributes.strides),
			     TF_TEXT("padding", padding)));
}

/* Keeps the input, padded if TensorFlow has no name for the padding. The padding value is never the
 * maximum. */
void tf_max_pool(struct tf_translation *t, const struct node *node)
{
	struct padding p = node_padding(t, node);
	struct tf_output x = tf_take(t, node, 0);

	if (p.before)
		x = pad_sides(t, x, p.pads, t->type == TF_TYPE_FLOAT ? (double)-FLT_MAX : -3e38);
	*tf_kept(t, node) = x;
	tf_give(t, node, 0, pool(t, node, "MaxPool", p.word, TF_IN(x)));
}

void tf_max_pool_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	struct padding p = node_padding(t, forward);
	struct shape x = tf_lying_shape(t, forward->inputs[0]);
	struct tf_output dx =
		pool(t, forward, "MaxPoolGrad", p.word,
		     TF_IN(*tf_kept(t, forward), tf_take(t, node, 2), tf_take(t, node, 0)));

	tf_give(t, node, 0, p.before ? crop_sides(t, dx, p.pads, &x) : dx);
}

/* Returns a correction factor per window. TensorFlow divides by the number of elements inside x
 * (SAME), or by the whole window after explicit padding. Where the graph needs another divisor, the
 * result is multiplied by this factor. */
static struct tf_output correction(struct tf_translation *t, const struct node *node,
				   struct tf_output like)
{
	const struct attributes *a = &node->attributes;
	const struct shape *x = tf_graph_shape(t, node->inputs[0]);
	struct shape shape = tf_lying_shape(t, node->outputs[0]);
	int64_t height = sides(t, &shape)[0], width = sides(t, &shape)[1];
	float *factors = arena_array(t->arena, (size_t)(height * width), sizeof(factors[0]));

	for (int64_t i = 0; i < height * width; i++)
		factors[i] = (float)(a->kernel[0] * a->kernel[1]) /
			     (float)(sliding_window_divisor(a, 0, x->dims[2], i / width) *
				     sliding_window_divisor(a, 1, x->dims[3], i % width));
	shape.dims[0] = shape.dims[channel_axis(t)] = 1;
	return tf_numbers(&t->e, like, &shape, factors);
}

/* The padding name that gives exactly this average; NULL if the input must be padded and the result
 * corrected. */
static const char *average_word(const struct tf_translation *t, const struct node *node)
{
	struct padding p = node_padding(t, node);

	if (p.before || (strcmp(p.word, "SAME") == 0 && node->attributes.count_include_pad))
		return NULL;
	return p.word;
}

void tf_average_pool(struct tf_translation *t, const struct node *node)
{
	const char *word = average_word(t, node);
	struct padding p = node_padding(t, node);
	struct tf_output x = tf_take(t, node, 0), y;

	if (!word)
		x = pad_sides(t, x, p.pads, 0);
	y = pool(t, node, "AvgPool", word ? word : "VALID", TF_IN(x));
	tf_give(t, node, 0, word ? y : tf_binary(&t->e, "Mul", y, correction(t, node, y)));
}

void tf_average_pool_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *forward = tf_forward(t, node);
	const char *word = average_word(t, forward);
	struct padding p = node_padding(t, forward);
	struct shape x = tf_lying_shape(t, forward->inputs[0]);
	struct shape size = word ? x : padded_shape(t, x, p.pads);
	struct tf_output dy = tf_take(t, node, 0), dx;

	if (!word)
		dy = tf_binary(&t->e, "Mul", dy, correction(t, forward, dy));
	dx = pool(t, forward, "AvgPoolGrad", word ? word : "VALID",
		  TF_IN(tf_dims(&t->e, &size), dy));
	tf_give(t, node, 0, word ? dx : crop_sides(t, dx, p.pads, &x));
}
