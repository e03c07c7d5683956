/* Gemm: alpha * A' * B' + beta * C of matrices, and its gradients. */
#include "graph/operators/operator.h"

#include <string.h>

#include "graph/gemm_f64.h"

static const struct attribute_row gemm_attributes[] = {
	{ATTRIBUTE("alpha", REAL, alpha, 1)},
	{ATTRIBUTE("beta", REAL, beta, 1)},
	{ATTRIBUTE("transA", BOOL, trans_a, 0)},
	{ATTRIBUTE("transB", BOOL, trans_b, 0)},
	{.name = NULL},
};

static enum prony_status gemm_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *attributes = &node->attributes;
	struct shape y = {.rank = 2};
	enum prony_status status = node_need_rank(graph, node, 0, 2, err);
	int64_t inner_a, inner_b;

	if (status == PRONY_OK)
		status = node_need_rank(graph, node, 1, 2, err);
	/* Of ONNX's broadcasts only a bias per column is allowed: the gradient rows rely on it. */
	if (status == PRONY_OK && node_has_input(node, 2))
		status = node_need_rank(graph, node, 2, 1, err);
	if (status != PRONY_OK)
		return status;
	y.dims[0] = node_input_shape(graph, node, 0)->dims[attributes->trans_a ? 1 : 0];
	inner_a = node_input_shape(graph, node, 0)->dims[attributes->trans_a ? 0 : 1];
	inner_b = node_input_shape(graph, node, 1)->dims[attributes->trans_b ? 1 : 0];
	y.dims[1] = node_input_shape(graph, node, 1)->dims[attributes->trans_b ? 0 : 1];
	if (inner_a != inner_b)
		return node_error(node, err, "the inner dimensions differ: %lld and %lld",
				  (long long)inner_a, (long long)inner_b);
	if (node_has_input(node, 2) && node_input_shape(graph, node, 2)->dims[0] != y.dims[1])
		return node_error(
			node, err, "the bias has %lld elements, but the product has %lld columns",
			(long long)node_input_shape(graph, node, 2)->dims[0], (long long)y.dims[1]);
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static int64_t gemm_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *a = node_input_shape(graph, node, 0);

	return saturating_multiply(shape_elements(node_output_shape(graph, node, 0)),
				   a->dims[node->attributes.trans_a ? 0 : 1]);
}

/* Each of the two gradients of a matrix product costs as much as the product. */
static int64_t gemm_grad_macs(const struct graph *graph, const struct node *node)
{
	return gemm_macs(graph, &graph->nodes[node->differentiates]);
}

static enum prony_status gemm_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	if (backward_wants(graph, node, 1) || backward_wants(graph, node, 2))
		status = backward_node(graph, node, OP_GEMM_GRAD_WEIGHT,
				       (const int[]){node->inputs[0], dy}, 2, 1,
				       backward_wants(graph, node, 2) ? 2 : 1, err);
	if (status == PRONY_OK && backward_wants(graph, node, 0))
		status = backward_node(graph, node, OP_GEMM_GRAD_INPUT,
				       (const int[]){dy, node->inputs[1]}, 2, 0, 1, err);
	return status;
}

/* A matrix with strides: element (i, j) is data[i * row + j * column]. */
struct matrix {
	const double *data;
	int64_t rows, columns, row, column;
};

static struct matrix matrix_of(const double *data, const struct shape *shape, bool transposed)
{
	int64_t rows = shape->dims[0], columns = shape->dims[1];

	if (transposed)
		return (struct matrix){data, columns, rows, 1, columns};
	return (struct matrix){data, rows, columns, columns, 1};
}

static struct matrix transpose(struct matrix m)
{
	return (struct matrix){m.data, m.columns, m.rows, m.column, m.row};
}

/* to += alpha a b; `to` is row-major. */
static void multiply_add(double *to, double alpha, struct matrix a, struct matrix b)
{
	gemm_f64(&(struct gemm_f64){
		.rows = a.rows,
		.columns = b.columns,
		.depth = a.columns,
		.alpha = alpha,
		.a = gemm_f64_matrix(a.data, a.column, a.row),
		.b = gemm_f64_matrix(b.data, b.row, b.column),
		.target = gemm_f64_rows(to, b.columns),
	});
}

