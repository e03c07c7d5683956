#include "parity/kernels_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "parity/worth_internal.h"

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

/* An element costs what it takes to fetch and store it: several multiplications. */
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
	double *sums; /* by part: the sum of all is the same whoever took them */
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

bool kernel_turns(struct kinks *kinks)
{
	int64_t number = kinks->count++;

	return number < kinks->decided ? kinks->decisions[number] : kinks->turn_all;
}

/* Beyond so many, one more or less makes no difference. */
#define KINKS_KEPT (INT64_C(1) << 22)

static void keep_kink(struct kink_list *list, const struct kink *kink)
{
	if (list->count >= KINKS_KEPT)
		return;
	if (list->count == list->capacity) {
		list->capacity = list->capacity ? 2 * list->capacity : 256;
		list->items =
			memory_realloc(list->items, (size_t)list->capacity * sizeof(*list->items));
	}
	list->items[list->count++] = *kink;
}

void kink_list_release(struct kink_list *list)
{
	free(list->items);
	*list = (struct kink_list){0};
}

static int compare_kinks(const struct kink *a, const struct kink *b)
{
	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* Steps, nodes and places were all met in ascending order. */
static const struct kink *find_kink(const struct kink_list *list, const struct kink *wanted)
{
	int64_t first = 0, end = list->count;

	while (first < end) {
		int64_t middle = first + (end - first) / 2;
		int order = compare_kinks(&list->items[middle], wanted);

		if (order == 0)
			return &list->items[middle];
		if (order < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return NULL;
}

int64_t kernel_decides(const struct kernel_call *call, int64_t place, int64_t decision,
		       int64_t other)
{
	struct kinks *kinks = call->kinks;
	struct kink kink = {.step = call->step,
			    .place = place,
			    .node = (int)(call->node - call->graph->nodes),
			    .decision = decision};

	if (kinks->turned) {
		const struct kink *found = find_kink(kinks->turned, &kink);

		kinks->count++;
		return found && found->decision == decision ? other : decision;
	}
	if (kinks->kept)
		keep_kink(kinks->kept, &kink);
	return kernel_turns(kinks) ? other : decision;
}
