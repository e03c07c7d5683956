/*
 * The parity gate: proves that a framework did the same work before its time counts. Pure
 * arithmetic on what a worker gave back; run/ drives the worker.
 */
#ifndef PRONY_PARITY_GATE_H
#define PRONY_PARITY_GATE_H

#include <stdbool.h>

#include "bundle/recipe.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "parity/bounds.h"
#include "parity/gate_verdict.h"
#include "parity/watch.h"

#define GATE_UPDATES 3
#define GATE_BATCH_MIN 8
#define GATE_BATCH_FORCED 2 /* where time or memory forbid GATE_BATCH_MIN */

/* What the gate runs, derived from the cell's recipe: dropout off, the network's gate learning
 * rate, min(batch, 16) but at least 8 samples, GATE_UPDATES slots. */
void gate_recipe(const struct recipe *cell, double gate_learning_rate, struct recipe *out);

/*
 * Whether the reference can gate `graph` (forward only, built for the batch in question) in the
 * time that a gate may take and in `reference_bytes`; docs/parity.md has the thresholds. `chosen`:
 * as in gate_rate_is_open. Where it can not, the caller tries gate_smaller_batch, which is 0 when
 * there is none.
 */
bool gate_fits(const struct graph *graph, const struct recipe *gate, bool chosen,
	       int64_t reference_bytes);
/* The memory that gate_settle_rate and gate_reference_init take at most, one after the other. */
int64_t gate_memory_bytes(const struct graph *graph, const struct recipe *gate, bool chosen);
int64_t gate_smaller_batch(int64_t batch);
/* Multiplications that they do, where comparisons that are too close to call are few; the same for
 * gate_expected_loss. */
int64_t gate_cost(const struct graph *graph, const struct recipe *gate, bool chosen);
int64_t gate_loss_cost(const struct graph *graph, const struct recipe *recipe);

/*
 * Whether gate_settle_rate is to find the rate: `chosen` says that somebody chose one for the
 * network, which counts but for RMSprop and where operands are rounded (tf32, fp16, bf16) and the
 * network does not normalise by the batch: there it lowers no bound.
 */
bool gate_rate_is_open(const struct recipe *gate, const struct graph *graph, bool chosen);

/*
 * Lowers gate->learning_rate: by tens, until the first update lowers the loss of its own batch by
 * what the gradient promises, within a half (0.05 where operands are rounded and the batch does not
 * normalise; RMSprop: 0.05; 0.002 where the batch normalises). Where updates overshoot, later
 * batches show how the network amplifies rounding and nothing else. Does nothing unless the stage
 * trains.
 */
enum prony_status gate_settle_rate(struct recipe *gate, const struct graph *graph,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_watch *watch, struct error *err);

/*
 * What a correct program gives. There may be several answers: RMSprop's epsilon has two places, and
 * where a comparison of the reference is too close to call (a ReLU's input next to zero, two nearly
 * equal elements of a pooling window), rounding decides what the derivative is.
 */
struct gate_expected {
	struct tensor logits[GATE_UPDATES]; /* F64, evaluation mode for STAGE_FORWARD; else training
					       mode, each before its update */
	double loss[GATE_UPDATES];
	struct tensor_set gradients; /* F64, of the last batch; forward-backward only */
	struct tensor_set change;    /* F64, w_after - w_before over all updates; train only */
	bool epsilon_inside;	     /* of the root, in RMSprop */
	int64_t kinks;		     /* comparisons too close to call */
	int64_t turned;		     /* of them, those decided otherwise than in float64 */
	/*
	 * Where such comparisons are too many to try each: how far all together move each figure.
	 * Of logits the largest difference, of a tensor of gradients or change the norm. Else 0.
	 */
	double logits_slack[GATE_UPDATES], loss_slack[GATE_UPDATES];
	double *tensor_slack;
	/*
	 * They move a tensor mostly sideways. How far along itself, relative to its length: of each
	 * tensor, and of all together as one vector.
	 */
	double *length_slack, whole_length_slack;
	/* Running statistics after all updates, F64, with the variance of n; train only. */
	struct tensor_set state;
	double *state_slack; /* norms */
};

#define GATE_MAX_ANSWERS 16

/* The expected results; all owned by the arena. */
struct gate_reference {
	struct arena arena;
	int64_t parameters, macs;			 /* macs of one forward batch of the gate */
	struct gate_expected expected[GATE_MAX_ANSWERS]; /* one of them must be met */
	int expected_count;
	struct tensor_set weights; /* F32, as given (borrowed) */
};

/*
 * Computes it with the float64 interpreter. `graph` is forward only and built for the gate's batch.
 * `watch` may be NULL.
 */
enum prony_status gate_reference_init(struct gate_reference *out, const struct graph *graph,
				      const struct recipe *gate, const struct tensor_set *weights,
				      const struct tensor_set *inputs,
				      const struct tensor_set *labels,
				      struct reference_watch *watch, struct error *err);
void gate_reference_release(struct gate_reference *ref);

/* What the worker gave back. Tensors F32 or F64; a missing one is a mismatch. */
struct gate_observed {
	int64_t parameters, macs; /* -1: the framework cannot say (recorded, not judged) */
	const struct tensor *logits[GATE_UPDATES];
	double loss[GATE_UPDATES]; /* NAN in STAGE_FORWARD: then computed from the logits */
	const struct tensor_set *gradients; /* forward-backward */
	const struct tensor_set *weights;   /* train: after the last update */
	/* Train: running statistics after the last update; NULL: the framework cannot say
	 * (recorded, not judged). */
	const struct tensor_set *state;
};

/*
 * Compares. PRONY_OK, or PRONY_MISMATCH with the worst offender in err. *verdict, in both cases:
 * every figure with its bound, in the arena; names of tensors are the reference's.
 */
enum prony_status gate_compare(const struct gate_reference *ref, const struct graph *graph,
			       const struct recipe *gate, const struct tensor_set *labels,
			       const struct gate_observed *observed, struct arena *arena,
			       struct gate_verdict *verdict, struct error *err);

/*
 * Into how many equal parts a batch is to be cut so that the reference's forward pass needs at most
 * `reference_bytes`, as far as its samples do not depend on each other; 0: they do (normalisations
 * by the batch's statistics), or not even one sample has room.
 */
int64_t gate_loss_parts(const struct graph *graph, enum stage stage, int64_t reference_bytes);

/*
 * The loss that the first step of a timed process must show, at its own batch: exact, or with
 * dropout the mean and deviation over 32 masks. deviation is 0 without dropout. The batch may be a
 * multiple of the graph's: its parts are then computed one after the other.
 */
enum prony_status gate_expected_loss(const struct graph *graph, const struct recipe *recipe,
				     const struct tensor_set *weights, struct batch batch,
				     struct reference_watch *watch, double *mean, double *deviation,
				     struct error *err);

/* Judges a first loss against it (within bounds, or 5 deviations); PRONY_INVALID says by how much.
 * Where the deviation is infinite nothing is known but that the loss must be a number.
 */
enum prony_status gate_check_loss(double loss, double mean, double deviation,
				  const struct parity_bounds *bounds, struct error *err);

#endif
