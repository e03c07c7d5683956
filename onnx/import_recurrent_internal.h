/* Private to onnx/: a recurrent layer of a file. */
#ifndef PRONY_ONNX_IMPORT_RECURRENT_INTERNAL_H
#define PRONY_ONNX_IMPORT_RECURRENT_INTERNAL_H

#include "onnx/import_internal.h"

struct recurrent_layer {
	enum op op;
	int directions;
	bool reverse;	  /* its only direction */
	bool batch_first; /* layout 1 */
	bool linear;	  /* linear_before_reset of a GRU */
	int64_t activation;
	int64_t batch, steps, features, hidden;
	int64_t rows;			  /* of w and r in one direction */
	bool all;			  /* every state is needed, not only the last one */
	bool first[2];			  /* it has an initial state, an initial cell state */
	int x;				  /* batch x time x features */
	const struct constant *w, *r, *b; /* b: NULL for zeros */
};

/* import_recurrent_weights.c */

/* `rows` x `columns` numbers of a weight from number `first` on, as a parameter of that rank (1:
 * without columns). VALUE_NONE after a refusal. */
int import_part(struct importer *im, const struct file_node *node, const struct constant *whole,
		int64_t first, int rank, int64_t rows, int64_t columns, const char *what);
/* Both biases of a direction as one parameter, as the graph's operators have it. VALUE_NONE after a
 * refusal. */
int import_bias(struct importer *im, const struct file_node *node, const struct recurrent_layer *l,
		int direction);

/* import_unrolled.c: writes out the steps of one direction. Returns all states (batch x time x
 * hidden) if the layer needs them. *last and *cell: the last states, batch x hidden; the cell's
 * only of an LSTM. VALUE_NONE in all three after a refusal. */
int import_unrolled(struct importer *im, const struct file_node *node,
		    const struct recurrent_layer *l, int direction, int *last, int *cell);

#endif
