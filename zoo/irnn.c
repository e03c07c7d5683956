#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_irnn(b, "rnn", input, 100, 0.001);

	return build_linear(b, "fc", x, 10);
}

const struct network zoo_irnn = {
	.name = "irnn",
	.summary = "ReLU layer of 100 units over 784 pixels, identity at first (Le 2015; Keras "
		   "examples, mnist_irnn)",
	.dataset = "synthetic",
	.input_rank = 2,
	.input_dims = {784, 1},
	.classes = 10,
	.tokens = 784,
	.parameters = 11210,
	.macs = 7919400,
	.gate_learning_rate = 0.001,
	/* That of the example. 784 steps raise what 0.001 adds to each recurrent weight beyond
	   fp32. */
	.gate_rmsprop_rate = 1e-6,
	.layers = layers,
};
