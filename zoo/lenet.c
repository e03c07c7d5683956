/* LeNet, as in Caffe. */
#include "zoo/networks_internal.h"

/* Caffe's LeNet has no non-linearity behind its convolutions; the LeNet-5 of 1998 has one. */
static int layers(struct builder *b, int input)
{
	int x = build_conv(b, "conv1", input, 20, 5, 1, 0);

	x = build_max_pool(b, "pool1", x, 2, 2);
	x = build_conv(b, "conv2", x, 50, 5, 1, 0);
	x = build_max_pool(b, "pool2", x, 2, 2);
	x = build_flatten(b, "flatten", x);
	x = build_linear(b, "ip1", x, 500);
	x = build_relu(b, "relu1", x);
	return build_linear(b, "ip2", x, 10);
}

const struct network zoo_lenet = {
	.name = "lenet",
	.summary = "two convolutions and two fully connected layers (Caffe examples, "
		   "lenet_train_test)",
	.dataset = "mnist",
	.inputs = {{.name = "input", .rank = 3, .dims = {1, 28, 28}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 431080,
	.macs = 2293000,
	.gate_learning_rate = 0.01,
	.layers = layers,
};
