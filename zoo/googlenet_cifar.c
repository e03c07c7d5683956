/* GoogLeNet with batch normalisation, for images of 32x32. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel)
{
	x = build_conv(b, name, x, channels, kernel, 1, kernel / 2);
	x = build_batch_norm(b, layer_name(b, name, "bn"), x, 1e-5, TORCH_BATCH_NORM_MOMENTUM);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

/* Two 3x3 convolutions replace the 5x5 one. */
static int inception(struct builder *b, int x, const struct inception_widths *w)
{
	struct window same = window_square(3, 1, 1);
	int branches[4];

	branches[0] = conv(b, layer_name(b, w->name, "one"), x, w->one, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three_reduce"), x, w->three_reduce, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three"), branches[1], w->three, 3);
	branches[2] = conv(b, layer_name(b, w->name, "five_reduce"), x, w->five_reduce, 1);
	branches[2] = conv(b, layer_name(b, w->name, "five1"), branches[2], w->five, 3);
	branches[2] = conv(b, layer_name(b, w->name, "five2"), branches[2], w->five, 3);
	branches[3] = build_max_pool_window(b, layer_name(b, w->name, "pool"), x, &same);
	branches[3] = conv(b, layer_name(b, w->name, "project"), branches[3], w->pool, 1);
	return build_concat(b, w->name, branches, 4, 1);
}

static int layers(struct builder *b, int input)
{
	struct window half = window_square(3, 2, 1);
	int x = conv(b, "conv1", input, 192, 3);

	for (int i = 0; i < INCEPTION_COUNT; i++) {
		x = inception(b, x, &inception_widths[i]);
		if (i == INCEPTION_3B)
			x = build_max_pool_window(b, "pool3", x, &half);
		if (i == INCEPTION_4E)
			x = build_max_pool_window(b, "pool4", x, &half);
	}
	x = build_global_features(b, "pool5", x);
	return build_linear(b, "fc", x, 10);
}

const struct network zoo_googlenet_cifar = {
	.name = "googlenet-cifar",
	.summary = "inception v1 for 32x32 with batch normalisation (kuangliu's pytorch-cifar)",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 6166250,
	.macs = 1521756160,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
