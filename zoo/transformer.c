/* Blocks of transformers (Vaswani et al. 2017, arXiv 1706.03762). Tokens are rows of features:
 * (batch x tokens) x width. */
#include <math.h>

#include "zoo/blocks_internal.h"

int build_dropout_if(struct builder *b, const char *name, int x, double ratio)
{
	return ratio > 0 ? build_dropout(b, name, x, ratio) : x;
}

/* Rows of features as each head's tokens: batch x heads x tokens x features of a head. */
static int split_heads(struct builder *b, const char *name, int x, int64_t tokens, int64_t heads,
		       int64_t features)
{
	x = build_reshape(b, layer_name(b, name, "parts"), x, 4,
			  (const int64_t[]){-1, tokens, heads, features});
	return build_transpose(b, layer_name(b, name, "heads"), x, (const int64_t[]){0, 2, 1, 3});
}

/* A state with one number. */
static int constant(struct builder *b, const char *name, double number)
{
	int value = build_state(b, name, 0, NULL, FILL_ONE);

	if (b->error.code == PRONY_OK)
		b->graph->values[value].fill_scale = number;
	return value;
}

static int scaled(struct builder *b, const char *block, int q, int64_t features)
{
	int scale = constant(b, layer_name(b, block, "scale"), 1 / sqrt((double)features));

	return build_mul(b, layer_name(b, block, "scaled"), q, scale);
}

/* x cosine + (-x2, x1) sine, where x1 and x2 are the halves of each head's features. */
static int turned(struct builder *b, const char *name, int x, int64_t features, const int rotary[2])
{
	int first = build_slice(b, layer_name(b, name, "first"), x, 3, 0, features / 2, 1);
	int second = build_slice(b, layer_name(b, name, "second"), x, 3, features / 2, features, 1);
	int halves[2] = {VALUE_NONE, first};

	halves[0] = build_node(b, OP_NEG, layer_name(b, name, "negative"), &second, 1, NULL);
	second = build_concat(b, layer_name(b, name, "swapped"), halves, 2, 3);
	second = build_mul(b, layer_name(b, name, "sine"), second, rotary[1]);
	first = build_mul(b, layer_name(b, name, "cosine"), x, rotary[0]);
	return build_add(b, layer_name(b, name, "turned"), first, second);
}

/* Each head of keys or values as often as it has heads of queries. */
static int repeated(struct builder *b, const char *name, int x, const struct attention_sizes *sizes)
{
	int64_t groups = sizes->heads / sizes->kv_heads;

	x = build_reshape(
		b, layer_name(b, name, "single"), x, 4,
		(const int64_t[]){-1, sizes->kv_heads, 1, sizes->tokens * sizes->features});
	x = build_expand(b, layer_name(b, name, "repeated"), x, 4,
			 (const int64_t[]){1, 1, groups, 1});
	return build_reshape(b, layer_name(b, name, "all"), x, 4,
			     (const int64_t[]){-1, sizes->heads, sizes->tokens, sizes->features});
}

static bool decodes(const struct cache_step *cache)
{
	return cache && cache->positions != VALUE_NONE;
}

/* Writes keys or values, batch x heads x tokens x features, into their cache. Returns what the
 * tokens of this step attend to: in a decode step the cache. */
static int cached(struct builder *b, const char *name, int x, const struct cache_step *cache)
{
	const char *state = layer_name(b, name, "cache");
	int inputs[3] = {VALUE_NONE, x, cache->positions}, present;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	struct shape shape = b->graph->values[x].shape;

	shape.dims[2] = cache->rows;
	inputs[0] = build_state(b, state, 4, shape.dims, FILL_NORMAL);
	present = build_node(b, OP_TENSOR_SCATTER, layer_name(b, name, "present"), inputs,
			     decodes(cache) ? 3 : 2, NULL);
	return decodes(cache) ? present : x;
}

