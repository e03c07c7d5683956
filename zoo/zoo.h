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
	double gate_learning_rate;
	double gate_rmsprop_rate; /* and of AdamW; 0: gate_learning_rate */
	bool half_squares; /* the loss is half the sum of the logits' squares, not cross-entropy */
	/* Appends layers up to the logits and returns them; errors stay in the builder. `input` is
	 * the first input, the others follow it. */
	int (*layers)(struct builder *b, int input);
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

/* Builds the forward graph for `batch` samples, with its loss; the caller frees it with
 * graph_release. */
enum prony_status zoo_build(const struct network *network, int64_t batch, struct graph *out,
			    struct error *err);

#endif
