/* GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"): learned
 * positions, blocks with the normalisation first, GELU by tanh, and the embedding's table as the
 * matrix of the logits. One product makes query, key and value, as published. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

struct gpt2 {
	int64_t words, positions, width, heads;
	int depth;
	double dropout;
};

#define EPSILON 1e-5

static int attention(struct builder *b, const struct gpt2 *g, const char *block, int x,
		     const struct attention_sizes *sizes)
{
	static const char *const names[] = {"q", "k", "v"};
	int qkv[3];

	x = build_linear(b, layer_name(b, block, "qkv"), x, 3 * g->width);
	for (int i = 0; i < 3; i++)
		qkv[i] = build_slice(b, layer_name(b, block, names[i]), x, 1, i * g->width,
				     (i + 1) * g->width, 1);
	x = build_attention(b, block, qkv, sizes);
	x = build_linear(b, layer_name(b, block, "project"), x, g->width);
	return build_dropout_if(b, layer_name(b, block, "drop1"), x, g->dropout);
}

static int decoder_block(struct builder *b, const struct gpt2 *g, const char *block, int x,
			 const struct attention_sizes *sizes)
{
	struct attributes tanh_form;
	int y = build_layer_norm(b, layer_name(b, block, "norm1"), x, 1, EPSILON);

	operator_default_attributes(OP_GELU, &tanh_form);
	tanh_form.approximate = 1;
	x = build_add(b, layer_name(b, block, "sum1"), x, attention(b, g, block, y, sizes));
	y = build_layer_norm(b, layer_name(b, block, "norm2"), x, 1, EPSILON);
	y = build_linear(b, layer_name(b, block, "mlp1"), y, 4 * g->width);
	y = build_node(b, OP_GELU, layer_name(b, block, "gelu"), &y, 1, &tanh_form);
	y = build_linear(b, layer_name(b, block, "mlp2"), y, g->width);
	y = build_dropout_if(b, layer_name(b, block, "drop2"), y, g->dropout);
	return build_add(b, layer_name(b, block, "sum2"), x, y);
}

static int build_gpt2(struct builder *b, const struct gpt2 *g, int tokens,
		      const struct cache_step *cache)
{
	int64_t length = build_length(b, tokens);
	struct attention_sizes sizes = {.tokens = length,
					.heads = g->heads,
					.features = g->width / g->heads,
					.dropout = g->dropout,
					.cache = cache};
	int table;
	int x = build_scaled_embedding(b, "embed", tokens, g->words, g->width, 0.02, &table);

	x = build_add(b, "embedded", x,
		      build_positions(b, "positions", g->positions, g->width, 0.01, length, cache));
	x = build_reshape(b, "rows", x, 2, (const int64_t[]){-1, g->width});
	x = build_dropout_if(b, "drop", x, g->dropout);
	sizes.mask = build_causal_mask(b, "causal", length, cache);
	for (int i = 0; i < g->depth; i++)
		x = decoder_block(b, g, layer_number(b, "block", i), x, &sizes);
	x = build_last_token(b, "last", x, length, cache);
	x = build_layer_norm(b, "norm", x, 1, EPSILON);
	return build_tied_linear(b, "head", x, table, VALUE_NONE);
}

static const struct gpt2 small = {
	.words = 50257, .positions = 1024, .width = 768, .heads = 12, .depth = 12, .dropout = 0.1};
static const struct gpt2 bytes = {
	.words = 256, .positions = 1024, .width = 128, .heads = 4, .depth = 4};

static int small_layers(struct builder *b, int tokens)
{
	return build_gpt2(b, &small, tokens, NULL);
}

static int small_step(struct builder *b, int tokens, const struct cache_step *cache)
{
	return build_gpt2(b, &small, tokens, cache);
}

static int bytes_layers(struct builder *b, int tokens)
{
	return build_gpt2(b, &bytes, tokens, NULL);
}

static int bytes_step(struct builder *b, int tokens, const struct cache_step *cache)
{
	return build_gpt2(b, &bytes, tokens, cache);
}

const struct network zoo_gpt2 = {
	.name = "gpt2",
	.summary = "language model of 12 blocks, 124M parameters (Radford 2019)",
	.dataset = "synthetic",
	.inputs = {{.name = "tokens", .dtype = DTYPE_I64, .rank = 1, .dims = {1024}}},
	.input_count = 1,
	.label_rank = 1,
	.label_dims = {1024},
	.classes = 50257,
	.tokens = 1024,
	.tokens_max = 1024,
	.parameters = 124439808,
	.macs = 145824153600,
	.gate_learning_rate = 0.01,
	.layers = small_layers,
	.step = small_step,
};

const struct network zoo_gpt2_bytes = {
	.name = "gpt2-bytes",
	.summary = "language model over bytes, 4 blocks of width 128 (prony's own, after GPT-2)",
	.dataset = "synthetic",
	.inputs = {{.name = "tokens", .dtype = DTYPE_I64, .rank = 1, .dims = {128}}},
	.input_count = 1,
	.label_rank = 1,
	.label_dims = {128},
	.classes = 256,
	.tokens = 128,
	.tokens_max = 1024,
	.parameters = 957184,
	.macs = 121634816,
	.gate_learning_rate = 0.01,
	.layers = bytes_layers,
	.step = bytes_step,
};
