/* The reference interpreter: runs a graph in float64. Its loops are naive, so that their
 * correctness is easy to check. Convolutions and matrix products are the exception: large networks
 * need them in blocks and on all cores (gemm_f64.h); a test compares them with naive loops. It
 * shares no code with the native executor. */
#ifndef PRONY_PARITY_REFERENCE_H
#define PRONY_PARITY_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "bundle/recipe.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "parity/control.h"

/* Freed arrays that are kept for a value of the same size, because fresh pages cost more. */
#define REFERENCE_SPARES 8
/* Freeing smaller values saves nothing. */
#define REFERENCE_KEPT_BYTES (INT64_C(1) << 20)

struct reference {
	struct arena arena;
	const struct graph *graph; /* borrowed; with the backward pass if gradients are needed */
	double **values;	   /* one array per value; parameters and states included */
	int *last_use;		   /* per value: last node that reads it; INT_MAX: kept */
	double **moments;	   /* per value: optimiser state of parameters, NULL elsewhere */
	double **squares;	   /* the same, of AdamW's squares; NULL: no such update yet */
	double norm;		   /* of all gradients in the last step, if it clips */
	int64_t step;		   /* steps so far; with seed, the seed of the dropout masks */
	bool has_labels;	   /* the last batch had labels */
	/* Set it after reference_init to free large activations and their gradients after their
	 * last use in a step; their arrays are then NULL. Logits, loss, parameters, their
	 * gradients, states and all arrays below 1 MiB are kept. */
	bool frees;
	struct reference_control *control; /* set it after reference_init; may be NULL */
	struct {
		double *array;
		int64_t elements;
	} spares[REFERENCE_SPARES];
	int next_spare; /* the oldest; it is replaced first */
};

/* Allocates the values and converts the weights (F32, by name) to float64. Call reference_release
 * in any case. */
enum prony_status reference_init(struct reference *ref, const struct graph *graph,
				 const struct tensor_set *weights, struct error *err);
void reference_release(struct reference *ref);

/* Loads a batch, with labels or without; a batch that batch_check refuses is an error. */
enum prony_status reference_feed(struct reference *ref, struct batch batch, struct error *err);

/*
 * Runs one step: the forward nodes, the backward nodes if the recipe's stage needs them, and for
 * STAGE_TRAIN the update of the recipe's optimiser, with g the gradient, which is first
 * multiplied by min(1, clip_norm / (norm of all gradients + 1e-6)) if the recipe clips:
 *   sgd       w -= lr * (g + wd * w)
 *   momentum  v = mu * v + (g + wd * w);  w -= lr * v       (PyTorch's form; equal to Caffe's and
 *                                                           MXNet's at constant lr)
 *   rmsprop   s = rho * s + (1 - rho) * g^2;  w -= lr * g / (sqrt(s) + eps), or with
 *             `epsilon_inside` / sqrt(s + eps)
 *   adamw     docs/case-bundle.md, "recipe"
 * Then every cache (graph_state_present) has what the step wrote.
 * Dropout is the identity in STAGE_FORWARD and when recipe->dropout is false; otherwise masks come
 * from (recipe->seed, step, node).
 */
enum prony_status reference_step(struct reference *ref, const struct recipe *recipe,
				 bool epsilon_inside, struct error *err);

/* Runs the forward nodes only. `training`: normalisations use the batch's statistics. Running
 * statistics and weights do not change. Labels are optional; dropout is the identity. */
enum prony_status reference_forward(struct reference *ref, const struct recipe *recipe,
				    bool training, struct error *err);

/* Returns the array of a value, and its element count in *count; NULL for an unknown or freed
 * value. */
const double *reference_value(const struct reference *ref, int value, int64_t *count);

/* Returns the loss of the last forward run; NAN if the graph has none or the stage was forward
 * without labels. */
double reference_loss(const struct reference *ref);

/* Returns the loss of logits (row-major) and labels, for a graph with a loss. Used for frameworks
 * that return only logits. */
double reference_objective(const struct graph *graph, const double *logits, const int64_t *labels);

/* Returns the multiply-accumulates of one step of the reference, to limit the gate's time. */
int64_t reference_cost(const struct graph *graph, enum stage stage);

#endif
