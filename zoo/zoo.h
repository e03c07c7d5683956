/* The built-in networks, one file each; `prony list networks` prints this table. */
#ifndef PRONY_ZOO_ZOO_H
#define PRONY_ZOO_ZOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cell/vocabulary.h"
#include "graph/graph.h"

struct network_file;

#define NETWORK_MAX_INPUTS 4

struct network_input {
	const char *name;
	enum dtype dtype;
	int rank;	 /* without the batch */
	int64_t dims[4]; /* where the length may change (tokens_max), dimension 0 is the tokens */
};

/* Rows of a key-value cache behind the prompt: as many positions as a process has batches. */
#define CACHE_ROOM 8

/* A step of a language model that keeps keys and values in caches: the states NAME.cache of the
 * shape batch x heads x rows x features. */
struct cache_step {
	int64_t rows; /* of each cache */
	/* Decode: the input with the position of each sample's one token, where its key and value
	 * are written. VALUE_NONE for prefill: all tokens from row 0 on, logits of the last one. */
	int positions;
};

struct network {
	const char *name;
	const char *summary; /* one line with the source of the definition */
	const char *dataset; /* the data set it takes by default: "mnist"; may have no reader yet */
	struct network_input inputs[NETWORK_MAX_INPUTS];
	int input_count;
	int label_rank; /* without the batch; 0: a class for each sample */
	int64_t label_dims[2];
	double labels_ignored; /* the share of the labels that are -1 */
	int64_t classes;
	int64_t parameters, macs; /* published numbers, for batch 1; a test compares prony's */
	int64_t tokens;		  /* of one sample; 0: it is no sequence */
	int64_t tokens_max;	  /* the longest sequence; 0: its length is fixed */
	enum stage stage; /* prefill, decode: the graph is that of this step (network_at_stage) */
	/* Decode: elements that a step must read, of the weights, and of the caches of a sample. */
	int64_t weights_read, caches_read;
	double gate_learning_rate;
	double gate_rmsprop_rate; /* and of AdamW; 0: gate_learning_rate */
	bool half_squares; /* the loss is half the sum of the logits' squares, not cross-entropy */
	/* Appends layers up to the logits and returns them; errors stay in the builder. `input` is
	 * the first input, the others follow it. */
	int (*layers)(struct builder *b, int input);
	/* The same over the same weights for a step with caches; NULL: it has no such steps. */
	int (*step)(struct builder *b, int tokens, const struct cache_step *cache);
	const struct network_file *file; /* an ONNX file instead of layers; may be NULL */
};

extern const struct network *const zoo_networks[];
extern const size_t zoo_network_count;

/* NULL if there is none; then *nearest (may be NULL) is a name to suggest, or NULL. */
const struct network *zoo_find(const char *name, const char **nearest);

/* Whether its input is what data sets contain: one F32 tensor with one class per sample. */
bool network_takes_data_sets(const struct network *network);

/* Whether text can feed it: one I64 input of tokens, a label for each, and a class for each byte.
 */
bool network_takes_text(const struct network *network);

/* The learning rate of the parity gate for an optimiser. */
double network_gate_rate(const struct network *network, enum optimiser optimiser);

/* The network for sequences of another length: *out is a copy with other inputs and labels and its
 * own MACs. `tokens` is from 1 to tokens_max. */
enum prony_status network_at_length(const struct network *network, int64_t tokens,
				    struct network *out, struct error *err);

/* The same network in a stage. Prefill and decode have graphs of their own (zoo_build_step), and
 * other MACs; PRONY_UNSUPPORTED if the network has none, or no positions are left behind the
 * prompt. */
enum prony_status network_at_stage(const struct network *network, enum stage stage,
				   struct network *out, struct error *err);

/* Builds the forward graph for `batch` samples, with its loss; the caller frees it with
 * graph_release. */
enum prony_status zoo_build(const struct network *network, int64_t batch, struct graph *out,
			    struct error *err);
/* Builds the graph of the stage prefill or decode, or forward over the same weights. `tokens`: of
 * the prompt, which the caches hold before a decode step. The network has a function `step`. */
enum prony_status zoo_build_step(const struct network *network, int64_t batch, int64_t tokens,
				 enum stage stage, struct graph *out, struct error *err);

#endif
