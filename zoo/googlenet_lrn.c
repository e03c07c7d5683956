/* GoogLeNet (Inception v1) with response normalisation. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel)
{
	return build_conv_relu(b, name, x, channels, window_square(kernel, 1, kernel / 2));
}

static int pool(struct builder *b, const char *name, int x)
{
	struct window window = window_square(3, 2, 0);

	window.ceil_mode = true;
	return build_max_pool_window(b, name, x, &window);
}

static int inception(struct builder *b, int x, const struct inception_widths *w)
{
	struct window same = window_square(3, 1, 1);
	int branches[4];

	branches[0] = conv(b, layer_name(b, w->name, "one"), x, w->one, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three_reduce"), x, w->three_reduce, 1);
	branches[1] = conv(b, layer_name(b, w->name, "three"), branches[1], w->three, 3);
	branches[2] = conv(b, layer_name(b, w->name, "five_reduce"), x, w->five_reduce, 1);
	branches[2] = conv(b, layer_name(b, w->name, "five"), branches[2], w->five, 5);
	branches[3] = build_max_pool_window(b, layer_name(b, w->name, "pool"), x, &same);
	branches[3] = conv(b, layer_name(b, w->name, "project"), branches[3], w->pool, 1);
	return build_concat(b, w->name, branches, 4, 1);
}

static int layers(struct builder *b, int input)
{
	int x = build_conv_relu(b, "conv1", input, 64, window_square(7, 2, 3));

	x = pool(b, "pool1", x);
	x = build_lrn(b, "norm1", x, 5, 1e-4, 0.75, 1);
	x = conv(b, "conv2", x, 64, 1);
	x = conv(b, "conv3", x, 192, 3);
	x = build_lrn(b, "norm2", x, 5, 1e-4, 0.75, 1);
	x = pool(b, "pool2", x);
	for (int i = 0; i < INCEPTION_COUNT; i++) {
		x = inception(b, x, &inception_widths[i]);
		if (i == INCEPTION_3B)
			x = pool(b, "pool3", x);
		if (i == INCEPTION_4E)
			x = pool(b, "pool4", x);
	}
	x = build_global_features(b, "pool5", x);
	x = build_dropout(b, "dropout", x, 0.4);
	return build_linear(b, "fc", x, 1000);
}

const struct network zoo_googlenet_lrn = {
	.name = "googlenet-lrn",
	.summary = "inception v1 with response normalisation, without auxiliary heads (Szegedy "
		   "2014; Caffe bvlc_googlenet)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 6998552,
	.macs = 1582671872,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
