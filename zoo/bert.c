/* BERT (Devlin et al. 2018, arXiv 1810.04805) with the head that fills masked words: embeddings of
 * word, position and segment, blocks with the normalisation last, GELU with erf, and the words'
 * table with a bias as the matrix of the logits. Sequences are full, so nothing is masked. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

struct bert {
	int64_t width, heads;
	int depth;
};

/* Of the published uncased models. */
enum { WORDS = 30522, POSITIONS = 512, SEGMENTS = 2 };
#define DROPOUT 0.1
#define EPSILON 1e-12
/* Of all matrices, as published. With He's deviation, 3 times as large, the tokens of a deep
 * network that normalises last become equal, and the gradients of its queries are nothing but
 * rounding. */
#define DEVIATION 0.02

/* The length of which nine tenths of the published training were (appendix A.2). */
enum { TOKENS = 128 };

static int linear(struct builder *b, const char *name, int x, int64_t features)
{
	return build_linear_normal(b, name, x, features, DEVIATION);
}

static int normalised(struct builder *b, const char *name, int x)
{
	return build_layer_norm(b, name, x, 1, EPSILON);
}

static int attention(struct builder *b, const struct bert *t, const char *block, int x,
		     int64_t tokens)
{
	const struct attention_sizes sizes = {.tokens = tokens,
					      .heads = t->heads,
					      .features = t->width / t->heads,
					      .mask = VALUE_NONE,
					      .dropout = DROPOUT};
	int qkv[3];

	qkv[0] = linear(b, layer_name(b, block, "query"), x, t->width);
	qkv[1] = linear(b, layer_name(b, block, "key"), x, t->width);
	qkv[2] = linear(b, layer_name(b, block, "value"), x, t->width);
	x = build_attention(b, block, qkv, &sizes);
	x = linear(b, layer_name(b, block, "project"), x, t->width);
	return build_dropout(b, layer_name(b, block, "drop1"), x, DROPOUT);
}

static int encoder_block(struct builder *b, const struct bert *t, const char *block, int x,
			 int64_t tokens)
{
	int y = attention(b, t, block, x, tokens);

	x = build_add(b, layer_name(b, block, "sum1"), x, y);
	x = normalised(b, layer_name(b, block, "norm1"), x);
	y = linear(b, layer_name(b, block, "mlp1"), x, 4 * t->width);
	y = build_node(b, OP_GELU, layer_name(b, block, "gelu"), &y, 1, NULL);
	y = linear(b, layer_name(b, block, "mlp2"), y, t->width);
	y = build_dropout(b, layer_name(b, block, "drop2"), y, DROPOUT);
	x = build_add(b, layer_name(b, block, "sum2"), x, y);
	return normalised(b, layer_name(b, block, "norm2"), x);
}

/* Features of the input, (batch x tokens) x width; *words is the words' table. */
static int embedded(struct builder *b, const struct bert *t, int tokens, int64_t length, int *words)
{
	int segments, places, x;

	x = build_scaled_embedding(b, "words", tokens, WORDS, t->width, DEVIATION, words);
	places = build_positions(b, "positions", POSITIONS, t->width, DEVIATION, length, NULL);
	x = build_add(b, "placed", x, places);
	segments = build_scaled_embedding(b, "segments", tokens + 1, SEGMENTS, t->width, DEVIATION,
					  NULL);
	x = build_add(b, "embedded", x, segments);
	x = build_reshape(b, "rows", x, 2, (const int64_t[]){-1, t->width});
	return build_dropout(b, "drop", normalised(b, "norm", x), DROPOUT);
}

static int build_bert(struct builder *b, const struct bert *t, int tokens)
{
	int64_t length = build_length(b, tokens);
	int words, bias, x = embedded(b, t, tokens, length, &words);

	for (int i = 0; i < t->depth; i++)
		x = encoder_block(b, t, layer_number(b, "block", i), x, length);
	x = linear(b, "transform", x, t->width);
	x = build_node(b, OP_GELU, "transform.gelu", &x, 1, NULL);
	x = normalised(b, "transform.norm", x);
	bias = build_parameter(b, "head.bias", 1, (const int64_t[]){WORDS}, FILL_ZERO, 0);
	return build_tied_linear(b, "head", x, words, bias);
}

static int base_layers(struct builder *b, int tokens)
{
	static const struct bert base = {.width = 768, .heads = 12, .depth = 12};

	return build_bert(b, &base, tokens);
}

static int tiny_layers(struct builder *b, int tokens)
{
	static const struct bert tiny = {.width = 128, .heads = 2, .depth = 2};

	return build_bert(b, &tiny, tokens);
}

#define INPUT(name_)                                                                               \
	{                                                                                          \
		.name = name_, .dtype = DTYPE_I64, .rank = 1, .dims = { TOKENS }                   \
	}

const struct network zoo_bert_base = {
	.name = "bert-base",
	.summary = "fills masked words, 12 blocks, 110M parameters (Devlin 2018)",
	.dataset = "synthetic",
	.inputs = {INPUT("input_ids"), INPUT("token_type_ids")},
	.input_count = 2,
	.label_rank = 1,
	.label_dims = {TOKENS},
	.labels_ignored = 0.85,
	.classes = WORDS,
	.tokens = TOKENS,
	.tokens_max = POSITIONS,
	.parameters = 109514298,
	.macs = 14249558016,
	.gate_learning_rate = 0.01,
	.layers = base_layers,
};

const struct network zoo_bert_tiny = {
	.name = "bert-tiny",
	.summary = "fills masked words, 2 blocks of width 128 (Turc 2019)",
	.dataset = "synthetic",
	.inputs = {INPUT("input_ids"), INPUT("token_type_ids")},
	.input_count = 2,
	.label_rank = 1,
	.label_dims = {TOKENS},
	.labels_ignored = 0.85,
	.classes = WORDS,
	.tokens = TOKENS,
	.tokens_max = POSITIONS,
	.parameters = 4416698,
	.macs = 560889856,
	.gate_learning_rate = 0.01,
	.layers = tiny_layers,
};
