/* Runs an adapter through its function table on a built-in network and compares it with the float64
 * reference. Each exercise runs in a child process that ends with exit(): a process holds one
 * session, and a crash at exit is a failure. */
#ifndef PRONY_TESTS_UNIT_FRAMEWORK_EXERCISE_H
#define PRONY_TESTS_UNIT_FRAMEWORK_EXERCISE_H

#include "adapters/adapter.h"
#include "bundle/recipe.h"
#include "graph/graph.h"
#include "zoo/zoo.h"

#define EXERCISE_SLOTS 3

/* The data of an exercise; all in `arena`. */
struct exercise {
	const struct adapter *adapter;
	const char *library;
	struct recipe recipe; /* may be changed before exercise_open */
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

/* The body of a child process: returns PRONY_OK, or the failure. */
typedef enum prony_status exercise_body(struct exercise *exercise, struct error *err);

/* Ends the calling function with the status of a call that failed. It releases nothing: the child
 * process ends then. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		const enum prony_status try_status = (call);                                       \
		if (try_status != PRONY_OK)                                                        \
			return try_status;                                                         \
	} while (0)

/* Returns the library's path: from the environment variable, else the newest match of the pattern
 * below $XDG_DATA_HOME/prony/frameworks. If there is none, prints the reason and exits with 77. */
const char *exercise_library(const char *variable, const char *pattern);

/* Networks for features that the built-in ones lack: uneven padding of a convolution, padding and
 * ceil mode of a pool, Add, no bias; and over 16 MiB of weights. */
extern const struct network exercise_network_odd, exercise_network_wide;

/* Makes a network, weights and batches, and runs `body` in a child. Returns false if it failed; the
 * child then printed the reason to stderr. */
bool exercise_run(const struct adapter *adapter, const char *library, const struct network *network,
		  int64_t batch, exercise_body *body);

/* Draws the batches of all slots for e->graph, in e->arena. */
void exercise_fill(struct exercise *exercise);
struct batch exercise_batch(const struct exercise *exercise, int slot);

/* Calls probe, open, build, and feed for all slots. */
enum prony_status exercise_open(struct exercise *exercise, struct error *err);

/* Steps on a slot and waits. */
enum prony_status exercise_step(struct exercise *exercise, int slot, struct error *err);

/* Reads `what` in graph order into new tensors in the arena. */
enum prony_status exercise_read(struct exercise *exercise, enum readout what,
				struct tensor_set *out, struct error *err);

/* Returns PRONY_MISMATCH if ||a - b|| / ||b|| exceeds the bound. */
enum prony_status exercise_compare(const char *name, const float *a, const double *b, int64_t count,
				   double bound, struct error *err);

/* Whole exercises, on the current recipe: */
enum prony_status exercise_forward(struct exercise *exercise, struct error *err);
/* Steps once on the graph exported as an ONNX file and run unchanged, for an adapter that runs such
 * files. This skips the adapter's own checks of graphs, so that the engine itself reports what it
 * does not support. *logits: in the arena. */
enum prony_status exercise_file(struct exercise *exercise, struct tensor *logits,
				struct error *err);
/* Issues two rounds of steps before it waits, so that several are in flight. The values read are
 * those of the last slot issued; each slot takes its turn. */
enum prony_status exercise_in_flight(struct exercise *exercise, struct error *err);
/* Forward of an engine that gets ONNX, with weights too large for the model's message: it must read
 * them from the file. */
exercise_body exercise_data_file;
enum prony_status exercise_gradients(struct exercise *exercise, struct error *err);
/* Makes three updates on three batches; compares the change of each weight and each loss.
 * `epsilon_inside` as in parity/reference.h. */
enum prony_status exercise_updates(struct exercise *exercise, bool epsilon_inside,
				   struct error *err);

/*
 * Checks that the comparisons can fail: a weight tensor that is off by a thousandth must be found.
 */
enum prony_status exercise_wrong_weight(struct exercise *exercise, struct error *err);

/* Checks what adapter.h promises of every adapter (exercise_contract.c). */

/* Returns one of exercise_operators; NULL if none has the name. */
const struct network *exercise_find(const char *name);
/* Bodies: each update rule by itself; RMSprop with epsilon inside the root. */
exercise_body exercise_update_sgd, exercise_update_momentum, exercise_update_rmsprop,
	exercise_update_adamw, exercise_update_clipped;
/* Checks that a wrong rule is found: epsilon is large enough to distinguish inside the root from
 * outside. */
exercise_body exercise_update_rmsprop_wrong;
/* Needs an open session with ten classes: checks counts, and what feed and step must refuse. */
exercise_body exercise_trainer;
/* The same for a session with only the stage forward: there is no loss to read. */
exercise_body exercise_inference;
/* Bodies: with dropout the same batch and weights give a different loss each time; without it,
 * always the same. */
exercise_body exercise_dropout_on, exercise_dropout_off;
/* Returns the loss of one more step on slot 0. */
enum prony_status exercise_loss_of_step(struct exercise *exercise, double *loss, struct error *err);

#endif
