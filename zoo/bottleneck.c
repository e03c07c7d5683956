/* Residual networks of bottlenecks, for resnet50 and resnet152. */
#include "zoo/blocks_internal.h"

static const double epsilon = 1e-5;

/* Convolutions of 1x1, 3x3 and 1x1 beside a shortcut. At first each branch adds little. With fixed
 * statistics, as in evaluation, the sums would otherwise double in each of 50 blocks. */
static int bottleneck(struct builder *b, const char *name, int x, int64_t width, int64_t stride,
		      bool project)
{
	const double branch_scale = 0.2;
	int shortcut = x, y;

	y = build_conv_bn_relu(b, layer_name(b, name, "conv1"), x, width, window_square(1, 1, 0),
			       epsilon);
	y = build_conv_bn_relu(b, layer_name(b, name, "conv2"), y, width,
			       window_square(3, stride, 1), epsilon);
	y = build_conv_window(b, layer_name(b, name, "conv3"), y, 4 * width,
			      &(struct window){.kernel = {1, 1}}, 1, false);
	y = build_batch_norm_scaled(b, layer_name(b, name, "conv3.bn"), y, epsilon,
				    TORCH_BATCH_NORM_MOMENTUM, branch_scale);
	if (project)
		shortcut = build_conv_bn(b, layer_name(b, name, "shortcut"), x, 4 * width,
					 window_square(1, stride, 0), epsilon);
	y = build_add(b, layer_name(b, name, "add"), y, shortcut);
	return build_relu(b, layer_name(b, name, "relu"), y);
}

int build_bottleneck_network(struct builder *b, int x, const int blocks[4])
{
	struct window stem_pool = window_square(3, 2, 1);

	x = build_conv_bn_relu(b, "conv1", x, 64, window_square(7, 2, 3), epsilon);
	x = build_max_pool_window(b, "pool1", x, &stem_pool);
	for (int stage = 0; stage < 4; stage++) {
		const char *stem = arena_printf(&b->graph->arena, "stage%d.", stage + 1);

		for (int i = 0; i < blocks[stage]; i++) {
			int64_t stride = stage > 0 && i == 0 ? 2 : 1;

			x = bottleneck(b, layer_number(b, stem, i), x, INT64_C(64) << stage, stride,
				       i == 0);
		}
	}
	x = build_global_features(b, "pool", x);
	return build_linear(b, "fc", x, 1000);
}