/* Queries (part 0), keys or values as batch x heads x tokens x features. */
static int attention_part(struct builder *b, const char *name, int part, int x,
			  const struct attention_sizes *sizes)
{
	bool grouped = part > 0 && sizes->kv_heads > 0 && sizes->kv_heads < sizes->heads;

	x = split_heads(b, name, x, sizes->tokens, grouped ? sizes->kv_heads : sizes->heads,
			sizes->features);
	if (sizes->rotary != NULL && part < 2)
		x = turned(b, name, x, sizes->features, sizes->rotary);
	if (sizes->cache != NULL && part > 0)
		x = cached(b, name, x, sizes->cache);
	return grouped && !decodes(sizes->cache) ? repeated(b, name, x, sizes) : x;
}

int build_attention(struct builder *b, const char *block, const int qkv[3],
		    const struct attention_sizes *sizes)
{
	static const char *const names[] = {"query", "key", "value"};
	/* The queries of one token that share keys are rows beside each other. */
	bool grouped_decode = decodes(sizes->cache) && sizes->kv_heads > 0;
	int64_t groups = grouped_decode ? sizes->heads / sizes->kv_heads : 1;
	const int64_t grouped[] = {-1, sizes->kv_heads, groups, sizes->features};
	int parts[3], x;

	/* The scale is the last but for what moves numbers, so that graph_attention finds it. */
	for (int i = 0; i < 3; i++) {
		x = qkv[i];
		if (i == 0 && sizes->rotary == NULL)
			x = scaled(b, block, x, sizes->features);
		parts[i] = attention_part(b, layer_name(b, block, names[i]), i, x, sizes);
		if (i == 0 && grouped_decode)
			parts[i] = build_reshape(b, layer_name(b, block, "groups"), parts[i], 4,
						 grouped);
		if (i == 0 && sizes->rotary != NULL)
			parts[i] = scaled(b, block, parts[i], sizes->features);
	}
	x = build_transpose(b, layer_name(b, block, "turned"), parts[1],
			    (const int64_t[]){0, 1, 3, 2});
	x = build_matmul(b, layer_name(b, block, "scores"), parts[0], x);
	if (sizes->mask != VALUE_NONE)
		x = build_add(b, layer_name(b, block, "masked"), x, sizes->mask);
	x = build_softmax(b, layer_name(b, block, "softmax"), x, -1);
	x = build_dropout_if(b, layer_name(b, block, "drop"), x, sizes->dropout);
	x = build_matmul(b, layer_name(b, block, "mixed"), x, parts[2]);
	if (grouped_decode)
		x = build_reshape(b, layer_name(b, block, "heads"), x, 4,
				  (const int64_t[]){-1, sizes->heads, 1, sizes->features});
	x = build_transpose(b, layer_name(b, block, "tokens"), x, (const int64_t[]){0, 2, 1, 3});
	return build_reshape(b, layer_name(b, block, "rows"), x, 2,
			     (const int64_t[]){-1, sizes->heads * sizes->features});
}

static int rotary_state(struct builder *b, const char *name, int64_t tokens, int64_t features,
			int64_t base, enum weight_fill fill)
{
	int state = build_state(b, name, 2, (const int64_t[]){tokens, features}, fill);

	if (b->error.code == PRONY_OK)
		b->graph->values[state].fan_in = base;
	return state;
}

/* The rows of a table at each sample's position, batch x 1 x 1 x columns. */
static int rows_at(struct builder *b, const char *name, int table, int64_t columns,
		   const struct cache_step *cache)
{
	table = build_node(b, OP_GATHER, layer_name(b, name, "row"),
			   (const int[]){table, cache->positions}, 2, NULL);
	return build_reshape(b, layer_name(b, name, "rows"), table, 4,
			     (const int64_t[]){-1, 1, 1, columns});
}

