/* ResNet with 50 layers, for images of 32x32. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static const double epsilon = 1e-5;

/* Two 3x3 convolutions beside a shortcut; they add little at first, as in bottleneck.c. */
static int block(struct builder *b, const char *name, int x, int64_t width, int64_t stride)
{
	const double branch_scale = 0.2;
	int shortcut = x, y;

	y = build_conv_bn_relu(b, layer_name(b, name, "conv1"), x, width,
			       window_square(3, stride, 1), epsilon);
	y = build_conv_window(b, layer_name(b, name, "conv2"), y, width,
			      &(struct window){.kernel = {3, 3}, .pads = {1, 1, 1, 1}}, 1, false);
	y = build_batch_norm_scaled(b, layer_name(b, name, "conv2.bn"), y, epsilon,
				    TORCH_BATCH_NORM_MOMENTUM, branch_scale);
	if (stride > 1)
		shortcut = build_conv_bn(b, layer_name(b, name, "shortcut"), x, width,
					 window_square(1, stride, 0), epsilon);
	y = build_add(b, layer_name(b, name, "add"), y, shortcut);
	return build_relu(b, layer_name(b, name, "relu"), y);
}

/* 6n + 2 layers with n = 8. */
static int layers(struct builder *b, int input)
{
	int x = build_conv_bn_relu(b, "conv1", input, 16, window_square(3, 1, 1), epsilon);

	for (int stage = 0; stage < 3; stage++) {
		const char *stem = arena_printf(&b->graph->arena, "stage%d.", stage + 1);

		for (int i = 0; i < 8; i++)
			x = block(b, layer_number(b, stem, i), x, INT64_C(16) << stage,
				  stage > 0 && i == 0 ? 2 : 1);
	}
	x = build_global_features(b, "pool", x);
	return build_linear(b, "fc", x, 10);
}

const struct network zoo_resnet50_cifar = {
	.name = "resnet50-cifar",
	.summary =
		"residual network of 50 layers for 32x32 with projections (He 2015, section 4.2)",
	.dataset = "cifar10",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 32, 32}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 758554,
	.macs = 111592064,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
