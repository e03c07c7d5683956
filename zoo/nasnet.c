/* NASNet-A mobile. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* NASNet-A mobile, 4 @ 1056 (Zoph et al. 2017, arXiv 1707.07012, figure 4), operator by operator as
 * keras.applications builds it. A cell reads the output `x` of the cell before and `p` of the one
 * before that. */
enum { FILTERS = 44, REPEATS = 4 };

static const double epsilon = 1e-3, momentum = 0.9997;

static int bn(struct builder *b, const char *cell, const char *layer, int x)
{
	return build_batch_norm(b, layer_name(b, cell, layer), x, epsilon, momentum);
}

static int relu(struct builder *b, const char *cell, const char *layer, int x)
{
	return build_relu(b, layer_name(b, cell, layer), x);
}

static int pointwise(struct builder *b, const char *cell, const char *layer, int x,
		     int64_t channels)
{
	return build_conv_window(b, layer_name(b, cell, layer), x, channels,
				 &(struct window){.kernel = {1, 1}}, 1, false);
}

/* The 1x1 convolution at the start of a cell. */
static int relu_conv_bn(struct builder *b, const char *cell, const char *name, int x,
			int64_t channels)
{
	name = layer_name(b, cell, name);
	x = relu(b, name, "relu", x);
	x = pointwise(b, name, "conv", x, channels);
	return bn(b, name, "bn", x);
}

/*
 * The padding of `same`, and of Keras' correct_pad for stride 2: an odd row is added at the end.
 */
static struct window same_window(struct builder *b, int x, int64_t kernel, int64_t stride)
{
	struct window window = window_square(kernel, stride, kernel / 2);

	if (stride == 2 && b->error.code == PRONY_OK)
		for (int i = 0; i < 2; i++)
			window.pads[i] -= b->graph->values[x].shape.dims[2 + i] % 2 == 0;
	return window;
}

/* ReLU, depthwise convolution, 1x1 convolution, batch normalisation. */
static int separable_half(struct builder *b, const char *name, int x, int64_t channels,
			  const struct window *window)
{
	/* Keeps the sums from growing. The He fill does not, because not every layer follows a
	 * ReLU; fixed statistics do not either. */
	const double scale = 0.6;
	int64_t in;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	in = b->graph->values[x].shape.dims[1];
	x = relu(b, name, "relu", x);
	x = build_conv_window(b, layer_name(b, name, "depthwise"), x, in, window, in, false);
	x = pointwise(b, name, "pointwise", x, channels);
	return build_batch_norm_scaled(b, layer_name(b, name, "bn"), x, epsilon, momentum, scale);
}

/* Two separable convolutions; the first has the stride. */
static int separable(struct builder *b, const char *cell, const char *name, int x, int64_t channels,
		     int64_t kernel, int64_t stride)
{
	struct window first = same_window(b, x, kernel, stride);
	struct window second = window_square(kernel, 1, kernel / 2);

	name = layer_name(b, cell, name);
	x = separable_half(b, layer_name(b, name, "1"), x, channels, &first);
	return separable_half(b, layer_name(b, name, "2"), x, channels, &second);
}

static int average_same(struct builder *b, const char *cell, const char *layer, int x)
{
	struct window same = window_square(3, 1, 1);

	return build_average_pool(b, layer_name(b, cell, layer), x, &same, false);
}

/* Halves p: takes every second pixel, and concatenates every second pixel one further down and
 * right, with zeros outside the image. */
static int factorised_reduction(struct builder *b, const char *cell, int p, int64_t channels)
{
	static const int64_t behind[8] = {0, 0, 0, 0, 0, 0, 1, 1};
	struct window every_second = window_square(1, 2, 0);
	const char *name = layer_name(b, cell, "adjust");
	int halves[2], shifted;

	p = relu(b, name, "relu", p);
	halves[0] = build_average_pool(b, layer_name(b, name, "pool1"), p, &every_second, true);
	halves[0] = pointwise(b, name, "conv1", halves[0], channels / 2);
	shifted = build_pad(b, layer_name(b, name, "pad"), p, behind, 0);
	shifted = build_slice(b, layer_name(b, name, "crop_height"), shifted, 2, 1, INT32_MAX, 1);
	shifted = build_slice(b, layer_name(b, name, "crop_width"), shifted, 3, 1, INT32_MAX, 1);
	halves[1] =
		build_average_pool(b, layer_name(b, name, "pool2"), shifted, &every_second, true);
	halves[1] = pointwise(b, name, "conv2", halves[1], channels / 2);
	p = build_concat(b, layer_name(b, name, "concat"), halves, 2, 1);
	return bn(b, name, "bn", p);
}

