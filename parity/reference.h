/*
 * The reference interpreter: runs a graph in float64. Its loops are naive, so that their
 * correctness can be read off, except for convolutions and matrix products, which large networks
 * need in blocks and on all cores (gemm_f64.h); a test holds those to naive loops. Nothing in it is
 * shared with the native executor.
 */
#ifndef PRONY_PARITY_REFERENCE_H
#define PRONY_PARITY_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "bundle/recipe.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "parity/watch.h"

/* Arrays that were given back and wait for a value of the same size: fresh pages cost more. */
#define REFERENCE_SPARES 8
/* Freeing smaller values saves nothing. */
#define REFERENCE_KEPT_BYTES (INT64_C(1) << 20)

struct reference {
	struct arena arena;
	const struct graph *graph; /* borrowed; with the backward pass when gradients are wanted */
	double **values;	   /* one array per value; parameters and states included */
	int *last_use;		   /* per value: after this node nobody reads it; INT_MAX: kept */
	double **moments;	   /* per value: optimiser state of parameters, NULL elsewhere */
	int64_t step;		   /* steps so far; seeds the dropout masks together with seed */
	bool has_labels;	   /* the batch that was fed last had some */
	/*
	 * Set it after reference_init to give back the memory of large activations and their
	 * gradients once nobody reads them in a step: their arrays are NULL then. What is kept:
	 * logits, loss, parameters, their gradients, states, and all below 1 MiB.
	 */
	bool frees;
	struct reference_watch *watch; /* set it after reference_init; may be NULL */
	struct {
		double *array;
		int64_t elements;
	} spares[REFERENCE_SPARES];
	int next_spare; /* the oldest, which goes first */
};

/* Allocates and converts the weights (F32, by name) to float64. Call reference_release in any case.
 */
enum prony_status reference_init(struct reference *ref, const struct graph *graph,
				 const struct tensor_set *weights, struct error *err);
void reference_release(struct reference *ref);

/* Loads a batch, with labels or without; one that batch_check refuses is an error. */
enum prony_status reference_feed(struct reference *ref, struct batch batch, struct error *err);

/*
 * Runs the forward nodes, and the backward nodes when `stage` asks for them, and for STAGE_TRAIN
 * the update that `recipe` names:
 *   sgd       w -= lr * (g + wd * w)
 *   momentum  v = mu * v + (g + wd * w);  w -= lr * v       (PyTorch's form; equal to Caffe's and
 *                                                           MXNet's at constant lr)
 *   rmsprop   s = rho * s + (1 - rho) * g^2;  w -= lr * g / (sqrt(s) + eps), or with
 *             `epsilon_inside` / sqrt(s + eps)
 * Dropout is the identity in STAGE_FORWARD and when recipe->dropout is false; otherwise masks come
 * from (recipe->seed, step, node).
 */
enum prony_status reference_step(struct reference *ref, const struct recipe *recipe,
				 bool epsilon_inside, struct error *err);

/*
 * Runs the forward nodes only; `training` says whether normalisations take the batch's statistics.
 * Running statistics and weights stay as they are. Labels are optional, dropout is the identity.
 */
enum prony_status reference_forward(struct reference *ref, const struct recipe *recipe,
				    bool training, struct error *err);

/* The array of a value, and its element count in *count; NULL for an unknown or a freed one. */
const double *reference_value(const struct reference *ref, int value, int64_t *count);

/* Loss of the last forward run; NAN when the graph has none or stage was forward without labels. */
double reference_loss(const struct reference *ref);

/* The loss of logits (row-major) and labels, of a graph that has one: for frameworks that give
 * logits only. */
double reference_objective(const struct graph *graph, const double *logits, const int64_t *labels);

/* Multiply-accumulates that one step of the reference costs, to bound the gate's time. */
int64_t reference_cost(const struct graph *graph, enum stage stage);

#endif
