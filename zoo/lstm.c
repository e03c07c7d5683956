/* An LSTM that reads characters. */
#include "zoo/networks_internal.h"

static int layers(struct builder *b, int input)
{
	int x = build_lstm(b, "lstm", input, 128);

	return build_linear(b, "fc", x, 60);
}

const struct network zoo_lstm = {
	.name = "lstm",
	.summary = "LSTM of 128 units over 40 characters from an alphabet of 60 (Keras examples, "
		   "lstm_text_generation)",
	.dataset = "synthetic",
	.inputs = {{.name = "input", .rank = 2, .dims = {40, 60}}},
	.input_count = 1,
	.classes = 60,
	.tokens = 40,
	.parameters = 104508,
	.macs = 3857920,
	.gate_learning_rate = 0.001,
	.layers = layers,
};
