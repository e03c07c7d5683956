/* Shared code of the operators' float64 kernels, and their rounding. */
#include "graph/kernel.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "graph/operators/operator.h"

double *kernel_input(const struct kernel_call *call, int i)
{
	if (i >= call->node->input_count || call->node->inputs[i] == VALUE_NONE)
		return NULL;
	return call->values[call->node->inputs[i]];
}

double *kernel_output(const struct kernel_call *call, int i)
{
	if (i >= call->node->output_count || call->node->outputs[i] == VALUE_NONE)
		return NULL;
	return call->values[call->node->outputs[i]];
}

const struct shape *kernel_input_shape(const struct kernel_call *call, int i)
{
	assert(i < call->node->input_count);
	return &call->graph->values[call->node->inputs[i]].shape;
}

const struct shape *kernel_output_shape(const struct kernel_call *call, int i)
{
	assert(i < call->node->output_count);
	return &call->graph->values[call->node->outputs[i]].shape;
}

int64_t kernel_output_count(const struct kernel_call *call, int i)
{
	return shape_elements(kernel_output_shape(call, i));
}

struct array_walk array_walk_start(const struct shape *shape)
{
	return (struct array_walk){.shape = *shape};
}

void array_walk_broadcast(struct array_walk *walk, int which, const struct shape *from)
{
	int lead = walk->shape.rank - from->rank;
	int64_t step = 1;

	for (int i = from->rank - 1; i >= 0; i--) {
		walk->steps[which][lead + i] = from->dims[i] == 1 ? 0 : step;
		step *= from->dims[i];
	}
}

void array_walk_next(struct array_walk *walk)
{
	for (int i = walk->shape.rank - 1; i >= 0; i--) {
		walk->index[i]++;
		for (int k = 0; k < 2; k++)
			walk->at[k] += walk->steps[k][i];
		if (walk->index[i] < walk->shape.dims[i])
			return;
		walk->index[i] = 0;
		for (int k = 0; k < 2; k++)
			walk->at[k] -= walk->steps[k][i] * walk->shape.dims[i];
	}
}

void array_walk_seek(struct array_walk *walk, int64_t element)
{
	for (int i = walk->shape.rank - 1; i >= 0; i--) {
		walk->index[i] = element % walk->shape.dims[i];
		element /= walk->shape.dims[i];
		for (int k = 0; k < 2; k++)
			walk->at[k] += walk->steps[k][i] * walk->index[i];
	}
}

struct axis_split split_axis(const struct shape *shape, int64_t axis)
{
	struct axis_split split = {.outer = 1, .size = shape->dims[axis], .inner = 1};

	for (int i = 0; i < shape->rank; i++) {
		if (i < axis)
			split.outer *= shape->dims[i];
		else if (i > axis)
			split.inner *= shape->dims[i];
	}
	return split;
}

/* An element costs a fetch and a store, which take as long as several multiplications. */
#define ELEMENT_OPERATIONS 8

struct parts {
	void (*work)(void *context, int64_t part);
	void *context;
};

static void take_parts(void *context, struct parallel_items *items)
{
	const struct parts *parts = context;
	int64_t part;

	while ((part = parallel_next(items)) >= 0)
		parts->work(parts->context, part);
}

void kernel_parts(int64_t parts, int64_t operations, void (*work)(void *context, int64_t part),
		  void *context)
{
	struct parts all = {work, context};

	parallel_run(parts, parallel_threads(operations * ELEMENT_OPERATIONS), take_parts, &all);
}

static int64_t part_count(int64_t count)
{
	return (count + KERNEL_PART - 1) / KERNEL_PART;
}

static int64_t part_end(int64_t part, int64_t count)
{
	return (part + 1) * KERNEL_PART < count ? (part + 1) * KERNEL_PART : count;
}

struct each {
	const struct kernel_call *call;
	int64_t count;
	void (*work)(const struct kernel_call *call, int64_t first, int64_t end);
};

static void each_part(void *context, int64_t part)
{
	const struct each *each = context;

	each->work(each->call, part * KERNEL_PART, part_end(part, each->count));
}

void kernel_each(const struct kernel_call *call, int64_t count,
		 void (*work)(const struct kernel_call *call, int64_t first, int64_t end))
{
	struct each each = {call, count, work};

	kernel_parts(part_count(count), count, each_part, &each);
}

struct squares {
	const double *x;
	int64_t count;
	double *sums; /* by part: the total is the same whichever thread took a part */
};

static void square_part(void *context, int64_t part)
{
	const struct squares *squares = context;
	double sum = 0;

	for (int64_t i = part * KERNEL_PART; i < part_end(part, squares->count); i++)
		sum += squares->x[i] * squares->x[i];
	squares->sums[part] = sum;
}

double kernel_rms(const double *x, int64_t count)
{
	int64_t parts = part_count(count);
	struct squares squares = {x, count, memory_alloc((size_t)parts * sizeof(double))};
	double sum = 0;

	kernel_parts(parts, count, square_part, &squares);
	for (int64_t i = 0; i < parts; i++)
		sum += squares.sums[i];
	free(squares.sums);
	return count > 0 ? sqrt(sum / (double)count) : 0;
}

int64_t terms_none(const struct graph *graph, const struct node *node, int output)
{
	(void)graph;
	(void)node;
	(void)output;
	return 0;
}

int64_t terms_shared(const struct graph *graph, const struct node *node, int output)
{
	return shape_elements(node_input_shape(graph, node, 0)) /
	       shape_elements(node_output_shape(graph, node, output));
}

int64_t terms_of_weight_gradient(const struct graph *graph, const struct node *node, int output)
{
	int64_t elements = shape_elements(node_output_shape(graph, node, output));

	if (output == 1)
		return shape_elements(node_input_shape(graph, node, 1)) / elements;
	return (int64_t)((double)operator_row(node->op)->macs(graph, node) / (double)elements);
}

int64_t operator_terms(const struct graph *graph, const struct node *node, int output)
{
	const struct operator_row *row = operator_row(node->op);

	if (row->terms)
		return row->terms(graph, node, output);
	return row->macs ? (int64_t)((double)row->macs(graph, node) /
				     (double)shape_elements(node_output_shape(graph, node, output)))
			 : 1;
}

static void copy(const struct kernel_call *call, int64_t first, int64_t end)
{
	memcpy(kernel_output(call, 0) + first, kernel_input(call, 0) + first,
	       (size_t)(end - first) * sizeof(double));
}

void compute_copy(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), copy);
}