void build_rotary(struct builder *b, int64_t tokens, int64_t features, int64_t base,
		  const struct cache_step *cache, int out[2])
{
	static const char *const names[] = {"cosine", "sine"};
	static const enum weight_fill fills[] = {FILL_ROTARY_COSINE, FILL_ROTARY_SINE};

	for (int i = 0; i < 2; i++) {
		out[i] = rotary_state(b, names[i], decodes(cache) ? cache->rows : tokens, features,
				      base, fills[i]);
		if (decodes(cache))
			out[i] = rows_at(b, names[i], out[i], features, cache);
	}
}

int build_causal_mask(struct builder *b, const char *name, int64_t tokens,
		      const struct cache_step *cache)
{
	int64_t rows = decodes(cache) ? cache->rows : tokens;
	int mask = build_state(b, name, 2, (const int64_t[]){rows, rows}, FILL_CAUSAL);

	return decodes(cache) ? rows_at(b, name, mask, rows, cache) : mask;
}

int build_last_token(struct builder *b, const char *name, int x, int64_t tokens,
		     const struct cache_step *cache)
{
	if (!cache || decodes(cache) || b->error.code != PRONY_OK)
		return x;
	int64_t width = b->graph->values[x].shape.dims[1];

	x = build_reshape(b, layer_name(b, name, "tokens"), x, 3,
			  (const int64_t[]){-1, tokens, width});
	return build_flatten(
		b, name, build_slice(b, layer_name(b, name, "slice"), x, 1, tokens - 1, tokens, 1));
}

int build_scaled_embedding(struct builder *b, const char *name, int indices, int64_t rows,
			   int64_t width, double deviation, int *table)
{
	int x = build_embedding(b, name, indices, rows, width), weight;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	weight = b->graph->nodes[b->graph->node_count - 1].inputs[0];
	b->graph->values[weight].fill_scale = deviation;
	if (table != NULL)
		*table = weight;
	return x;
}

int build_linear_normal(struct builder *b, const char *name, int x, int64_t features,
			double deviation)
{
	struct value *weight;

	x = build_linear(b, name, x, features);
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	weight = &b->graph->values[b->graph->nodes[b->graph->node_count - 1].inputs[1]];
	weight->fill = FILL_NORMAL;
	weight->fill_scale = deviation;
	return x;
}

int build_projection(struct builder *b, const char *name, int x, int64_t features, double deviation)
{
	int weight;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	weight = build_parameter(b, layer_name(b, name, "weight"), 2,
				 (const int64_t[]){features, b->graph->values[x].shape.dims[1]},
				 FILL_NORMAL, 1);
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	b->graph->values[weight].fill_scale = deviation;
	return build_tied_linear(b, name, x, weight, VALUE_NONE);
}

int64_t build_length(const struct builder *b, int tokens)
{
	return b->error.code == PRONY_OK ? b->graph->values[tokens].shape.dims[1] : 0;
}

int build_positions(struct builder *b, const char *name, int64_t rows, int64_t width,
		    double deviation, int64_t length, const struct cache_step *cache)
{
	int table = build_parameter(b, name, 2, (const int64_t[]){rows, width}, FILL_NORMAL, 1);
	int row;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	b->graph->values[table].fill_scale = deviation;
	if (!decodes(cache))
		return length == rows ? table
				      : build_slice(b, layer_name(b, name, "used"), table, 0, 0,
						    length, 1);
	row = build_node(b, OP_GATHER, layer_name(b, name, "row"),
			 (const int[]){table, cache->positions}, 2, NULL);
	return build_reshape(b, layer_name(b, name, "used"), row, 3,
			     (const int64_t[]){-1, 1, width});
}

int build_tied_linear(struct builder *b, const char *name, int x, int table, int bias)
{
	const int inputs[] = {x, table, bias};
	struct attributes attributes;

	operator_default_attributes(OP_GEMM, &attributes);
	attributes.trans_b = true;
	return build_node(b, OP_GEMM, name, inputs, bias == VALUE_NONE ? 2 : 3, &attributes);
}
