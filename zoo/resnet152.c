/* ResNet with 152 layers. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	return build_bottleneck_network(b, input, (const int[]){3, 8, 36, 3});
}

const struct network zoo_resnet152 = {
	.name = "resnet152",
	.summary = "residual network v1.5 of 152 layers (He 2015; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 60192808,
	.macs = 11513626624,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
