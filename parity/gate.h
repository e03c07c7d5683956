/* The parity gate: proves that a framework did the same work before its time counts. The gate only
 * computes on the results of a worker; run/ drives the worker. */
#ifndef PRONY_PARITY_GATE_H
#define PRONY_PARITY_GATE_H

#include <stdbool.h>

#include "bundle/recipe.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "parity/bounds.h"
#include "parity/control.h"
#include "parity/gate_verdict.h"

#define GATE_UPDATES 3
#define GATE_BATCH_MIN 8
#define GATE_BATCH_FORCED 2 /* if time or memory forbid GATE_BATCH_MIN */

/* Derives the gate's recipe from the cell's: dropout off, the network's gate learning rate,
 * min(batch, 16) but at least 8 samples, GATE_UPDATES slots. */
void gate_recipe(const struct recipe *cell, double gate_learning_rate, struct recipe *out);

/* Returns the precision whose reference also serves this recipe: evaluation has no derivatives that
 * rounding could decide, and fp16 rounds operands as tf32 does. */
enum precision gate_reference_precision(const struct recipe *gate);

/* Returns true if the reference can gate `graph` (forward only, built for the batch in question) in
 * the time allowed for a gate and in `reference_bytes`; docs/parity.md has the thresholds.
 * `chosen`: as in gate_rate_is_open. If false, the caller tries gate_smaller_batch, which returns 0
 * if there is none. */
bool gate_fits(const struct graph *graph, const struct recipe *gate, bool chosen,
	       int64_t reference_bytes);
/* The peak memory of gate_settle_rate and gate_reference_init, run one after the other. */
int64_t gate_memory_bytes(const struct graph *graph, const struct recipe *gate, bool chosen);
int64_t gate_smaller_batch(int64_t batch);
/* Whether the reference costs seconds. */
bool gate_is_cheap(const struct graph *graph, const struct recipe *gate, bool chosen);
/* The multiplications of both, if few comparisons are too close to call. gate_loss_cost is the same
 * for gate_expected_loss. */
int64_t gate_cost(const struct graph *graph, const struct recipe *gate, bool chosen);
int64_t gate_loss_cost(const struct graph *graph, const struct recipe *recipe);

/* Returns true if gate_settle_rate must find the rate. `chosen` is true if a rate was chosen for
 * the network. A chosen rate is kept, with two exceptions: RMSprop, and rounded operands (tf32,
 * fp16, bf16) in a network that does not normalise by the batch. There a lower rate lowers no
 * bound. */
bool gate_rate_is_open(const struct recipe *gate, const struct graph *graph, bool chosen);

/* Lowers gate->learning_rate by powers of ten until the first update lowers the loss of its own
 * batch by the decrease that the gradient predicts, within a half (0.05 if operands are rounded and
 * the batch does not normalise; RMSprop: 0.05, or 0.002 if the batch normalises). If updates
 * overshoot, later batches show only how the network amplifies rounding. Does nothing unless the
 * stage trains. */
enum prony_status gate_settle_rate(struct recipe *gate, const struct graph *graph,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_control *control, struct error *err);

/* If the recipe clips, sets gate->clip_norm to a norm that the gradients of the first updates
 * exceed at least once and, if their norms differ, do not exceed every time. A program that does
 * not clip, or always scales, is then wrong, whatever the cell's clip_norm. Call it after
 * gate_settle_rate. */
enum prony_status gate_settle_clip(struct recipe *gate, const struct graph *graph,
				   const struct tensor_set *weights,
				   const struct tensor_set *inputs, const struct tensor_set *labels,
				   struct reference_control *control, struct error *err);

/* The results of a correct program. There may be several answers: RMSprop's epsilon has two places,
 * and rounding decides the derivative if a comparison of the reference is too close to call (a
 * ReLU's input near zero, two nearly equal elements of a pooling window). */