/* Gives p the height and width of x; if it changes at all, also `channels` channels. */
static int adjust(struct builder *b, const char *cell, int p, int x, int64_t channels)
{
	const struct shape *from, *to;

	if (p == VALUE_NONE || b->error.code != PRONY_OK)
		return x;
	from = &b->graph->values[p].shape;
	to = &b->graph->values[x].shape;
	if (from->dims[3] != to->dims[3])
		return factorised_reduction(b, cell, p, channels);
	if (from->dims[1] != channels)
		return relu_conv_bn(b, cell, "adjust", p, channels);
	return p;
}

static int add(struct builder *b, const char *cell, int number, int left, int right)
{
	return build_add(b, layer_number(b, layer_name(b, cell, "add"), number), left, right);
}

static int normal_cell(struct builder *b, const char *cell, int x, int p, int64_t channels)
{
	int parts[6], left, right, h;

	p = adjust(b, cell, p, x, channels);
	h = relu_conv_bn(b, cell, "begin", x, channels);
	parts[0] = p;
	left = separable(b, cell, "left1", h, channels, 5, 1);
	right = separable(b, cell, "right1", p, channels, 3, 1);
	parts[1] = add(b, cell, 1, left, right);
	left = separable(b, cell, "left2", p, channels, 5, 1);
	right = separable(b, cell, "right2", p, channels, 3, 1);
	parts[2] = add(b, cell, 2, left, right);
	parts[3] = add(b, cell, 3, average_same(b, cell, "left3", h), p);
	left = average_same(b, cell, "left4", p);
	right = average_same(b, cell, "right4", p);
	parts[4] = add(b, cell, 4, left, right);
	parts[5] = add(b, cell, 5, separable(b, cell, "left5", h, channels, 3, 1), h);
	return build_concat(b, layer_name(b, cell, "concat"), parts, 6, 1);
}

/* Keras pads with zeros before it pools, so that the maximum may be one of them. */
static int zero_padded(struct builder *b, const char *cell, int h)
{
	struct window window = same_window(b, h, 3, 2);
	const int64_t *p = window.pads;

	return build_pad(b, layer_name(b, cell, "pad"), h,
			 (const int64_t[]){0, 0, p[0], p[1], 0, 0, p[2], p[3]}, 0);
}

static int reduction_cell(struct builder *b, const char *cell, int x, int p, int64_t channels)
{
	struct window half = window_square(3, 2, 0);
	int parts[4], first, left, right, h, padded;

	p = adjust(b, cell, p, x, channels);
	h = relu_conv_bn(b, cell, "begin", x, channels);
	padded = zero_padded(b, cell, h);
	left = separable(b, cell, "left1", h, channels, 5, 2);
	right = separable(b, cell, "right1", p, channels, 7, 2);
	first = add(b, cell, 1, left, right);
	left = build_max_pool_window(b, layer_name(b, cell, "left2"), padded, &half);
	right = separable(b, cell, "right2", p, channels, 7, 2);
	parts[0] = add(b, cell, 2, left, right);
	left = build_average_pool(b, layer_name(b, cell, "left3"), padded, &half, true);
	right = separable(b, cell, "right3", p, channels, 5, 2);
	parts[1] = add(b, cell, 3, left, right);
	parts[2] = add(b, cell, 4, parts[0], average_same(b, cell, "left4", first));
	left = separable(b, cell, "left5", first, channels, 3, 1);
	right = build_max_pool_window(b, layer_name(b, cell, "right5"), padded, &half);
	parts[3] = add(b, cell, 5, left, right);
	return build_concat(b, layer_name(b, cell, "concat"), parts, 4, 1);
}

static int layers(struct builder *b, int input)
{
	int x = build_conv_window(b, "stem", input, 32,
				  &(struct window){.kernel = {3, 3}, .strides = {2, 2}}, 1, false);
	int p = VALUE_NONE, before;
	int64_t channels = FILTERS;

	x = bn(b, "stem", "bn", x);
	before = x;
	x = reduction_cell(b, "stem1", x, p, FILTERS / 4);
	p = before;
	before = x;
	x = reduction_cell(b, "stem2", x, p, FILTERS / 2);
	p = before;
	for (int stage = 1; stage <= 3; stage++) {
		const char *stem = arena_printf(&b->graph->arena, "stage%d.", stage);

		if (stage > 1) {
			channels *= 2;
			before = x;
			x = reduction_cell(b, layer_number(b, "reduction", stage - 1), x, p,
					   channels);
			p = before;
		}
		for (int i = 0; i < REPEATS; i++) {
			before = x;
			x = normal_cell(b, layer_number(b, stem, i), x, p, channels);
			p = before;
		}
	}
	x = build_relu(b, "relu", x);
	x = build_global_features(b, "pool", x);
	return build_linear(b, "fc", x, 1000);
}

const struct network zoo_nasnet = {
	.name = "nasnet",
	.summary = "NASNet-A mobile, 4 @ 1056 (Zoph 2017; Keras applications)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 5289978,
	.macs = 563638816,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
