/* Finds the axes that means and broadcasts sum up or repeat. */
#include "graph/reduction.h"

static void sum_axis(struct reduction *r, int axis)
{
	r->summed[axis] = true;
	r->count *= r->kept.dims[axis];
	r->kept.dims[axis] = 1;
}

struct reduction reduction_of_mean(const struct graph *graph, const struct node *mean)
{
	static const struct int_list plane = {.items = {2, 3}, .count = 2};
	bool global = mean->op == OP_GLOBAL_AVERAGE_POOL;
	const struct int_list *over = global ? &plane : &mean->attributes.ints;
	struct reduction r = {.kept = graph->values[mean->inputs[0]].shape, .count = 1};
	int next = 0;

	for (int i = 0; i < over->count; i++)
		sum_axis(&r, (int)over->items[i]);
	for (int i = 0; i < r.kept.rank; i++)
		if (!r.summed[i] || global || mean->attributes.keep_dims)
			r.axes[next++] = i;
	return r;
}

/* The shapes are aligned at their last axes. */
struct reduction reduction_of_broadcast(const struct shape *whole, const struct shape *part)
{
	struct reduction r = {.kept = *whole, .count = 1};
	int lead = whole->rank - part->rank;

	for (int i = 0; i < whole->rank; i++) {
		if (i < lead || part->dims[i - lead] != whole->dims[i])
			sum_axis(&r, i);
		if (i >= lead)
			r.axes[i - lead] = i;
	}
	return r;
}
