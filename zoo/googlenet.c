/* GoogLeNet (Inception v1) with batch normalisation. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel)
{
	return build_conv_bn_relu(b, name, x, channels, window_square(kernel, 1, kernel / 2), 1e-3);
}

static int pool(struct builder *b, const char *name, int x, int64_t kernel, int64_t stride)
{
	struct window window = window_square(kernel, stride, stride == 1 ? kernel / 2 : 0);

	window.ceil_mode = true;
	return build_max_pool_window(b, name, x, &window);
}

/* torchvision's third branch is 3x3, the paper's 5x5; torchvision's weights are trained for 3x3. */
static int inception(struct builder *b, int x, const struct inception_widths *w)
{
	int branches[4];

	branches[0] = conv(b, layer_name(b, w->name, "one"), x, w->one, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three_reduce"), x, w->three_reduce, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three"), branches[1], w->three, 3);
	branches[2] = conv(b, layer_name(b, w->name, "five_reduce"), x, w->five_reduce, 1);
	branches[2] = conv(b, layer_name(b, w->name, "five"), branches[2], w->five, 3);
	branches[3] = pool(b, layer_name(b, w->name, "pool"), x, 3, 1);
	branches[3] = conv(b, layer_name(b, w->name, "project"), branches[3], w->pool, 1);
	return build_concat(b, w->name, branches, 4, 1);
}

static int layers(struct builder *b, int input)
{
	int x = build_conv_bn_relu(b, "conv1", input, 64, window_square(7, 2, 3), 1e-3);

	x = pool(b, "pool1", x, 3, 2);
	x = conv(b, "conv2", x, 64, 1);
	x = conv(b, "conv3", x, 192, 3);
	x = pool(b, "pool2", x, 3, 2);
	for (int i = 0; i < INCEPTION_COUNT; i++) {
		x = inception(b, x, &inception_widths[i]);
		if (i == INCEPTION_3B)
			x = pool(b, "pool3", x, 3, 2);
		if (i == INCEPTION_4E)
			x = pool(b, "pool4", x, 2, 2);
	}
	x = build_global_features(b, "pool5", x);
	x = build_dropout(b, "dropout", x, 0.2);
	return build_linear(b, "fc", x, 1000);
}

const struct network zoo_googlenet = {
	.name = "googlenet",
	.summary = "inception v1 with batch normalisation, without auxiliary heads (torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 6624904,
	.macs = 1498376192,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
