/* VGG with 16 layers. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* Configuration D; 0 is a pool. */
static const int64_t widths[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
				 0,  512, 512, 512, 0,	 512, 512, 512, 0};

static int layers(struct builder *b, int input)
{
	int x = input, convs = 0, pools = 0;

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (widths[i] == 0)
			x = build_max_pool(b, layer_number(b, "pool", ++pools), x, 2, 2);
		else
			x = build_conv_relu(b, layer_number(b, "conv", ++convs), x, widths[i],
					    window_square(3, 1, 1));
	}
	x = build_flatten(b, "flatten", x);
	x = build_linear_relu(b, "fc14", x, 4096);
	x = build_dropout(b, "dropout14", x, 0.5);
	x = build_linear_relu(b, "fc15", x, 4096);
	x = build_dropout(b, "dropout15", x, 0.5);
	return build_linear(b, "fc16", x, 1000);
}

const struct network zoo_vgg16 = {
	.name = "vgg16",
	.summary = "sixteen layers, configuration D (Simonyan and Zisserman 2014; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 138357544,
	.macs = 15470264320,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
