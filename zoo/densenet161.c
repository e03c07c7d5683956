/* DenseNet with 161 layers. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

enum { GROWTH = 48 };

/* Normalisation and ReLU come before the convolution here. */
static int bn_relu(struct builder *b, const char *name, int x)
{
	x = build_batch_norm(b, layer_name(b, name, "bn"), x, 1e-5, TORCH_BATCH_NORM_MOMENTUM);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

static int bn_relu_conv(struct builder *b, const char *name, int x, int64_t channels,
			struct window window)
{
	x = bn_relu(b, name, x);
	return build_conv_window(b, name, x, channels, &window, 1, false);
}

/* Each layer reads the outputs of all layers before it in the block. */
static int dense_block(struct builder *b, const char *name, int x, int layer_count)
{
	const char *stem = layer_name(b, name, "layer");

	for (int i = 0; i < layer_count; i++) {
		const char *layer = layer_number(b, stem, i + 1);
		int features[2] = {x};

		x = bn_relu_conv(b, layer_name(b, layer, "conv1"), x, 4 * GROWTH,
				 window_square(1, 1, 0));
		features[1] = bn_relu_conv(b, layer_name(b, layer, "conv2"), x, GROWTH,
					   window_square(3, 1, 1));
		x = build_concat(b, layer_name(b, layer, "concat"), features, 2, 1);
	}
	return x;
}

static int layers(struct builder *b, int input)
{
	static const int layer_counts[4] = {6, 12, 36, 24};
	struct window stem_pool = window_square(3, 2, 1), half = window_square(2, 2, 0);
	int64_t channels = 2 * GROWTH;
	int x = build_conv_bn_relu(b, "conv0", input, channels, window_square(7, 2, 3), 1e-5);

	x = build_max_pool_window(b, "pool0", x, &stem_pool);
	for (int i = 0; i < 4; i++) {
		const char *transition = layer_number(b, "transition", i + 1);

		x = dense_block(b, layer_number(b, "block", i + 1), x, layer_counts[i]);
		channels += layer_counts[i] * GROWTH;
		if (i == 3)
			break;
		channels /= 2;
		x = bn_relu_conv(b, transition, x, channels, window_square(1, 1, 0));
		x = build_average_pool(b, layer_name(b, transition, "pool"), x, &half, true);
	}
	x = bn_relu(b, "norm5", x);
	x = build_global_features(b, "pool5", x);
	return build_linear(b, "fc", x, 1000);
}

const struct network zoo_densenet161 = {
	.name = "densenet161",
	.summary = "densely connected network of 161 layers, growth 48 (Huang 2016; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 28681000,
	.macs = 7727907072,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
