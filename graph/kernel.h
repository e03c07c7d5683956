/*
 * What the float64 kernels of the operators get and share: one execution of one node, its operands,
 * walks over arrays, loops on all cores.
 */
#ifndef PRONY_GRAPH_KERNEL_H
#define PRONY_GRAPH_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct kernel_call;
struct kinks;

/* What the gate asks of kernels beside their results (parity/kinks.c has the reasons). */
struct kernel_watch {
	/* A comparison is too close to call: what is decided, given what it would be and what else
	 * it may be. `place` is its number within the node; they are asked in ascending order. */
	int64_t (*decide)(const struct kernel_call *call, int64_t place, int64_t decision,
			  int64_t other);
	/* The same where comparisons have no number: whether to decide otherwise. */
	bool (*turn)(const struct kernel_call *call);
	/* What rounding adds to element i of an output: to one number; and to the sum of `terms`
	 * numbers, whose squares' sum has the root `norm`. */
	double (*round_value)(const struct kernel_call *call, int output, int64_t i, double value);
	double (*round_sum)(const struct kernel_call *call, int output, int64_t i, int64_t terms,
			    double sum, double norm);
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
	const struct kernel_watch *watch; /* NULL: nothing is asked */
	struct kinks *kinks;		  /* for the functions of `watch` */
	double close; /* with watch: what is too close, relative to the tensor's RMS */
	bool rounds;  /* rounding is added to results */
};

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

/*
 * Calls work(context, part) for every part of [0, parts), on as many cores as `operations` of all
 * together are worth. No part may depend on another.
 */
void kernel_parts(int64_t parts, int64_t operations, void (*work)(void *context, int64_t part),
		  void *context);

/* Large arrays are taken in parts of so many elements, which do not depend on the cores. */
#define KERNEL_PART (INT64_C(1) << 15)

/* Calls work for [0, count) in parts of KERNEL_PART. */
void kernel_each(const struct kernel_call *call, int64_t count,
		 void (*work)(const struct kernel_call *call, int64_t first, int64_t end));

#endif
