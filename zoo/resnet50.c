/* ResNet with 50 layers. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	return build_bottleneck_network(b, input, (const int[]){3, 4, 6, 3});
}

const struct network zoo_resnet50 = {
	.name = "resnet50",
	.summary = "residual network v1.5 of 50 layers (He 2015; torchvision)",
	.dataset = "imagenet",
	.inputs = {{.name = "input", .rank = 3, .dims = {3, 224, 224}}},
	.input_count = 1,
	.classes = 1000,
	.parameters = 25557032,
	.macs = 4089184256,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
