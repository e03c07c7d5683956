/* AlexNet with one tower, without response normalisation. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_conv_relu(b, "conv1", input, 64, window_square(11, 4, 2));

	x = build_max_pool(b, "pool1", x, 3, 2);
	x = build_conv_relu(b, "conv2", x, 192, window_square(5, 1, 2));
	x = build_max_pool(b, "pool2", x, 3, 2);
	x = build_conv_relu(b, "conv3", x, 384, window_square(3, 1, 1));
	x = build_conv_relu(b, "conv4", x, 256, window_square(3, 1, 1));
	x = build_conv_relu(b, "conv5", x, 256, window_square(3, 1, 1));
	x = build_max_pool(b, "pool5", x, 3, 2);
	x = build_flatten(b, "flatten", x);
	x = build_dropout(b, "dropout6", x, 0.5);
	x = build_linear_relu(b, "fc6", x, 4096);
	x = build_dropout(b, "dropout7", x, 0.5);
	x = build_linear_relu(b, "fc7", x, 4096);
	return build_linear(b, "fc8", x, 1000);
}

const struct network zoo_alexnet = {
	.name = "alexnet",
	.summary = "one tower, without response normalisation (Krizhevsky 2014; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 61100840,
	.macs = 714188480,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
