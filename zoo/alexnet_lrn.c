/* AlexNet with two groups and response normalisation. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* Two groups: the paper ran them on two GPUs. */
static int grouped_conv_relu(struct builder *b, const char *name, int x, int64_t channels,
			     struct window window)
{
	x = build_conv_window(b, name, x, channels, &window, 2, true);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

/* Caffe's LRN bias is 1, the paper's is 2. */
static int layers(struct builder *b, int input)
{
	int x = build_conv_relu(b, "conv1", input, 96, window_square(11, 4, 0));

	x = build_lrn(b, "norm1", x, 5, 1e-4, 0.75, 1);
	x = build_max_pool(b, "pool1", x, 3, 2);
	x = grouped_conv_relu(b, "conv2", x, 256, window_square(5, 1, 2));
	x = build_lrn(b, "norm2", x, 5, 1e-4, 0.75, 1);
	x = build_max_pool(b, "pool2", x, 3, 2);
	x = build_conv_relu(b, "conv3", x, 384, window_square(3, 1, 1));
	x = grouped_conv_relu(b, "conv4", x, 384, window_square(3, 1, 1));
	x = grouped_conv_relu(b, "conv5", x, 256, window_square(3, 1, 1));
	x = build_max_pool(b, "pool5", x, 3, 2);
	x = build_flatten(b, "flatten", x);
	x = build_linear_relu(b, "fc6", x, 4096);
	x = build_dropout(b, "dropout6", x, 0.5);
	x = build_linear_relu(b, "fc7", x, 4096);
	x = build_dropout(b, "dropout7", x, 0.5);
	return build_linear(b, "fc8", x, 1000);
}

const struct network zoo_alexnet_lrn = {
	.name = "alexnet-lrn",
	.summary = "two groups and response normalisation (Krizhevsky 2012; Caffe bvlc_alexnet)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 227, 227}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 60965224,
	.macs = 724406816,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
