/*
 * Private to parity/: one function per operator of the reference interpreter, in float64. An
 * operator is added by its function and one row in kernels.c.
 */
#ifndef PRONY_PARITY_KERNELS_INTERNAL_H
#define PRONY_PARITY_KERNELS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"
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

/* One execution of one node. */
struct kernel_call {
	const struct graph *graph;
	const struct node *node;
	double *const *values; /* of the interpreter, by value index */
	bool training;	       /* batch normalisation takes the batch's statistics */
	bool dropout;	       /* masks are drawn; else dropout is the identity */
	uint64_t seed;
	int64_t step;
	struct kinks *kinks; /* NULL: not asked for */
	double close;	     /* with kinks: what is too close, relative to the tensor's RMS */
};

/* The function of an operator; NULL when the interpreter lacks it. */
void (*kernel_of(enum op op))(const struct kernel_call *call);

void kernel_conv(const struct kernel_call *call);
void kernel_conv_grad_input(const struct kernel_call *call);
void kernel_conv_grad_weight(const struct kernel_call *call);
void kernel_max_pool(const struct kernel_call *call);
void kernel_max_pool_grad(const struct kernel_call *call);
void kernel_average_pool(const struct kernel_call *call);
void kernel_average_pool_grad(const struct kernel_call *call);
void kernel_gemm(const struct kernel_call *call);
void kernel_gemm_grad_input(const struct kernel_call *call);
void kernel_gemm_grad_weight(const struct kernel_call *call);
void kernel_relu(const struct kernel_call *call);
void kernel_relu_grad(const struct kernel_call *call);
void kernel_elementwise(const struct kernel_call *call); /* whatever its row has a function for */
void kernel_elementwise_grad(const struct kernel_call *call);
void kernel_broadcast(const struct kernel_call *call);
void kernel_softmax(const struct kernel_call *call);
void kernel_softmax_grad(const struct kernel_call *call);
void kernel_batch_norm(const struct kernel_call *call);
void kernel_batch_norm_grad(const struct kernel_call *call);
void kernel_lrn(const struct kernel_call *call);
void kernel_lrn_grad(const struct kernel_call *call);
void kernel_copy(const struct kernel_call *call); /* Flatten, Reshape, Identity, gradients */
void kernel_transpose(const struct kernel_call *call);
void kernel_concat(const struct kernel_call *call);
void kernel_slice(const struct kernel_call *call);
void kernel_slice_grad(const struct kernel_call *call);
void kernel_pad(const struct kernel_call *call);
void kernel_pad_grad(const struct kernel_call *call);
void kernel_mean(const struct kernel_call *call); /* ReduceMean, GlobalAveragePool */
void kernel_mean_grad(const struct kernel_call *call);
void kernel_dropout(const struct kernel_call *call);
void kernel_dropout_grad(const struct kernel_call *call);
void kernel_broadcast_grad(const struct kernel_call *call);
void kernel_lstm(const struct kernel_call *call);
void kernel_lstm_grad(const struct kernel_call *call);
void kernel_rnn(const struct kernel_call *call);
void kernel_rnn_grad(const struct kernel_call *call);
void kernel_cross_entropy(const struct kernel_call *call);
void kernel_cross_entropy_grad(const struct kernel_call *call);
void kernel_half_squares(const struct kernel_call *call);

/* What the kernels share: data, dimension and element count of input or output i. */
double *kernel_input(const struct kernel_call *call, int i);  /* NULL when left out */
double *kernel_output(const struct kernel_call *call, int i); /* NULL when left out */
const struct shape *kernel_input_shape(const struct kernel_call *call, int i);
const struct shape *kernel_output_shape(const struct kernel_call *call, int i);
int64_t kernel_output_count(const struct kernel_call *call, int i);

/*
 * Visits the elements of one array in row-major order and says where each stands in two others:
 * what is broadcast or transposed has other steps, 0 where one element stands for many.
 */
struct array_walk {
	struct shape shape;
	int64_t steps[2][TENSOR_MAX_RANK];
	int64_t index[TENSOR_MAX_RANK];
	int64_t at[2];
};

struct array_walk array_walk_start(const struct shape *shape);
/* Other array `which` (0 or 1) has the shape `from`, which is broadcast. */
void array_walk_broadcast(struct array_walk *walk, int which, const struct shape *from);
void array_walk_next(struct array_walk *walk);
/* Goes to an element of the row-major order; before the first array_walk_next. */
void array_walk_seek(struct array_walk *walk, int64_t element);

/* Elements before, on and behind an axis. */
struct axis_split {
	int64_t outer, size, inner;
};

struct axis_split split_axis(const struct shape *shape, int64_t axis);

/* Root mean square; 0 for no elements. */
double kernel_rms(const double *x, int64_t count);

/* Counts a comparison that is too close to call, and says whether to turn it. */
bool kernel_turns(struct kinks *kinks);
/* The same where the list of kinks counts: what is decided, given what it would be. `place` is
 * its number within the node; a node's are asked for in ascending order. */
int64_t kernel_decides(const struct kernel_call *call, int64_t place, int64_t decision,
		       int64_t other);
void kink_list_release(struct kink_list *list);

/*
 * Calls work(context, part) for every part of [0, parts), shared out between all cores where
 * `operations` of all together are worth it. No part may depend on another.
 */
void kernel_parts(int64_t parts, int64_t operations, void (*work)(void *context, int64_t part),
		  void *context);

/* Large arrays are taken in parts of so many elements, which do not depend on the cores. */
#define KERNEL_PART (INT64_C(1) << 15)

/* Calls work for [0, count) in parts of KERNEL_PART. */
void kernel_each(const struct kernel_call *call, int64_t count,
		 void (*work)(const struct kernel_call *call, int64_t first, int64_t end));

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
 * How many terms are added up for an element of an output; 1 for what is computed of one element of
 * each input, 0 for what is only moved, or normalised by the batch: that rounds by itself.
 */
int64_t rounding_terms(const struct graph *graph, const struct node *node, int output);

/*
 * What float32 arithmetic would add to the outputs of a node, as numbers drawn from its place: to
 * a sum of K products what K roundings in sequence do, to other results one rounding.
 * Normalisations by the batch do that themselves, to each of their sums over a channel.
 */
void rounding_add(const struct kernel_call *call);
bool rounding_wanted(const struct kernel_call *call);
/* Of one number; and of the sum of `terms` numbers, whose squares' sum has the root `norm`. */
double rounding_of_value(const struct kernel_call *call, int output, int64_t i, double value);
double rounding_of_sum(const struct kernel_call *call, int output, int64_t i, int64_t terms,
		       double sum, double norm);

/*
 * Runs the forward pass of one batch twice, exact and rounded by one deviation, side by side, and
 * sets `deviation` of each value that a node computes. PRONY_INTERRUPTED as in reference_step.
 */
enum prony_status rounding_measure(const struct graph *forward, const struct recipe *recipe,
				   const struct tensor_set *weights, const struct tensor *x,
				   const struct tensor *y, struct reference_watch *watch,
				   double *deviation, struct error *err);

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
