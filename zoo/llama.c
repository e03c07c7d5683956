/* Llama (Touvron et al. 2023, arXiv 2302.13971 and 2307.09288) in two published small sizes whose
 * keys and values have fewer heads than the queries: root mean square normalisation first, rotary
 * positions, SwiGLU, no biases, and the embedding's table as the matrix of the logits. */
#include "zoo/blocks_internal.h"
#include "zoo/networks_internal.h"

struct llama {
	int64_t words, width, heads, kv_heads, hidden;
	int depth;
};

#define EPSILON 1e-5
#define DEVIATION 0.02 /* of all matrices, as published */
enum { ROTARY_BASE = 10000 };

static int normalised(struct builder *b, const char *name, int x)
{
	return build_rms_norm(b, name, x, 1, EPSILON);
}

static int projection(struct builder *b, const char *block, const char *name, int x,
		      int64_t features)
{
	return build_projection(b, layer_name(b, block, name), x, features, DEVIATION);
}

static int decoder_block(struct builder *b, const struct llama *l, const char *block, int x,
			 const struct attention_sizes *sizes)
{
	int64_t keys = l->kv_heads * sizes->features;
	int y = normalised(b, layer_name(b, block, "norm1"), x), qkv[3], gate;

	qkv[0] = projection(b, block, "query", y, l->width);
	qkv[1] = projection(b, block, "key", y, keys);
	qkv[2] = projection(b, block, "value", y, keys);
	y = build_attention(b, block, qkv, sizes);
	y = projection(b, block, "project", y, l->width);
	x = build_add(b, layer_name(b, block, "sum1"), x, y);
	y = normalised(b, layer_name(b, block, "norm2"), x);
	gate = projection(b, block, "gate", y, l->hidden);
	gate = build_swish(b, layer_name(b, block, "swish"), gate);
	y = projection(b, block, "up", y, l->hidden);
	y = build_mul(b, layer_name(b, block, "gated"), gate, y);
	y = projection(b, block, "down", y, l->width);
	return build_add(b, layer_name(b, block, "sum2"), x, y);
}

static int build_llama(struct builder *b, const struct llama *l, int tokens,
		       const struct cache_step *cache)
{
	int64_t length = build_length(b, tokens);
	struct attention_sizes sizes = {.tokens = length,
					.heads = l->heads,
					.kv_heads = l->kv_heads,
					.features = l->width / l->heads,
					.cache = cache};
	int table, rotary[2];
	int x = build_scaled_embedding(b, "embed", tokens, l->words, l->width, DEVIATION, &table);

	x = build_reshape(b, "rows", x, 2, (const int64_t[]){-1, l->width});
	build_rotary(b, length, sizes.features, ROTARY_BASE, cache, rotary);
	sizes.rotary = rotary;
	sizes.mask = build_causal_mask(b, "causal", length, cache);
	for (int i = 0; i < l->depth; i++)
		x = decoder_block(b, l, layer_number(b, "block", i), x, &sizes);
	x = build_last_token(b, "last", x, length, cache);
	return build_tied_linear(b, "head", normalised(b, "norm", x), table, VALUE_NONE);
}

static const struct llama small = {
	.words = 49152, .width = 576, .heads = 9, .kv_heads = 3, .hidden = 1536, .depth = 30};
static const struct llama tiny = {
	.words = 512, .width = 64, .heads = 8, .kv_heads = 4, .hidden = 172, .depth = 5};

static int small_layers(struct builder *b, int tokens)
{
	return build_llama(b, &small, tokens, NULL);
}

static int small_step(struct builder *b, int tokens, const struct cache_step *cache)
{
	return build_llama(b, &small, tokens, cache);
}

static int tiny_layers(struct builder *b, int tokens)
{
	return build_llama(b, &tiny, tokens, NULL);
}

static int tiny_step(struct builder *b, int tokens, const struct cache_step *cache)
{
	return build_llama(b, &tiny, tokens, cache);
}

const struct network zoo_llama_small = {
	.name = "llama-small",
	.summary = "language model of 30 blocks, 135M parameters (SmolLM-135M, Allal 2024)",
	.dataset = "synthetic",
	.inputs = {{.name = "tokens", .dtype = DTYPE_I64, .rank = 1, .dims = {512}}},
	.input_count = 1,
	.label_rank = 1,
	.label_dims = {512},
	.classes = 49152,
	.tokens = 512,
	.tokens_max = 2048,
	.parameters = 134515008,
	.macs = 77913391104,
	.gate_learning_rate = 0.01,
	.layers = small_layers,
	.step = small_step,
};

const struct network zoo_llama_tiny = {
	.name = "llama-tiny",
	.summary =
		"language model of 5 blocks of width 64 (stories260K of llama2.c, Karpathy 2023)",
	.dataset = "synthetic",
	.inputs = {{.name = "tokens", .dtype = DTYPE_I64, .rank = 1, .dims = {128}}},
	.input_count = 1,
	.label_rank = 1,
	.label_dims = {128},
	.classes = 512,
	.tokens = 128,
	.tokens_max = 512,
	.parameters = 260032,
	.macs = 43679744,
	.gate_learning_rate = 0.01,
	.layers = tiny_layers,
	.step = tiny_step,
};
