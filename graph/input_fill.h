/* What an input of a user's model is filled with: `--input NAME=ones`, or a default by its name. */
#ifndef PRONY_GRAPH_INPUT_FILL_H
#define PRONY_GRAPH_INPUT_FILL_H

#include "graph/tensor.h"

enum input_fill_kind {
	INPUT_DRAWN, /* random, as for any network */
	INPUT_ZEROS,
	INPUT_ONES,
	INPUT_POSITIONS, /* 0, 1, 2 ... along the last dimension behind the batch */
	INPUT_RANGE,	 /* uniform integers from `low` to `high` */
	INPUT_FILE	 /* numbers of a .npy file */
};

struct input_fill {
	enum input_fill_kind kind;
	int64_t low, high;
	const char *path; /* borrowed from the text */
};

/* Reads "ones", "zeros", "positions", "0..99" or a path that ends in .npy. PRONY_USAGE names what
 * can be written. */
enum prony_status input_fill_parse(const char *text, struct input_fill *out, struct error *err);

/* What inputs of common names hold: attention_mask ones, token_type_ids zeros, position_ids
 * positions. INPUT_DRAWN for others. */
struct input_fill input_fill_by_name(const char *name);

/*
 * Fills one batch; INPUT_DRAWN leaves it alone. `bound`: integers must be below it; 0: any.
 * `stream` names the random numbers. A file (https://numpy.org/doc/stable/reference/generated/
 * numpy.lib.format.html, version 1 to 3, in C order) holds the whole batch, or one sample, with or
 * without a first dimension of 1, that is repeated. PRONY_BAD_INPUT names the input.
 */
enum prony_status input_fill_apply(const struct input_fill *fill, const struct tensor *tensor,
				   int64_t bound, uint64_t seed, const char *stream,
				   struct error *err);

#endif
