/* U-Net: a class for each pixel. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

enum { SIZE = 64, FIRST = 64, LEVELS = 4, CLASSES = 2 };

static int twice(struct builder *b, const char *name, int x, int64_t channels)
{
	struct window same = window_square(3, 1, 1);

	x = build_conv_bn_relu(b, layer_name(b, name, "conv1"), x, channels, same, 1e-5);
	return build_conv_bn_relu(b, layer_name(b, name, "conv2"), x, channels, same, 1e-5);
}

/* The logits have one row per pixel. */
static int layers(struct builder *b, int input)
{
	const struct window half = window_square(2, 2, 0);
	const int64_t rows[2] = {-1, CLASSES};
	int skips[LEVELS], x = twice(b, "down0", input, FIRST);

	for (int i = 0; i < LEVELS; i++) {
		skips[i] = x;
		x = build_max_pool(b, layer_number(b, "pool", i + 1), x, 2, 2);
		x = twice(b, layer_number(b, "down", i + 1), x, FIRST << (i + 1));
	}
	for (int i = LEVELS - 1; i >= 0; i--) {
		const char *name = layer_number(b, "up", i);

		x = build_conv_transpose(b, name, x, FIRST << i, &half, 1);
		x = build_concat(b, layer_name(b, name, "concat"), (const int[]){skips[i], x}, 2,
				 1);
		x = twice(b, name, x, FIRST << i);
	}
	x = build_conv(b, "classes", x, CLASSES, 1, 1, 0);
	x = build_transpose(b, "pixels", x, (const int64_t[]){0, 2, 3, 1});
	return build_reshape(b, "rows", x, 2, rows);
}

const struct network zoo_unet = {
	.name = "unet",
	.summary =
		"U-Net with padding and batch norm, a class per pixel (Ronneberger 2015; milesial)",
	.dataset = "synthetic",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, SIZE, SIZE}}},
	.input_count = 1,
	.label_rank = 2,
	.label_dims = {SIZE, SIZE},
	.classes = CLASSES,
	.parameters = 31037698,
	.macs = 3010723840,
	.gate_learning_rate = 0.01,
	.layers = layers,
};
