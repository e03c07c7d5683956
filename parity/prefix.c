/* Ties a decode step to the forward pass of the whole prefix. */
#include "parity/prefix.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/kernel.h"

/* `to` gets the first `prompt` rows of each head from `from`, batch x heads x rows x features. */
static void copy_rows(const double *from, const struct shape *shape, int64_t prompt,
		      struct tensor *to)
{
	struct axis_split source = split_axis(shape, 2), target = split_axis(&to->shape, 2);

	for (int64_t i = 0; i < source.outer; i++) {
		const double *rows = from + i * source.size * source.inner;
		int64_t first = i * target.size * target.inner;

		for (int64_t k = 0; k < prompt * source.inner; k++) {
			if (to->dtype == DTYPE_F64)
				((double *)to->data)[first + k] = rows[k];
			else
				((float *)to->data)[first + k] = (float)rows[k];
		}
	}
}

enum prony_status prefix_fill_caches(const struct reference *whole, const struct graph *step,
				     int64_t prompt, struct tensor_set *weights, struct error *err)
{
	for (int i = 0; i < step->forward_count; i++) {
		const struct node *node = &step->nodes[i];
		const double *from;
		int64_t count;
		int value;

		if (!operator_row(node->op)->replaces_state)
			continue;
		value = graph_find_value(whole->graph, step->values[node->inputs[1]].name);
		from = reference_value(whole, value, &count);
		if (!from || whole->graph->values[value].shape.dims[2] < prompt)
			return error_set(err, PRONY_INTERNAL,
					 "the whole prefix does not compute '%.100s'",
					 step->values[node->inputs[1]].name);
		copy_rows(from, &whole->graph->values[value].shape, prompt,
			  tensor_find(weights, step->values[node->inputs[0]].name));
	}
	return PRONY_OK;
}

enum prony_status prefix_logits(const struct reference *whole, int64_t position,
				struct arena *arena, struct tensor *out, struct error *err)
{
	int64_t batch = graph_batch(whole->graph), classes = graph_classes(whole->graph), count;
	const double *logits = reference_value(whole, whole->graph->logits, &count);
	struct shape shape = {.rank = 2, .dims = {batch, classes}};
	enum prony_status status = tensor_new(arena, "logits", DTYPE_F64, &shape, out, err);

	for (int64_t n = 0; status == PRONY_OK && n < batch; n++)
		memcpy((double *)out->data + n * classes,
		       logits + n * (count / batch) + position * classes,
		       (size_t)classes * sizeof(double));
	return status;
}

double prefix_distance(const struct tensor *expected, const struct tensor *found)
{
	const double *a = expected->data, *b = found->data;
	int64_t count = shape_elements(&expected->shape);
	double largest = 0;

	for (int64_t i = 0; i < count; i++) {
		double difference = fabs(a[i] - b[i]);

		if (isnan(difference)) /* fmax would lose it */
			return NAN;
		largest = fmax(largest, difference);
	}
	return largest / fmax(kernel_rms(a, count), DBL_MIN);
}
