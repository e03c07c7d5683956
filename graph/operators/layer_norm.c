/* LayerNormalization and RMSNormalization over the last axes, and their gradients. */
#include "graph/operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct attribute_row layer_norm_attributes[] = {
	{ATTRIBUTE("axis", INT, axis, -1)},
	{ATTRIBUTE("epsilon", REAL, epsilon, 1e-5)},
	{.name = NULL},
};

/* scale and bias have one number for each of the elements that are normalised together. */
static enum prony_status layer_norm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	struct attributes *a = &node->attributes;
	enum prony_status status = node_normal_axis(node, x->rank, &a->axis, err);
	struct shape row = {.rank = 0};

	if (status != PRONY_OK)
		return status;
	row.rank = x->rank - (int)a->axis;
	memcpy(row.dims, x->dims + a->axis, (size_t)row.rank * sizeof(row.dims[0]));
	for (int i = 1; i < node->input_count; i++) {
		status = node_need_float(graph, node, i, err);
		if (status != PRONY_OK)
			return status;
		if (!shape_equal(node_input_shape(graph, node, i), &row))
			return node_error(
				node, err,
				"the shape of input %d ('%s') must be that of x from axis %lld on",
				i, graph->values[node->inputs[i]].name, (long long)a->axis);
	}
	if (!(a->epsilon > 0))
		return node_error(node, err, "epsilon is %g; it must be positive", a->epsilon);
	return node_copy_shape(graph, node, err);
}

static enum prony_status layer_norm_backward(struct graph *graph, const struct node *node,
					     struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1]};

	return backward_node(graph, node,
			     node->op == OP_LAYER_NORM ? OP_LAYER_NORM_GRAD : OP_RMS_NORM_GRAD,
			     inputs, 3, 0, node->input_count, err);
}

/* The elements that are normalised together form one row. */
struct rows {
	const struct kernel_call *call;
	const double *x;
	int64_t length;
	bool centred; /* LayerNormalization: the mean is subtracted; else it counts as 0 */
	double *mean, *inverse; /* for each row; inverse: 1 / sqrt(variance + epsilon) */
};

static struct rows rows_of(const struct kernel_call *call, int x, int scale)
{
	enum op op = call->node->op;

	return (struct rows){.call = call,
			     .x = kernel_input(call, x),
			     .length = shape_elements(kernel_input_shape(call, scale)),
			     .centred = op == OP_LAYER_NORM || op == OP_LAYER_NORM_GRAD};
}

/* The variance is the mean of the squared differences from the mean. */
static void row_moments(const struct rows *r, int64_t row, double *mean, double *inverse)
{
	const double *x = r->x + row * r->length;
	double n = (double)r->length, sum = 0, squares = 0;

	for (int64_t i = 0; r->centred && i < r->length; i++)
		sum += x[i];
	*mean = sum / n;
	for (int64_t i = 0; i < r->length; i++)
		squares += (x[i] - *mean) * (x[i] - *mean);
	*inverse = 1 / sqrt(squares / n + r->call->node->attributes.epsilon);
}

static void normalise_row(void *context, int64_t row)
{
	const struct rows *r = context;
	const double *scale = kernel_input(r->call, 1);
	const double *bias = r->centred ? kernel_input(r->call, 2) : NULL;
	double *y = kernel_output(r->call, 0) + row * r->length, mean, inverse;

	row_moments(r, row, &mean, &inverse);
	for (int64_t i = 0; i < r->length; i++)
		y[i] = (r->x[row * r->length + i] - mean) * inverse * scale[i] +
		       (bias ? bias[i] : 0);
}

static void layer_norm_compute(const struct kernel_call *call)
{
	int64_t elements = shape_elements(kernel_input_shape(call, 0));
	struct rows rows = rows_of(call, 0, 1);

	kernel_parts(elements / rows.length, elements, normalise_row, &rows);
}

/* With z = (x - mean) / sqrt(var + eps), y = scale z + bias and means over a row: dx = (g - mean g
 * - z mean(g z)) / sqrt(var + eps) with g = scale dy (Ba et al. 2016, arXiv 1607.06450); dscale =
 * sum of dy z and dbias = sum of dy over the rows. RMSNormalization (Zhang and Sennrich 2019, arXiv
 * 1910.07467): the same without mean and mean g. */
