/* Inception v3. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

/* The modules are those of Szegedy et al. 2015 (arXiv 1512.00567), as torchvision names them. */
static int conv_window(struct builder *b, const char *module, const char *layer, int x,
		       int64_t channels, struct window window)
{
	return build_conv_bn_relu(b, layer_name(b, module, layer), x, channels, window, 1e-3);
}

/* Odd kernels that keep height and width. */
static int conv(struct builder *b, const char *module, const char *layer, int x, int64_t channels,
		int64_t height, int64_t width)
{
	struct window window = {
		.kernel = {height, width},
		.pads = {height / 2, width / 2, height / 2, width / 2},
	};

	return conv_window(b, module, layer, x, channels, window);
}

/* 3x3 with stride 2, which halves height and width. */
static int conv_half(struct builder *b, const char *module, const char *layer, int x,
		     int64_t channels)
{
	return conv_window(b, module, layer, x, channels, window_square(3, 2, 0));
}

static int pool_branch(struct builder *b, const char *m, int x, int64_t channels)
{
	struct window same = window_square(3, 1, 1);

	x = build_average_pool(b, layer_name(b, m, "pool"), x, &same, true);
	return conv(b, m, "project", x, channels, 1, 1);
}

static int module_a(struct builder *b, const char *m, int x, int64_t pool_channels)
{
	int branches[4];

	branches[0] = conv(b, m, "one", x, 64, 1, 1);
	branches[1] = conv(b, m, "five1", x, 48, 1, 1);
	branches[1] = conv(b, m, "five2", branches[1], 64, 5, 5);
	branches[2] = conv(b, m, "double1", x, 64, 1, 1);
	branches[2] = conv(b, m, "double2", branches[2], 96, 3, 3);
	branches[2] = conv(b, m, "double3", branches[2], 96, 3, 3);
	branches[3] = pool_branch(b, m, x, pool_channels);
	return build_concat(b, m, branches, 4, 1);
}

static int module_b(struct builder *b, const char *m, int x)
{
	int branches[3];

	branches[0] = conv_half(b, m, "three", x, 384);
	branches[1] = conv(b, m, "double1", x, 64, 1, 1);
	branches[1] = conv(b, m, "double2", branches[1], 96, 3, 3);
	branches[1] = conv_half(b, m, "double3", branches[1], 96);
	branches[2] = build_max_pool(b, layer_name(b, m, "pool"), x, 3, 2);
	return build_concat(b, m, branches, 3, 1);
}

static int module_c(struct builder *b, const char *m, int x, int64_t width)
{
	int branches[4];

	branches[0] = conv(b, m, "one", x, 192, 1, 1);
	branches[1] = conv(b, m, "seven1", x, width, 1, 1);
	branches[1] = conv(b, m, "seven2", branches[1], width, 1, 7);
	branches[1] = conv(b, m, "seven3", branches[1], 192, 7, 1);
	branches[2] = conv(b, m, "double1", x, width, 1, 1);
	branches[2] = conv(b, m, "double2", branches[2], width, 7, 1);
	branches[2] = conv(b, m, "double3", branches[2], width, 1, 7);
	branches[2] = conv(b, m, "double4", branches[2], width, 7, 1);
	branches[2] = conv(b, m, "double5", branches[2], 192, 1, 7);
	branches[3] = pool_branch(b, m, x, 192);
	return build_concat(b, m, branches, 4, 1);
}

static int module_d(struct builder *b, const char *m, int x)
{
	int branches[3];

	branches[0] = conv(b, m, "three1", x, 192, 1, 1);
	branches[0] = conv_half(b, m, "three2", branches[0], 320);
	branches[1] = conv(b, m, "seven1", x, 192, 1, 1);
	branches[1] = conv(b, m, "seven2", branches[1], 192, 1, 7);
	branches[1] = conv(b, m, "seven3", branches[1], 192, 7, 1);
	branches[1] = conv_half(b, m, "seven4", branches[1], 192);
	branches[2] = build_max_pool(b, layer_name(b, m, "pool"), x, 3, 2);
	return build_concat(b, m, branches, 3, 1);
}

static int module_e(struct builder *b, const char *m, int x)
{
	int branches[4], halves[2], y;

	branches[0] = conv(b, m, "one", x, 320, 1, 1);
	y = conv(b, m, "three1", x, 384, 1, 1);
	halves[0] = conv(b, m, "three2a", y, 384, 1, 3);
	halves[1] = conv(b, m, "three2b", y, 384, 3, 1);
	branches[1] = build_concat(b, layer_name(b, m, "three"), halves, 2, 1);
	y = conv(b, m, "double1", x, 448, 1, 1);
	y = conv(b, m, "double2", y, 384, 3, 3);
	halves[0] = conv(b, m, "double3a", y, 384, 1, 3);
	halves[1] = conv(b, m, "double3b", y, 384, 3, 1);
	branches[2] = build_concat(b, layer_name(b, m, "double"), halves, 2, 1);
	branches[3] = pool_branch(b, m, x, 192);
	return build_concat(b, m, branches, 4, 1);
}

static int layers(struct builder *b, int input)
{
	int x = conv_half(b, "stem", "conv1", input, 32);

	x = conv_window(b, "stem", "conv2", x, 32, window_square(3, 1, 0));
	x = conv(b, "stem", "conv3", x, 64, 3, 3);
	x = build_max_pool(b, "pool1", x, 3, 2);
	x = conv(b, "stem", "conv4", x, 80, 1, 1);
	x = conv_window(b, "stem", "conv5", x, 192, window_square(3, 1, 0));
	x = build_max_pool(b, "pool2", x, 3, 2);
	x = module_a(b, "mixed5b", x, 32);
	x = module_a(b, "mixed5c", x, 64);
	x = module_a(b, "mixed5d", x, 64);
	x = module_b(b, "mixed6a", x);
	x = module_c(b, "mixed6b", x, 128);
	x = module_c(b, "mixed6c", x, 160);
	x = module_c(b, "mixed6d", x, 160);
	x = module_c(b, "mixed6e", x, 192);
	x = module_d(b, "mixed7a", x);
	x = module_e(b, "mixed7b", x);
	x = module_e(b, "mixed7c", x);
	x = build_global_features(b, "pool", x);
	x = build_dropout(b, "dropout", x, 0.5);
	return build_linear(b, "fc", x, 1000);
}

const struct network zoo_inception3 = {
	.name = "inception3",
	.summary = "inception v3 without auxiliary head (Szegedy 2015; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 299, 299}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 23834568,
	.macs = 5713216096,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
