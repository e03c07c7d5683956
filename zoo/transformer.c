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

int build_attention(struct builder *b, const char *block, const int qkv[3],
		    const struct attention_sizes *sizes)
{
	const char *names[] = {layer_name(b, block, "query"), layer_name(b, block, "key"),
			       layer_name(b, block, "value")};
	int scale = constant(b, layer_name(b, block, "scale"), 1 / sqrt((double)sizes->features));
	int q = build_mul(b, layer_name(b, block, "scaled"), qkv[0], scale), parts[3], x;

	for (int i = 0; i < 3; i++)
		parts[i] = split_heads(b, names[i], i == 0 ? q : qkv[i], sizes->tokens,
				       sizes->heads, sizes->features);
	x = build_transpose(b, layer_name(b, block, "turned"), parts[1],
			    (const int64_t[]){0, 1, 3, 2});
	x = build_matmul(b, layer_name(b, block, "scores"), parts[0], x);
	if (sizes->mask != VALUE_NONE)
		x = build_add(b, layer_name(b, block, "masked"), x, sizes->mask);
	x = build_softmax(b, layer_name(b, block, "softmax"), x, -1);
	x = build_dropout_if(b, layer_name(b, block, "drop"), x, sizes->dropout);
	x = build_matmul(b, layer_name(b, block, "mixed"), x, parts[2]);
	x = build_transpose(b, layer_name(b, block, "tokens"), x, (const int64_t[]){0, 2, 1, 3});
	return build_reshape(b, layer_name(b, block, "rows"), x, 2,
			     (const int64_t[]){-1, sizes->heads * sizes->features});
}

int build_causal_mask(struct builder *b, const char *name, int64_t tokens)
{
	return build_state(b, name, 2, (const int64_t[]){tokens, tokens}, FILL_CAUSAL);
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

int64_t build_length(const struct builder *b, int tokens)
{
	return b->error.code == PRONY_OK ? b->graph->values[tokens].shape.dims[1] : 0;
}

int build_positions(struct builder *b, const char *name, int64_t rows, int64_t width,
		    double deviation, int64_t length)
{
	int table = build_parameter(b, name, 2, (const int64_t[]){rows, width}, FILL_NORMAL, 1);

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	b->graph->values[table].fill_scale = deviation;
	return length == rows ? table
			      : build_slice(b, layer_name(b, name, "used"), table, 0, 0, length, 1);
}

int build_tied_linear(struct builder *b, const char *name, int x, int table, int bias)
{
	const int inputs[] = {x, table, bias};
	struct attributes attributes;

	operator_default_attributes(OP_GEMM, &attributes);
	attributes.trans_b = true;
	return build_node(b, OP_GEMM, name, inputs, bias == VALUE_NONE ? 2 : 3, &attributes);
}
