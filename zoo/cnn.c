/* A small convolutional network for CIFAR-10. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_conv_relu(b, "conv1", input, 32, window_square(3, 1, 1));

	x = build_conv_relu(b, "conv2", x, 32, window_square(3, 1, 0));
	x = build_max_pool(b, "pool1", x, 2, 2);
	x = build_dropout(b, "dropout1", x, 0.25);
	x = build_conv_relu(b, "conv3", x, 64, window_square(3, 1, 1));
	x = build_conv_relu(b, "conv4", x, 64, window_square(3, 1, 0));
	x = build_max_pool(b, "pool2", x, 2, 2);
	x = build_dropout(b, "dropout2", x, 0.25);
	x = build_flatten(b, "flatten", x);
	x = build_linear_relu(b, "fc1", x, 512);
	x = build_dropout(b, "dropout3", x, 0.5);
	return build_linear(b, "fc2", x, 10);
}

const struct network zoo_cnn = {
	.name = "cnn",
	.summary = "four convolutions and two fully connected layers (Keras examples, cifar10_cnn)",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 1250858,
	.macs = 20741120,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
