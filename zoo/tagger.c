/*
 * prony's own small sequence tagger: two inputs, one of them integers, and a loss for each token.
 */
#include "zoo/networks_internal.h"

enum { TOKENS = 16, WORDS = 64, EMBEDDED = 24, FEATURES = 8, TAGS = 10 };

static int layers(struct builder *b, int tokens)
{
	int features = tokens + 1;
	int x = build_embedding(b, "embed", tokens, WORDS, EMBEDDED);
	struct attributes rows;

	x = build_concat(b, "joined", (const int[]){x, features}, 2, -1);
	operator_default_attributes(OP_RESHAPE, &rows);
	rows.ints = (struct int_list){.items = {-1, EMBEDDED + FEATURES}, .count = 2};
	x = build_node(b, OP_RESHAPE, "rows", &x, 1, &rows);
	x = build_linear(b, "hidden", x, 48);
	x = build_node(b, OP_TANH, "tanh", &x, 1, NULL);
	return build_linear(b, "tags", x, TAGS);
}

const struct network zoo_tagger = {
	.name = "tagger",
	.summary = "tags 16 tokens, each from an embedding and 8 features (prony's own)",
	.dataset = "synthetic",
	.inputs = {{.name = "tokens", .dtype = DTYPE_I64, .rank = 1, .dims = {TOKENS}},
		   {.name = "features", .rank = 2, .dims = {TOKENS, FEATURES}}},
	.input_count = 2,
	.label_rank = 1,
	.label_dims = {TOKENS},
	.labels_ignored = 0.2,
	.classes = TAGS,
	.tokens = TOKENS,
	.parameters = 3610,
	.macs = 32256,
	.gate_learning_rate = 0.1,
	.layers = layers,
};
