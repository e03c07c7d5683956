/* Normalisations of rows: LayerNormalization and RMSNormalization over the last axes,
 * GroupNormalization and InstanceNormalization over channels, and their gradients. */
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

static const struct attribute_row group_norm_attributes[] = {
	{ATTRIBUTE("num_groups", INT, group, 1)},
	{ATTRIBUTE("epsilon", REAL, epsilon, 1e-5)},
	{.name = NULL},
};

static const struct attribute_row instance_norm_attributes[] = {
	{ATTRIBUTE("epsilon", REAL, epsilon, 1e-5)},
	{.name = NULL},
};

/* scale and bias have one number for each channel. */
static enum prony_status group_norm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct attributes *a = &node->attributes;

	if (x->rank < 3)
		return node_error(node, err,
				  "x has %d dimensions; it needs batch, channels and more",
				  x->rank);
	for (int i = 1; i < 3; i++) {
		enum prony_status status = node_need_rank(graph, node, i, 1, err);

		if (status != PRONY_OK)
			return status;
		if (node_input_shape(graph, node, i)->dims[0] != x->dims[1])
			return node_error(node, err,
					  "input %d ('%s') must have %lld elements, one for each "
					  "channel",
					  i, graph->values[node->inputs[i]].name,
					  (long long)x->dims[1]);
	}
	if (node->op == OP_GROUP_NORM && (a->group < 1 || x->dims[1] % a->group != 0))
		return node_error(node, err, "num_groups %lld must divide the %lld channels",
				  (long long)a->group, (long long)x->dims[1]);
	if (!(a->epsilon > 0))
		return node_error(node, err, "epsilon is %g; it must be positive", a->epsilon);
	return node_copy_shape(graph, node, err);
}

static enum op gradient_of(enum op op)
{
	switch (op) {
	case OP_LAYER_NORM:
		return OP_LAYER_NORM_GRAD;
	case OP_RMS_NORM:
		return OP_RMS_NORM_GRAD;
	case OP_GROUP_NORM:
		return OP_GROUP_NORM_GRAD;
	default:
		return OP_INSTANCE_NORM_GRAD;
	}
}

static enum prony_status layer_norm_backward(struct graph *graph, const struct node *node,
					     struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1]};

	return backward_node(graph, node, gradient_of(node->op), inputs, 3, 0, node->input_count,
			     err);
}

/* The elements that are normalised together form one row. */
struct rows {
	const struct kernel_call *call;
	const double *x;
	int64_t length;
	int64_t groups, inner;	/* element i of row r has scale r % groups * length / inner + i /
				   inner */
	bool centred;		/* the mean is subtracted; else it counts as 0 */
	double *mean, *inverse; /* for each row; inverse: 1 / sqrt(variance + epsilon) */
};

/* How an array of the shape `x` is normalised, given the shape of the scale. */
static struct rows shape_rows(const struct node *node, const struct shape *x,
			      const struct shape *scale)
{
	int64_t scales = shape_elements(scale);
	struct rows rows = {.length = scales, .groups = 1, .inner = 1, .centred = true};

	switch (node->op) {
	case OP_RMS_NORM:
	case OP_RMS_NORM_GRAD:
		rows.centred = false;
		break;
	case OP_GROUP_NORM:
	case OP_GROUP_NORM_GRAD:
	case OP_INSTANCE_NORM:
	case OP_INSTANCE_NORM_GRAD:
		rows.groups = node->op == OP_GROUP_NORM || node->op == OP_GROUP_NORM_GRAD
				      ? node->attributes.group
				      : scales;
		rows.inner = shape_elements(x) / (x->dims[0] * scales);
		rows.length = scales / rows.groups * rows.inner;
		break;
	default:
		break;
	}
	return rows;
}

static struct rows rows_of(const struct kernel_call *call, int x, int scale)
{
	struct rows rows = shape_rows(call->node, kernel_input_shape(call, x),
				      kernel_input_shape(call, scale));

	rows.call = call;
	rows.x = kernel_input(call, x);
	return rows;
}

