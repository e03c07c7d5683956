/* Finds where the samples lie in the outputs of common kinds of operators. */
#include "graph/samples.h"

const struct samples_axis samples_nowhere = {.axis = -1};

struct samples_axis samples_on(const struct samples *s, const struct shape *shape, int axis,
			       int64_t outer)
{
	int64_t dim = shape->dims[axis];

	if (outer < 1 || outer > dim / s->batch || dim % (outer * s->batch) != 0)
		return samples_nowhere;
	return (struct samples_axis){axis, outer, dim / (outer * s->batch)};
}

struct samples_axis samples_on_output(const struct samples *s, const struct node *node, int axis,
				      int64_t outer)
{
	return samples_on(s, &s->graph->values[node->outputs[0]].shape, axis, outer);
}

struct samples_axis samples_stay(const struct samples *s, const struct node *node,
				 const struct samples_axis *x)
{
	(void)s;
	(void)node;
	return *x;
}

struct samples_axis samples_of_planes(const struct samples *s, const struct node *node,
				      const struct samples_axis *x)
{
	return x->axis < 2 ? samples_on_output(s, node, x->axis, x->outer) : samples_nowhere;
}

struct samples_axis samples_beside_channels(const struct samples *s, const struct node *node,
					    const struct samples_axis *x)
{
	(void)s;
	(void)node;
	return x->axis != 1 ? *x : samples_nowhere;
}

struct samples_axis samples_first(const struct samples *s, const struct node *node,
				  const struct samples_axis *x)
{
	return x->axis == 0 ? samples_on_output(s, node, 0, x->outer) : samples_nowhere;
}
