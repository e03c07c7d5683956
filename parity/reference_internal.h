/* Private to parity/: how the reference interpreter runs and observes kernels and adds rounding. */
#ifndef PRONY_PARITY_REFERENCE_INTERNAL_H
#define PRONY_PARITY_REFERENCE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/kernel.h"
#include "parity/reference.h"

/* A comparison that was too close to call, and the decision of the reference. */
struct kink {
	int64_t step, place; /* place: the comparison's number within the node */
	int node;
	int64_t decision;
};

/* Kinks in the order in which they were met. */
struct kink_list {
	struct kink *items;
	int64_t count, capacity;
};

/* Comparisons that are too close to call: a ReLU's input near zero, two nearly equal elements of a
 * pooling window, and for RMSprop a gradient near zero. There the derivative jumps, so two correct
 * programs with different summation orders can differ by a whole contribution. The gate runs the
 * reference again with such comparisons turned. Exact ties do not count: they have one agreed
 * answer, or (equal windows) none that matters. */
struct kinks {
	enum precision precision; /* its rounding decides which comparisons are too close */
	const bool *decisions;	  /* turn each of the first `decided`? The others: turn_all */
	int64_t decided;
	bool turn_all, turn_updates;
	int64_t count, update_count; /* met so far: in the graph, in updates */
	/* 0: every result is exact. Else this many deviations of a result's rounding in float32 are
	 * added to it: see rounding_add. */
	double rounding;
	/* `kept` stores the comparisons that are met. `turned` lists the comparisons to decide
	 * otherwise, however rounding has moved them; it replaces turn_all (except in recurrent
	 * layers). Both may be NULL. */
	struct kink_list *kept;
	const struct kink_list *turned;
	/* By value: the measured effect of rounding, relative to the value's RMS. NULL: not
	 * measured; the threshold then follows only from the sums before the value. */
	const double *deviation;
	/* By step: the distance relative to that of the first step; NULL: the same. */
	const double *amplified;
	/* By step * values + value: storage for the gradients of a parameter, as the network
	 * computed them, decay included (but AdamW's). NULL: not requested. */
	float *const *gradients;
};

/* The functions by which kernels use call->kinks. */
extern const struct kernel_hooks kinks_hooks;
void kink_list_release(struct kink_list *list);

/* The operations that went into a value, to estimate the effect of rounding. */
struct accumulation {
	double depth;	 /* sum of the lengths of all sums; 1 for a rounding that is no sum */
	double products; /* the number of sums of products */
};

/* Adds one product with this number of multiplications and this result. */
void accumulation_add(struct accumulation *to, int64_t macs, const struct shape *result);
/* Adds a node that multiplies no tensors. */
void accumulation_add_other(struct accumulation *to, const struct graph *graph,
			    const struct node *node);

/* Returns u sqrt(depth), where u is half a unit in the last place of fp32, plus the effect of
 * rounding the operands to `precision`. The deviation of a result from the exact one is about 0.41
 * of it (bounds.c). */
double accumulation_rounding(const struct accumulation *sum, enum precision precision);

/* Adds to the outputs of a node the rounding of float32 arithmetic, as numbers drawn by position:
 * to a sum of K products the effect of K roundings in sequence, to other results one rounding.
 * Normalisations by the batch do that themselves, for each of their sums over a channel. */
void rounding_add(const struct kernel_call *call);
/* The rounding of one number, and of the sum of `terms` numbers; `norm` is the root of the sum of
 * their squares. */
double rounding_of_value(const struct kernel_call *call, int output, int64_t i, double value);
double rounding_of_sum(const struct kernel_call *call, int output, int64_t i, int64_t terms,
		       double sum, double norm);

/* Runs the forward pass of one batch twice side by side, exact and rounded by one deviation, and
 * sets `deviation` of each value that a node computes. PRONY_INTERRUPTED as in reference_step. */
enum prony_status rounding_measure(const struct graph *forward, const struct recipe *recipe,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_control *control, double *deviation,
				   struct error *err);

/* Runs only nodes [first, end); without labels the loss is left out. */
enum prony_status reference_nodes(struct reference *ref, const struct recipe *recipe, bool training,
				  struct kinks *kinks, int first, int end, struct error *err);

/* Returns the distance that is too close to call, in units of accumulation_rounding. */
double reference_closeness(const struct reference *ref, const struct recipe *recipe);
/* The same from the measured rounding of the node's input, because a network may amplify rounding;
 * 0: not measured. reference_deepen adds a node's products to `sum`. */
double reference_measured_closeness(const struct node *node, const struct kinks *kinks);
void reference_deepen(struct accumulation *sum, const struct graph *graph, const struct node *node);

/* RMSprop and AdamW divide each gradient by its own size, so that rounding of a gradient near zero
 * counts as much as the largest gradient. */
static inline bool reference_divides(const struct recipe *recipe)
{
	return recipe->stage == STAGE_TRAIN &&
	       (recipe->optimiser == OPTIMISER_RMSPROP || recipe->optimiser == OPTIMISER_ADAMW);
}

/* Allocates AdamW's squares at its first step. */
enum prony_status reference_need_squares(struct reference *ref, struct error *err);

/* Sets ref->norm and returns the factor of all gradients that the recipe asks for; 1: no clipping.
 * The rule is that of torch.nn.utils.clip_grad_norm_. */
double reference_clip(struct reference *ref, const struct recipe *recipe);

/* Updates one parameter. Its gradient is multiplied by `clip`. */
void reference_update(struct reference *ref, const struct recipe *recipe, double clip,
		      bool epsilon_inside, struct kinks *kinks, int index);

/* reference_step that also handles kinks (may be NULL). */
enum prony_status reference_step_kinks(struct reference *ref, const struct recipe *recipe,
				       bool epsilon_inside, struct kinks *kinks, struct error *err);

/* Draws new masks and runs the forward nodes from the first dropout on; earlier nodes do not depend
 * on masks. Call it after a reference_step of this batch. It counts as a step for the masks. */
enum prony_status reference_redraw(struct reference *ref, const struct recipe *recipe,
				   struct error *err);

#endif
