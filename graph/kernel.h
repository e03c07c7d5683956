/* What the float64 kernels of the operators receive and share: one execution of one node, its
 * operands, walks over arrays, and loops on all cores. */
#ifndef PRONY_GRAPH_KERNEL_H
#define PRONY_GRAPH_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct kernel_call;
struct kinks;

/* Functions with which the gate changes or observes decisions and rounding of kernels (reasons:
 * parity/kinks.c). */
struct kernel_hooks {
	/* Called when a comparison is too close to call. Returns the decision, given the usual one
	 * and the other possible one. `place` is the number of the comparison within the node;
	 * calls come in ascending order. */
	int64_t (*decide)(const struct kernel_call *call, int64_t place, int64_t decision,
			  int64_t other);
	/* The same for comparisons without a number: returns whether to decide otherwise. */
	bool (*turn)(const struct kernel_call *call);
	/* The rounding that is added to element i of an output: round_value for one number;
	 * round_sum for the sum of `terms` numbers, `norm` being the root of the sum of their
	 * squares. */
	double (*round_value)(const struct kernel_call *call, int output, int64_t i, double value);
	double (*round_sum)(const struct kernel_call *call, int output, int64_t i, int64_t terms,
			    double sum, double norm);
};

/* One execution of one node. */
struct kernel_call {
	const struct graph *graph;
	const struct node *node;
	double *const *values; /* of the interpreter, by value index */
	bool training;	       /* batch normalisation uses the batch's statistics */
	bool dropout;	       /* masks are drawn; otherwise dropout is the identity */
	uint64_t seed;
	int64_t step;
	const struct kernel_hooks *hooks; /* NULL: no function is called */
	struct kinks *kinks;		  /* passed to the functions of `hooks` */
	double close; /* with hooks: the distance that is too close, relative to the tensor's RMS */
	bool rounds;  /* rounding is added to results */
};

/* Shared by the kernels: data, shape and element count of input or output i. */
double *kernel_input(const struct kernel_call *call, int i);  /* NULL when left out */
double *kernel_output(const struct kernel_call *call, int i); /* NULL when left out */
const struct shape *kernel_input_shape(const struct kernel_call *call, int i);
const struct shape *kernel_output_shape(const struct kernel_call *call, int i);
int64_t kernel_output_count(const struct kernel_call *call, int i);

/* Visits the elements of one array in row-major order and gives the offset of each in two others. A
 * broadcast or transposed array has other steps: 0 where one element is repeated. */
struct array_walk {
	struct shape shape;
	int64_t steps[2][TENSOR_MAX_RANK];
	int64_t index[TENSOR_MAX_RANK];
	int64_t at[2];
};

struct array_walk array_walk_start(const struct shape *shape);
/* Sets up the other array `which` (0 or 1), which has the shape `from` and is broadcast. */
void array_walk_broadcast(struct array_walk *walk, int which, const struct shape *from);
void array_walk_next(struct array_walk *walk);
/* Moves to an element in row-major order; call it before the first array_walk_next. */
void array_walk_seek(struct array_walk *walk, int64_t element);

/* Numbers of elements before, on and after an axis. */
struct axis_split {
	int64_t outer, size, inner;
};

struct axis_split split_axis(const struct shape *shape, int64_t axis);

/* Root mean square; 0 if there are no elements. */
double kernel_rms(const double *x, int64_t count);

/* Calls work(context, part) for every part of [0, parts), on as many cores as the total number of
 * `operations` justifies. Parts must be independent of each other. */
void kernel_parts(int64_t parts, int64_t operations, void (*work)(void *context, int64_t part),
		  void *context);

/* Large arrays are split into parts of this many elements, whatever the number of cores. */
#define KERNEL_PART (INT64_C(1) << 15)

/* Calls work for [0, count) in parts of KERNEL_PART elements. */
void kernel_each(const struct kernel_call *call, int64_t count,
		 void (*work)(const struct kernel_call *call, int64_t first, int64_t end));

#endif
