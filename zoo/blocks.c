/* Layers that several networks share. */
#include "zoo/blocks_internal.h"

const struct inception_widths inception_widths[INCEPTION_COUNT] = {
	{"inception3a", 64, 96, 128, 16, 32, 32},     {"inception3b", 128, 128, 192, 32, 96, 64},
	{"inception4a", 192, 96, 208, 16, 48, 64},    {"inception4b", 160, 112, 224, 24, 64, 64},
	{"inception4c", 128, 128, 256, 24, 64, 64},   {"inception4d", 112, 144, 288, 32, 64, 64},
	{"inception4e", 256, 160, 320, 32, 128, 128}, {"inception5a", 256, 160, 320, 32, 128, 128},
	{"inception5b", 384, 192, 384, 48, 128, 128},
};

const char *layer_name(struct builder *b, const char *block, const char *layer)
{
	return arena_printf(&b->graph->arena, "%s.%s", block, layer);
}

const char *layer_number(struct builder *b, const char *stem, int number)
{
	return arena_printf(&b->graph->arena, "%s%d", stem, number);
}

int build_conv_bn(struct builder *b, const char *name, int x, int64_t channels,
		  struct window window, double epsilon)
{
	x = build_conv_window(b, name, x, channels, &window, 1, false);
	return build_batch_norm(b, layer_name(b, name, "bn"), x, epsilon,
				TORCH_BATCH_NORM_MOMENTUM);
}

int build_conv_bn_relu(struct builder *b, const char *name, int x, int64_t channels,
		       struct window window, double epsilon)
{
	x = build_conv_bn(b, name, x, channels, window, epsilon);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

int build_conv_relu(struct builder *b, const char *name, int x, int64_t channels,
		    struct window window)
{
	x = build_conv_window(b, name, x, channels, &window, 1, true);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

int build_linear_relu(struct builder *b, const char *name, int x, int64_t features)
{
	x = build_linear(b, name, x, features);
	return build_relu(b, layer_name(b, name, "relu"), x);
}

int build_global_features(struct builder *b, const char *name, int x)
{
	x = build_global_average_pool(b, name, x);
	return build_flatten(b, layer_name(b, name, "flat"), x);
}
