/* VGG with batch normalisation, for images of 32x32. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* Configuration D; 0 is a pool. The last one leaves 1x1. */
static const int64_t widths[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
				 0,  512, 512, 512, 0,	 512, 512, 512, 0};

/* The bias has no effect, because batch normalisation subtracts it; the published count includes
 * it. */
static int conv_bn_relu(struct builder *b, const char *name, int x, int64_t channels)
{
	x = build_conv(b, name, x, channels, 3, 1, 1);
	x = build_batch_norm(b, layer_name(b, name, "bn"), x, 1e-5, TORCH_BATCH_NORM_MOMENTUM);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

static int layers(struct builder *b, int input)
{
	int x = input, convs = 0, pools = 0;

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (widths[i] == 0)
			x = build_max_pool(b, layer_number(b, "pool", ++pools), x, 2, 2);
		else
			x = conv_bn_relu(b, layer_number(b, "conv", ++convs), x, widths[i]);
	}
	x = build_flatten(b, "flatten", x);
	x = build_linear_relu(b, "fc1", x, 512);
	return build_linear(b, "fc2", x, 10);
}

const struct network zoo_vgg16_cifar = {
	.name = "vgg16-cifar",
	.summary = "VGG configuration D for 32x32 with batch normalisation and two fully connected "
		   "layers",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 14990922,
	.macs = 313463808,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
