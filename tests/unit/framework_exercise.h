/*
 * Runs an adapter through its table on a built-in network and compares it with the float64
 * reference. Each exercise runs in a child process that ends with exit(): a session lives once per
 * process, and a crash at exit is a failure.
 */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_EXERCISE_H
#define PRONY_TESTS_UNIT_FRAMEWORK_EXERCISE_H

#include "adapters/adapter.h"
#include "bundle/recipe.h"
#include "graph/graph.h"
#include "zoo/zoo.h"

#define EXERCISE_SLOTS 3

/* What an exercise works with; all in `arena`. */
struct exercise {
	const struct adapter *adapter;
	const char *library;
	struct recipe recipe; /* changed before exercise_open */
	struct arena arena;
	struct graph graph, reference_graph; /* the second with the backward pass */
	struct tensor_set weights;
	double labels_ignored;					      /* the network's share */
	struct tensor_set all_inputs, all_labels;		      /* of all slots */
	struct tensor inputs[EXERCISE_SLOTS], labels[EXERCISE_SLOTS]; /* the first of each slot */
	struct session session;
	struct probe probe;
	struct effective effective;
	struct built built;
};

/* The body of a child process: PRONY_OK, or what went wrong. */
typedef enum prony_status exercise_body(struct exercise *exercise, struct error *err);

/*
 * The library: from the environment variable, else the newest match of the pattern below
 * $XDG_DATA_HOME/prony/frameworks. Prints the reason and ends with 77 when there is none.
 */
const char *exercise_library(const char *variable, const char *pattern);

/* Networks for what the built-in ones lack: uneven padding of a convolution, padding and ceil mode
 * of a pool, Add, no bias; and over 16 MiB of weights. */
extern const struct network exercise_network_odd, exercise_network_wide;

/* Makes a network, weights and batches, and runs `body` in a child; false when it failed, which it
 * then said on stderr. */
bool exercise_run(const struct adapter *adapter, const char *library, const struct network *network,
		  int64_t batch, exercise_body *body);

/* Draws the batches of all slots for e->graph, in e->arena. */
void exercise_fill(struct exercise *exercise);
struct batch exercise_batch(const struct exercise *exercise, int slot);

/* probe, open, build and feed of all slots. */
enum prony_status exercise_open(struct exercise *exercise, struct error *err);

/* Steps on a slot and waits. */
enum prony_status exercise_step(struct exercise *exercise, int slot, struct error *err);

/* Reads `what` in graph order into new tensors in the arena. */
enum prony_status exercise_read(struct exercise *exercise, enum readout what,
				struct tensor_set *out, struct error *err);

/* PRONY_MISMATCH when ||a - b|| / ||b|| exceeds the bound. */
enum prony_status exercise_compare(const char *name, const float *a, const double *b, int64_t count,
				   double bound, struct error *err);

/* Whole exercises, on the recipe as it stands: */
enum prony_status exercise_forward(struct exercise *exercise, struct error *err);
/*
 * One step on the graph as an ONNX file as it is, of an adapter that takes such: past what the
 * adapter refuses of graphs, so that the engine itself says what it cannot. *logits: in the arena.
 */
enum prony_status exercise_file(struct exercise *exercise, struct tensor *logits,
				struct error *err);
/* Issues two rounds of steps before it waits, so that several are in flight; what is read is of the
 * last slot of them, each slot in turn. */
enum prony_status exercise_in_flight(struct exercise *exercise, struct error *err);
enum prony_status exercise_gradients(struct exercise *exercise, struct error *err);
/* Three updates on three batches; the change of each weight and each loss. `epsilon_inside` as in
 * parity/reference.h. */
enum prony_status exercise_updates(struct exercise *exercise, bool epsilon_inside,
				   struct error *err);

/* The comparisons must be able to fail: one weight tensor off by a thousandth has to be noticed. */
enum prony_status exercise_wrong_weight(struct exercise *exercise, struct error *err);

/* What adapter.h promises of every adapter (exercise_contract.c). */

/* One of exercise_operators; NULL when there is none of the name. */
const struct network *exercise_find(const char *name);
/* Bodies: each rule by itself; RMSprop with epsilon inside of the root. */
exercise_body exercise_update_sgd, exercise_update_momentum, exercise_update_rmsprop;
/* A wrong rule has to be noticed: epsilon large enough to tell inside the root from outside. */
exercise_body exercise_update_rmsprop_wrong;
/* Of an open session of ten classes: counts, and what feed and step must not take. */
exercise_body exercise_trainer;
/* The same of one that has the stage forward only: there is no loss to read. */
exercise_body exercise_inference;
/* Bodies: with dropout the same batch and weights give another loss each time, without always the
 * same. */
exercise_body exercise_dropout_on, exercise_dropout_off;
/* The loss of one more step on slot 0. */
enum prony_status exercise_loss_of_step(struct exercise *exercise, double *loss, struct error *err);

#endif
