/* Access to the arrays of one node in a step. */
#include "adapters/fake/executor_internal.h"

float *call_input(const struct call *c, int i)
{
	bool there = i < c->node->input_count && c->node->inputs[i] != VALUE_NONE;

	return there ? c->ex->values[c->node->inputs[i]] : NULL;
}

float *call_output(const struct call *c, int i)
{
	bool there = i < c->node->output_count && c->node->outputs[i] != VALUE_NONE;

	return there ? c->ex->values[c->node->outputs[i]] : NULL;
}

const int64_t *call_input_dims(const struct call *c, int i)
{
	return c->ex->graph->values[c->node->inputs[i]].shape.dims;
}

const int64_t *call_output_dims(const struct call *c, int i)
{
	return c->ex->graph->values[c->node->outputs[i]].shape.dims;
}

int64_t call_count(const struct call *c)
{
	return shape_elements(&c->ex->graph->values[c->node->outputs[0]].shape);
}
