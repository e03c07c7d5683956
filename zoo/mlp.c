/* A multilayer perceptron with dropout. */
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_linear(b, "fc1", input, 512);

	x = build_relu(b, "relu1", x);
	x = build_dropout(b, "dropout1", x, 0.2);
	x = build_linear(b, "fc2", x, 512);
	x = build_relu(b, "relu2", x);
	x = build_dropout(b, "dropout2", x, 0.2);
	return build_linear(b, "fc3", x, 10);
}

const struct network zoo_mlp = {
	.name = "mlp",
	.summary = "784-512-512-10 with ReLU and dropout (Keras examples, mnist_mlp)",
	.dataset = "mnist",
	.inputs = {{.name = "input", .rank = 1, .dims = {784}}},
	.input_count = 1,
	.classes = 10,
	.parameters = 669706,
	.macs = 668672,
	.gate_learning_rate = 0.01,
	.layers = layers,
};
