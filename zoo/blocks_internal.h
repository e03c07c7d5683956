/* Private to zoo/: layers that several networks share. */
#ifndef PRONY_ZOO_BLOCKS_INTERNAL_H
#define PRONY_ZOO_BLOCKS_INTERNAL_H

#include "graph/graph.h"
#include "zoo/zoo.h"

/* "BLOCK.LAYER", which lives as long as the graph. */
const char *layer_name(struct builder *b, const char *block, const char *layer);
/* "STEM" and a number: "conv3". */
const char *layer_number(struct builder *b, const char *stem, int number);

/* PyTorch's momentum of 0.1; ONNX counts one minus it. */
#define TORCH_BATCH_NORM_MOMENTUM 0.9

/* Convolution without bias and batch normalisation: NAME, NAME.bn. */
int build_conv_bn(struct builder *b, const char *name, int x, int64_t channels,
		  struct window window, double epsilon);
/* The same with a ReLU behind it: NAME.relu. */
int build_conv_bn_relu(struct builder *b, const char *name, int x, int64_t channels,
		       struct window window, double epsilon);
/* Convolution with bias and ReLU: NAME, NAME.relu. */
int build_conv_relu(struct builder *b, const char *name, int x, int64_t channels,
		    struct window window);
int build_linear_relu(struct builder *b, const char *name, int x, int64_t features);
/* Mean over height and width, flattened: NAME, NAME.flat. */
int build_global_features(struct builder *b, const char *name, int x);

/* Channels of an inception module: the 1x1 branch, the 3x3 and 5x5 branches with their 1x1
 * reductions, and the projection behind the pool. */
struct inception_widths {
	const char *name;
	int64_t one, three_reduce, three, five_reduce, five, pool;
};

/* The nine modules of GoogLeNet, 3a to 5b (Szegedy et al. 2014, arXiv 1409.4842, table 1). */
enum { INCEPTION_3B = 1, INCEPTION_4E = 6, INCEPTION_5B = 8, INCEPTION_COUNT };
extern const struct inception_widths inception_widths[INCEPTION_COUNT];

/* A residual network for ImageNet (He et al. 2015, arXiv 1512.03385, table 1) of bottlenecks with
 * the stride in the 3x3 convolution, which is called v1.5; `blocks` counts those of the four
 * stages. */
int build_bottleneck_network(struct builder *b, int x, const int blocks[4]);

/* Transformers (zoo/transformer.c). */
struct attention_sizes {
	int64_t tokens, heads, features; /* features of one head */
	int mask;			 /* added to the scores, tokens x tokens; or VALUE_NONE */
	double dropout;			 /* of the weights; 0: none */
	int64_t kv_heads; /* of keys and values, each for heads / kv_heads queries; 0: heads */
	const int
		*rotary; /* cosines and sines that turn queries and keys (build_rotary); or NULL */
	const struct cache_step *cache; /* keys and values are kept in caches; or NULL */
};

/* softmax(q k' / sqrt(features) + mask) v for each head. qkv: three values of the shape (batch x
 * tokens) x (heads x features), keys and values with kv_heads. Returns a value shaped as q is. */
int build_attention(struct builder *b, const char *block, const int qkv[3],
		    const struct attention_sizes *sizes);
/* The states `cosine` and `sine`, tokens x features, of rotary positions; in a decode step their
 * rows at each sample's position. */
void build_rotary(struct builder *b, int64_t tokens, int64_t features, int64_t base,
		  const struct cache_step *cache, int out[2]);
/* A state tokens x tokens: 0 up to the diagonal, and a large negative number right of it. In a
 * decode step the row of each sample's position, batch x 1 x 1 x rows of the caches. */
int build_causal_mask(struct builder *b, const char *name, int64_t tokens,
		      const struct cache_step *cache);
/* In a prefill step, the rows of the last token of each sample; else x itself. */
int build_last_token(struct builder *b, const char *name, int x, int64_t tokens,
		     const struct cache_step *cache);
/* An embedding whose table NAME.weight has this deviation; *table, unless NULL, is the table. */
int build_scaled_embedding(struct builder *b, const char *name, int indices, int64_t rows,
			   int64_t width, double deviation, int *table);
/* A full layer whose weights have this deviation. */
int build_linear_normal(struct builder *b, const char *name, int x, int64_t features,
			double deviation);
/* The same without a bias. */
int build_projection(struct builder *b, const char *name, int x, int64_t features,
		     double deviation);
/* The number of tokens of an input batch x tokens. */
int64_t build_length(const struct builder *b, int tokens);
/* The first `length` rows of a trained table of positions with this deviation; in a decode step the
 * row of each sample's position, batch x 1 x width. */
int build_positions(struct builder *b, const char *name, int64_t rows, int64_t width,
		    double deviation, int64_t length, const struct cache_step *cache);
/* x times the transposed table of an embedding: the features become a number for each of its rows.
 * `bias` may be VALUE_NONE. */
int build_tied_linear(struct builder *b, const char *name, int x, int table, int bias);
/* A dropout layer, or x itself where the ratio is 0. */
int build_dropout_if(struct builder *b, const char *name, int x, double ratio);

#endif