/* Writes the product, transposed if the operand was used transposed. */
static void multiply_into(double *to, double alpha, struct matrix a, struct matrix b,
			  bool transposed)
{
	int64_t count = a.rows * b.columns;

	memset(to, 0, (size_t)count * sizeof(*to));
	if (transposed)
		multiply_add(to, alpha, transpose(b), transpose(a));
	else
		multiply_add(to, alpha, a, b);
}

static void gemm_compute(const struct kernel_call *call)
{
	const struct attributes *attributes = &call->node->attributes;
	const struct shape *shape = kernel_output_shape(call, 0);
	const double *c = kernel_input(call, 2);
	double *y = kernel_output(call, 0);

	for (int64_t i = 0; i < shape->dims[0]; i++)
		for (int64_t j = 0; j < shape->dims[1]; j++)
			y[i * shape->dims[1] + j] = c ? attributes->beta * c[j] : 0;
	multiply_add(
		y, attributes->alpha,
		matrix_of(kernel_input(call, 0), kernel_input_shape(call, 0), attributes->trans_a),
		matrix_of(kernel_input(call, 1), kernel_input_shape(call, 1), attributes->trans_b));
}

/* d A' = alpha dY B'^T */
static void gemm_grad_input_compute(const struct kernel_call *call)
{
	const struct attributes *attributes = &call->node->attributes;
	struct matrix dy = matrix_of(kernel_input(call, 0), kernel_input_shape(call, 0), false);
	struct matrix b =
		matrix_of(kernel_input(call, 1), kernel_input_shape(call, 1), attributes->trans_b);

	multiply_into(kernel_output(call, 0), attributes->alpha, dy, transpose(b),
		      attributes->trans_a);
}

/* d B' = alpha A'^T dY;  dC = beta times the column sums of dY */
static void gemm_grad_weight_compute(const struct kernel_call *call)
{
	const struct attributes *attributes = &call->node->attributes;
	struct matrix a =
		matrix_of(kernel_input(call, 0), kernel_input_shape(call, 0), attributes->trans_a);
	struct matrix dy = matrix_of(kernel_input(call, 1), kernel_input_shape(call, 1), false);
	double *dc = kernel_output(call, 1);

	multiply_into(kernel_output(call, 0), attributes->alpha, transpose(a), dy,
		      attributes->trans_b);
	if (!dc)
		return;
	memset(dc, 0, (size_t)dy.columns * sizeof(*dc));
	for (int64_t i = 0; i < dy.rows; i++)
		for (int64_t j = 0; j < dy.columns; j++)
			dc[j] += attributes->beta * dy.data[i * dy.row + j];
}

/* The rows of A' are samples, those of B' are not. */
static struct samples_axis gemm_samples(const struct samples *s, const struct node *node,
					const struct samples_axis *x)
{
	return x->axis == (node->attributes.trans_a ? 1 : 0)
		       ? samples_on_output(s, node, 0, x->outer)
		       : samples_nowhere;
}

/* clang-format off */
const struct operator_row row_GEMM = {
	ARITY(2, 3, 1), .attributes = gemm_attributes, .infer = gemm_infer,
	.macs = gemm_macs, .backward = gemm_backward, .compute = gemm_compute,
	.samples = gemm_samples, .layout = LAYOUT_MULTIPLIES,
};

const struct operator_row row_GEMM_GRAD_INPUT = {
	GRADIENT(2, 1, gemm_attributes), .macs = gemm_grad_macs,
	.compute = gemm_grad_input_compute,
};

const struct operator_row row_GEMM_GRAD_WEIGHT = {
	GRADIENT(2, 2, gemm_attributes), .first_target = 1, .macs = gemm_grad_macs,
	.compute = gemm_grad_weight_compute, .terms = terms_of_weight_gradient,
};
/* clang-format on */
