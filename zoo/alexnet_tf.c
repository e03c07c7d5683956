/* The convolutions of AlexNet, as in TensorFlow's benchmark. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* TensorFlow's depth radius 5 is a window of 11, and its alpha is not divided by that. */
static int lrn(struct builder *b, const char *name, int x)
{
	return build_lrn(b, name, x, 11, 11 * 1e-4, 0.75, 2);
}

static int layers(struct builder *b, int input)
{
	/* 224 to 56: `same` adds the odd row of padding at the end. */
	struct window first = {.kernel = {11, 11}, .strides = {4, 4}, .pads = {3, 3, 4, 4}};
	int x = build_conv_relu(b, "conv1", input, 64, first);

	x = lrn(b, "lrn1", x);
	x = build_max_pool(b, "pool1", x, 3, 2);
	x = build_conv_relu(b, "conv2", x, 192, window_square(5, 1, 2));
	x = lrn(b, "lrn2", x);
	x = build_max_pool(b, "pool2", x, 3, 2);
	x = build_conv_relu(b, "conv3", x, 384, window_square(3, 1, 1));
	x = build_conv_relu(b, "conv4", x, 256, window_square(3, 1, 1));
	x = build_conv_relu(b, "conv5", x, 256, window_square(3, 1, 1));
	x = build_max_pool(b, "pool5", x, 3, 2);
	return build_flatten(b, "flatten", x);
}

const struct network zoo_alexnet_tf = {
	.name = "alexnet-tf",
	.summary = "AlexNet's convolutions, trained on half the sum of squares of pool5 "
		   "(TensorFlow models, benchmark_alexnet)",
	.dataset = "synthetic",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 9216,
	.parameters = 2469696,
	.macs = 658145280,
	.gate_learning_rate = 0.001,
	.half_squares = true,
	.layers = layers,
};
