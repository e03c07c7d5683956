/* Vision transformers (Dosovitskiy et al. 2020, arXiv 2010.11929): patches of an image and a
 * learned token, positions that are learned, blocks with the normalisation first, the class from
 * the token. As in torchvision; query, key and value have a matrix each, where torchvision stores
 * the three as one. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

struct vit {
	int64_t patch, width, hidden, heads, classes;
	int depth;
};

/* Epsilon of every normalisation. */
#define EPSILON 1e-6

static int attention(struct builder *b, const struct vit *v, const char *block, int x,
		     int64_t tokens)
{
	const struct attention_sizes sizes = {.tokens = tokens,
					      .heads = v->heads,
					      .features = v->width / v->heads,
					      .mask = VALUE_NONE};
	int qkv[3];

	qkv[0] = build_linear(b, layer_name(b, block, "query"), x, v->width);
	qkv[1] = build_linear(b, layer_name(b, block, "key"), x, v->width);
	qkv[2] = build_linear(b, layer_name(b, block, "value"), x, v->width);
	x = build_attention(b, block, qkv, &sizes);
	return build_linear(b, layer_name(b, block, "project"), x, v->width);
}

static int encoder_block(struct builder *b, const struct vit *v, const char *block, int x,
			 int64_t tokens)
{
	int y = build_layer_norm(b, layer_name(b, block, "norm1"), x, 1, EPSILON);

	x = build_add(b, layer_name(b, block, "sum1"), x, attention(b, v, block, y, tokens));
	y = build_layer_norm(b, layer_name(b, block, "norm2"), x, 1, EPSILON);
	y = build_linear(b, layer_name(b, block, "mlp1"), y, v->hidden);
	y = build_node(b, OP_GELU, layer_name(b, block, "gelu"), &y, 1, NULL);
	return build_add(b, layer_name(b, block, "sum2"), x,
			 build_linear(b, layer_name(b, block, "mlp2"), y, v->width));
}

/* A normal parameter 1 x rows x width. */
static int learned(struct builder *b, const char *name, int64_t rows, int64_t width, double scale)
{
	int value = build_parameter(b, name, 3, (const int64_t[]){1, rows, width}, FILL_NORMAL, 1);

	if (b->error.code == PRONY_OK)
		b->graph->values[value].fill_scale = scale;
	return value;
}

static int build_vit(struct builder *b, const struct vit *v, int x)
{
	struct window window = {.kernel = {v->patch, v->patch}, .strides = {v->patch, v->patch}};
	int token = learned(b, "class_token", 1, v->width, 1), positions;
	int64_t batch, patches;

	x = build_conv_window(b, "patches", x, v->width, &window, 1, true);
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	batch = b->graph->values[x].shape.dims[0];
	patches = b->graph->values[x].shape.dims[2] * b->graph->values[x].shape.dims[3];
	x = build_reshape(b, "flat", x, 3, (const int64_t[]){0, v->width, patches});
	x = build_transpose(b, "embedded", x, (const int64_t[]){0, 2, 1});
	token = build_expand(b, "token", token, 3, (const int64_t[]){batch, 1, v->width});
	x = build_concat(b, "joined", (const int[]){token, x}, 2, 1);
	positions = learned(b, "positions", 1 + patches, v->width, 0.02);
	x = build_add(b, "placed", x, positions);
	x = build_reshape(b, "rows", x, 2, (const int64_t[]){-1, v->width});
	for (int i = 0; i < v->depth; i++)
		x = encoder_block(b, v, layer_number(b, "block", i), x, 1 + patches);
	x = build_layer_norm(b, "norm", x, 1, EPSILON);
	x = build_reshape(b, "tokens", x, 3, (const int64_t[]){-1, 1 + patches, v->width});
	x = build_flatten(b, "class", build_slice(b, "first", x, 1, 0, 1, 1));
	return build_linear(b, "head", x, v->classes);
}

static int base_layers(struct builder *b, int x)
{
	static const struct vit base = {.patch = 16,
					.width = 768,
					.hidden = 3072,
					.heads = 12,
					.classes = 1000,
					.depth = 12};

	return build_vit(b, &base, x);
}

static int small_layers(struct builder *b, int x)
{
	static const struct vit small = {
		.patch = 4, .width = 64, .hidden = 256, .heads = 4, .classes = 10, .depth = 4};

	return build_vit(b, &small, x);
}

const struct network zoo_vit_b16 = {
	.name = "vit-b16",
	.summary = "vision transformer of 12 blocks on patches of 16 (Dosovitskiy 2020)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 86567656,
	.macs = 17563828224,
	.gate_learning_rate = 0.001,
	.layers = base_layers,
};

const struct network zoo_vit_small = {
	.name = "vit-small",
	.summary = "vision transformer of 4 blocks of width 64 for 32x32 (prony's own, after ViT)",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 208074,
	.macs = 15139968,
	.gate_learning_rate = 0.001,
	.layers = small_layers,
};