/* The scale of the first element of a row. */
static int64_t first_scale(const struct rows *r, int64_t row)
{
	return row % r->groups * (r->length / r->inner);
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
	int64_t first = first_scale(r, row);
	const double *scale = kernel_input(r->call, 1) + first;
	const double *bias = r->centred ? kernel_input(r->call, 2) + first : NULL;
	double *y = kernel_output(r->call, 0) + row * r->length, mean, inverse;

	row_moments(r, row, &mean, &inverse);
	for (int64_t i = 0; i < r->length; i++)
		y[i] = (r->x[row * r->length + i] - mean) * inverse * scale[i / r->inner] +
		       (bias ? bias[i / r->inner] : 0);
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
	const double *scale = kernel_input(r->call, 2) + first_scale(r, row);
	const double *x = r->x + row * r->length;
	double *dx = kernel_output(r->call, 0), mean, inverse, sum = 0, product = 0;

	row_moments(r, row, &mean, &inverse);
	r->mean[row] = mean;
	r->inverse[row] = inverse;
	for (int64_t i = 0; i < r->length; i++) {
		sum += scale[i / r->inner] * dy[i];
		product += scale[i / r->inner] * dy[i] * (x[i] - mean) * inverse;
	}
	sum = r->centred ? sum / (double)r->length : 0;
	product /= (double)r->length;
	for (int64_t i = 0; dx && i < r->length; i++)
		dx[row * r->length + i] = inverse * (scale[i / r->inner] * dy[i] - sum -
						     (x[i] - mean) * inverse * product);
}

static void sum_rows(const struct rows *r, int64_t rows, double *dscale, double *dbias)
{
	const double *dy = kernel_input(r->call, 0);
	size_t bytes = (size_t)(r->groups * (r->length / r->inner)) * sizeof(double);

	if (dscale)
		memset(dscale, 0, bytes);
	if (dbias)
		memset(dbias, 0, bytes);
	for (int64_t at = 0; at < rows * r->length; at++) {
		int64_t row = at / r->length;
		int64_t i = first_scale(r, row) + at % r->length / r->inner;

		if (dscale)
			dscale[i] += dy[at] * (r->x[at] - r->mean[row]) * r->inverse[row];
		if (dbias)
			dbias[i] += dy[at];
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
	struct rows rows = shape_rows(node, node_input_shape(graph, node, 0),
				      node_input_shape(graph, node, 1));

	(void)output;
	return (rows.centred ? 2 : 1) * rows.length;
}

static int64_t layer_norm_grad_terms(const struct graph *graph, const struct node *node, int output)
{
	const struct shape *x = node_input_shape(graph, node, 1);
	const struct shape *scale = node_input_shape(graph, node, 2);
	struct rows rows = shape_rows(node, x, scale);

	if (output == 0)
		return (rows.centred ? 2 : 1) * rows.length;
	return shape_elements(x) / shape_elements(scale);
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

#define CHANNEL_NORM(table)                                                                        \
	ARITY(3, 3, 1), .attributes = (table), .infer = group_norm_infer,                          \
			.backward = layer_norm_backward, .compute = layer_norm_compute,            \
			.terms = layer_norm_terms, .samples = samples_first, .joins_box = true,    \
			.onnx_inputs = "xee"

const struct operator_row row_GROUP_NORM = {
	CHANNEL_NORM(group_norm_attributes), .short_name = "GroupNorm", .opset = 21,
};

const struct operator_row row_INSTANCE_NORM = {
	CHANNEL_NORM(instance_norm_attributes), .short_name = "InstanceNorm",
};

const struct operator_row row_GROUP_NORM_GRAD = {
	GRADIENT(3, 3, group_norm_attributes), .leaves_out = true,
	.compute = layer_norm_grad_compute, .terms = layer_norm_grad_terms,
};

const struct operator_row row_INSTANCE_NORM_GRAD = {
	GRADIENT(3, 3, instance_norm_attributes), .leaves_out = true,
	.compute = layer_norm_grad_compute, .terms = layer_norm_grad_terms,
};

const struct operator_row row_LAYER_NORM_GRAD = {
	GRADIENT(3, 3, layer_norm_attributes), .leaves_out = true,
	.compute = layer_norm_grad_compute, .terms = layer_norm_grad_terms,
};
/* clang-format on */