static void row_gradient(void *context, int64_t row)
{
	const struct rows *r = context;
	const double *dy = kernel_input(r->call, 0) + row * r->length;
	const double *scale = kernel_input(r->call, 2), *x = r->x + row * r->length;
	double *dx = kernel_output(r->call, 0), mean, inverse, sum = 0, product = 0;

	row_moments(r, row, &mean, &inverse);
	r->mean[row] = mean;
	r->inverse[row] = inverse;
	for (int64_t i = 0; i < r->length; i++) {
		sum += scale[i] * dy[i];
		product += scale[i] * dy[i] * (x[i] - mean) * inverse;
	}
	sum = r->centred ? sum / (double)r->length : 0;
	product /= (double)r->length;
	for (int64_t i = 0; dx && i < r->length; i++)
		dx[row * r->length + i] =
			inverse * (scale[i] * dy[i] - sum - (x[i] - mean) * inverse * product);
}

static void sum_rows(const struct rows *r, int64_t rows, double *dscale, double *dbias)
{
	const double *dy = kernel_input(r->call, 0);

	for (int64_t i = 0; i < r->length; i++) {
		double scale = 0, bias = 0;

		for (int64_t row = 0; row < rows; row++) {
			double d = dy[row * r->length + i], x = r->x[row * r->length + i];

			scale += d * (x - r->mean[row]) * r->inverse[row];
			bias += d;
		}
		if (dscale)
			dscale[i] = scale;
		if (dbias)
			dbias[i] = bias;
	}
}

static void layer_norm_grad_compute(const struct kernel_call *call)
{
	struct rows rows = rows_of(call, 1, 2);
	int64_t elements = shape_elements(kernel_input_shape(call, 1));
	int64_t count = elements / rows.length;

	rows.mean = memory_alloc((size_t)count * sizeof(double));
	rows.inverse = memory_alloc((size_t)count * sizeof(double));
	kernel_parts(count, elements, row_gradient, &rows);
	sum_rows(&rows, count, kernel_output(call, 1),
		 rows.centred ? kernel_output(call, 2) : NULL);
	free(rows.mean);
	free(rows.inverse);
}

/* Two sums over a row: mean and variance, or the two means of the gradient. RMSNormalization has
 * one of them. */
static int64_t layer_norm_terms(const struct graph *graph, const struct node *node, int output)
{
	(void)output;
	return (node->op == OP_RMS_NORM ? 1 : 2) * shape_elements(node_input_shape(graph, node, 1));
}

static int64_t layer_norm_grad_terms(const struct graph *graph, const struct node *node, int output)
{
	int64_t length = shape_elements(node_input_shape(graph, node, 2));

	if (output == 0)
		return (node->op == OP_RMS_NORM_GRAD ? 1 : 2) * length;
	return shape_elements(node_input_shape(graph, node, 1)) / length;
}

static struct samples_axis layer_norm_samples(const struct samples *s, const struct node *node,
					      const struct samples_axis *x)
{
	(void)s;
	return x->axis < node->attributes.axis ? *x : samples_nowhere;
}

/* clang-format off */
const struct operator_row row_LAYER_NORM = {
	ARITY(3, 3, 1), .attributes = layer_norm_attributes, .infer = layer_norm_infer,
	.backward = layer_norm_backward, .compute = layer_norm_compute,
	.terms = layer_norm_terms, .samples = layer_norm_samples,
	.joins_box = true, .short_name = "LayerNorm", .onnx_inputs = "xpp",
};

const struct operator_row row_RMS_NORM = {
	ARITY(2, 2, 1), .attributes = layer_norm_attributes, .infer = layer_norm_infer,
	.backward = layer_norm_backward, .compute = layer_norm_compute,
	.terms = layer_norm_terms, .samples = layer_norm_samples,
	.joins_box = true, .short_name = "RMSNorm", .onnx_inputs = "xp", .opset = 23,
};

const struct operator_row row_RMS_NORM_GRAD = {
	GRADIENT(3, 2, layer_norm_attributes), .leaves_out = true,
	.compute = layer_norm_grad_compute, .terms = layer_norm_grad_terms,
};

const struct operator_row row_LAYER_NORM_GRAD = {
	GRADIENT(3, 3, layer_norm_attributes), .leaves_out = true,
	.compute = layer_norm_grad_compute, .terms = layer_norm_grad_terms,
};
/* clang-format on */
