/* A recurrent network of ReLU units that starts with the identity. */
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_irnn(b, "rnn", input, 100, 0.001);

	return build_linear(b, "fc", x, 10);
}

const struct network zoo_irnn = {
	.name = "irnn",
	.summary = "recurrent ReLU layer of 100 units over 784 pixels, initialised with the "
		   "identity (Le 2015; Keras examples, mnist_irnn)",
	.dataset = "synthetic",
	.inputs = {{.name = "input", .rank = 2, .dims = {784, 1}}},
	.input_count = 1,
	.classes = 10,
	.tokens = 784,
	.parameters = 11210,
	.macs = 7919400,
	.gate_learning_rate = 0.001,
	/* The learning rate of the example. With 0.001, a change of the recurrent weights would
	 * grow beyond fp32 in 784 steps. */
	.gate_rmsprop_rate = 1e-6,
	.layers = layers,
};
