/* AlexNet for images of 32x32. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* tf.nn.lrn(x, 4, bias=1, alpha=0.001/9, beta=0.75): a window of 9 whose alpha ONNX divides by 9.
 */
static int lrn(struct builder *b, const char *name, int x)
{
	return build_lrn(b, name, x, 9, 0.001, 0.75, 1);
}

static int layers(struct builder *b, int input)
{
	/* 32 to 16 and 16 to 8: `same` adds the odd row of padding at the end. */
	struct window pool = {.kernel = {3, 3}, .strides = {2, 2}, .pads = {0, 0, 1, 1}};
	int x = build_conv_relu(b, "conv1", input, 64, window_square(5, 1, 2));

	x = build_max_pool_window(b, "pool1", x, &pool);
	x = lrn(b, "norm1", x);
	x = build_conv_relu(b, "conv2", x, 64, window_square(5, 1, 2));
	x = lrn(b, "norm2", x);
	x = build_max_pool_window(b, "pool2", x, &pool);
	x = build_flatten(b, "flatten", x);
	x = build_linear_relu(b, "fc3", x, 384);
	x = build_linear_relu(b, "fc4", x, 192);
	return build_linear(b, "fc5", x, 10);
}

const struct network zoo_alexnet_cifar = {
	.name = "alexnet-cifar",
	.summary = "two convolutions with response normalisation (TensorFlow tutorials, cifar10)",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 1756426,
	.macs = 32778112,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
