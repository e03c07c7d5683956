/* Private to parity/: how the reference interpreter runs kernels, rounds and watches them. */
#ifndef PRONY_PARITY_KERNELS_INTERNAL_H
#define PRONY_PARITY_KERNELS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/kernel.h"
#include "parity/reference.h"

/* A comparison that was too close to call, and what the reference decided. */
struct kink {
	int64_t step, place; /* the comparison's number within the node */
	int node;
	int64_t decision;
};

/* In the order in which they were met. */
struct kink_list {
	struct kink *items;
	int64_t count, capacity;
};

/*
 * Comparisons that are too close to call: a ReLU's input next to zero, two elements of a pooling
 * window next to each other, and for RMSprop a gradient next to zero. There the derivative jumps,
 * so that two correct programs with different summation orders can differ by a whole contribution.
 * The gate runs the reference again with such comparisons turned. Exact ties do not count: they
 * have one agreed answer, or (equal windows) none that matters.
 */
struct kinks {
	enum precision precision; /* whose rounding decides what is too close */
	const bool *decisions;	  /* of the first comparisons met: turn it? The others: turn_all */
	int64_t decided;
	bool turn_all, turn_updates;
	int64_t count, update_count; /* met so far: in the graph, in updates */
	/*
	 * 0: every result is exact. Else so many deviations of what rounding does to a result in
	 * float32 are added to it: see rounding_add.
	 */
	double rounding;
	/* Where those that are met are kept; and those that are decided otherwise than there,
	 * whatever rounding has done to them, instead of turn_all (but in recurrent layers). May be
	 * NULL. */
	struct kink_list *kept;
	const struct kink_list *turned;
	/* By value: what rounding was measured to do to it, relative to its RMS; NULL: not
	 * measured, what is too close follows from the sums before alone. */
	const double *deviation;
	/* By step: so many times as far apart as in the first; NULL: as far. */
	const double *amplified;
	/* By step * values + value: where RMSprop's gradients of a parameter are kept, as the
	 * network gave them, decay included. NULL: not asked for. */
	float *const *gradients;
};

/* The functions through which kernels reach call->kinks. */
extern const struct kernel_watch kinks_watch;
void kink_list_release(struct kink_list *list);

/* What has gone into a value, for what rounding may have done to it. */
struct accumulation {
	double depth;	 /* the lengths of all sums, added up; 1 for what rounds and is no sum */
	double products; /* the number of sums of products */
};

/* Adds what one product with so many multiplications and this result does. */
void accumulation_add(struct accumulation *to, int64_t macs, const struct shape *result);
/* Adds what a node does that multiplies no tensors. */
void accumulation_add_other(struct accumulation *to, const struct graph *graph,
			    const struct node *node);

/*
 * u sqrt(depth), where u is half a unit in the last place of fp32, and what rounding the operands
 * to `precision` adds; the deviation of a result from the exact one is about 0.41 of it (bounds.c).
 */
double accumulation_rounding(const struct accumulation *sum, enum precision precision);

/*
 * What float32 arithmetic would add to the outputs of a node, as numbers drawn from its place: to
 * a sum of K products what K roundings in sequence do, to other results one rounding.
 * Normalisations by the batch do that themselves, to each of their sums over a channel.
 */
void rounding_add(const struct kernel_call *call);
/* Of one number; and of the sum of `terms` numbers, whose squares' sum has the root `norm`. */
double rounding_of_value(const struct kernel_call *call, int output, int64_t i, double value);
double rounding_of_sum(const struct kernel_call *call, int output, int64_t i, int64_t terms,
		       double sum, double norm);

/*
 * Runs the forward pass of one batch twice, exact and rounded by one deviation, side by side, and
 * sets `deviation` of each value that a node computes. PRONY_INTERRUPTED as in reference_step.
 */
enum prony_status rounding_measure(const struct graph *forward, const struct recipe *recipe,
				   const struct tensor_set *weights, struct batch batch,
				   struct reference_watch *watch, double *deviation,
				   struct error *err);

/* Runs nodes [first, end) alone; without labels the loss is left out. */
enum prony_status reference_nodes(struct reference *ref, const struct recipe *recipe, bool training,
				  struct kinks *kinks, int first, int end, struct error *err);

/* What is too close to call, in units of accumulation_rounding; adds a node's products to it. */
double reference_closeness(const struct reference *ref, const struct recipe *recipe);
/* The same of what a node compares, where it was measured: a network may amplify rounding. 0: not.
 */
double reference_measured_closeness(const struct node *node, const struct kinks *kinks);
void reference_deepen(struct accumulation *sum, const struct graph *graph, const struct node *node);

/* The update of one parameter. */
void reference_update(struct reference *ref, const struct recipe *recipe, bool epsilon_inside,
		      struct kinks *kinks, int index);

/* reference_step with an eye on kinks (may be NULL). */
enum prony_status reference_step_kinks(struct reference *ref, const struct recipe *recipe,
				       bool epsilon_inside, struct kinks *kinks, struct error *err);

/*
 * Draws new masks and runs the forward nodes from the first dropout on: what stands before it does
 * not depend on them. After a reference_step of this batch; counts as a step for the masks.
 */
enum prony_status reference_redraw(struct reference *ref, const struct recipe *recipe,
				   struct error *err);

#endif