struct gate_expected {
	struct tensor logits[GATE_UPDATES]; /* F64, evaluation mode for STAGE_FORWARD; else training
					       mode, each before its update */
	double loss[GATE_UPDATES];
	struct tensor_set gradients; /* F64, of the last batch; forward-backward only */
	struct tensor_set change;    /* F64, w_after - w_before over all updates; train only */
	bool epsilon_inside;	     /* inside the root, in RMSprop */
	int64_t kinks;		     /* comparisons too close to call */
	int64_t turned;		     /* kinks decided otherwise than in float64 */
	/* If these comparisons are too many to try each: how far all together move each figure. For
	 * logits it is the largest difference; for a tensor of gradients or of changes it is the
	 * norm. Else 0. */
	double logits_slack[GATE_UPDATES], loss_slack[GATE_UPDATES];
	double *tensor_slack;
	/* Turned comparisons move a tensor mostly sideways. The movement along the tensor itself,
	 * relative to its length: of each tensor, and of all together as one vector. */
	double *length_slack, whole_length_slack;
	/* F64, after all steps: the states of gate_keeps_state, variances of n. */
	struct tensor_set state;
	double *state_slack; /* norms */
};

#define GATE_MAX_ANSWERS 16

/* The expected results; all owned by the arena. */
struct gate_reference {
	struct arena arena;
	int64_t parameters, macs;			 /* macs of one forward batch of the gate */
	struct gate_expected expected[GATE_MAX_ANSWERS]; /* one of them must match */
	int expected_count;
	struct tensor_set weights; /* F32, as given (borrowed) */
};

/* Whether the gate compares this state after its last step: caches, and running statistics if the
 * stage is train. */
bool gate_keeps_state(const struct graph *graph, int value, enum stage stage);

/* Computes the expected results with the float64 interpreter. `graph` is forward only and built for
 * the gate's batch. `control` may be NULL. */
enum prony_status gate_reference_init(struct gate_reference *out, const struct graph *graph,
				      const struct recipe *gate, const struct tensor_set *weights,
				      const struct tensor_set *inputs,
				      const struct tensor_set *labels,
				      struct reference_control *control, struct error *err);
void gate_reference_release(struct gate_reference *ref);

/* The results of the worker. Tensors are F32 or F64; a missing one is a mismatch. */
struct gate_observed {
	int64_t parameters, macs; /* -1: unknown to the framework (recorded, not judged) */
	const struct tensor *logits[GATE_UPDATES];
	double loss[GATE_UPDATES]; /* NAN in STAGE_FORWARD: then computed from the logits */
	const struct tensor_set *gradients; /* forward-backward */
	const struct tensor_set *weights;   /* train: after the last update */
	/* After the last step. Running statistics may be unknown to the framework: NULL (recorded,
	 * not judged). Caches must be there. */
	const struct tensor_set *state;
};

/* Compares the results with the reference. Returns PRONY_OK, or PRONY_MISMATCH with the worst
 * figure in err. In both cases *verdict has every figure with its bound, in the arena; names of
 * tensors are the reference's. */
enum prony_status gate_compare(const struct gate_reference *ref, const struct graph *graph,
			       const struct recipe *gate, const struct tensor_set *labels,
			       const struct gate_observed *observed, struct arena *arena,
			       struct gate_verdict *verdict, struct error *err);

/* Returns the number of equal parts of a batch for which the reference's forward pass needs at most
 * `reference_bytes`. Returns 0 if the samples depend on each other (normalisations by the batch's
 * statistics) or if one sample needs more. */
int64_t gate_loss_parts(const struct graph *graph, enum stage stage, int64_t reference_bytes);

/* Computes the loss that the first step of a timed process must show on its own batch: exact, or
 * with dropout the mean and deviation over 32 masks. The deviation is 0 without dropout. The batch
 * may be a multiple of the graph's; its parts are then computed one after the other. */
enum prony_status gate_expected_loss(const struct graph *graph, const struct recipe *recipe,
				     const struct tensor_set *weights, struct batch batch,
				     struct reference_control *control, double *mean,
				     double *deviation, struct error *err);

/* Judges a first loss against the expected one (within bounds, or 5 deviations). PRONY_INVALID
 * states the difference. If the deviation is infinite, only a loss that is not a number fails. */
enum prony_status gate_check_loss(double loss, double mean, double deviation,
				  const struct parity_bounds *bounds, struct error *err);

#endif
