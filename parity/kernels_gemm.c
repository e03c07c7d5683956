#include "parity/kernels_internal.h"

#include <string.h>

#include "parity/gemm_f64_internal.h"

/* A matrix as the product sees it: element (i, j) is data[i * row + j * column]. */
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

/* Writes transpose(product) when the operand was used transposed, else the product. */
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

void kernel_gemm(const struct kernel_call *call)
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
void kernel_gemm_grad_input(const struct kernel_call *call)
{
	const struct attributes *attributes = &call->node->attributes;
	struct matrix dy = matrix_of(kernel_input(call, 0), kernel_input_shape(call, 0), false);
	struct matrix b =
		matrix_of(kernel_input(call, 1), kernel_input_shape(call, 1), attributes->trans_b);

	multiply_into(kernel_output(call, 0), attributes->alpha, dy, transpose(b),
		      attributes->trans_a);
}

/* d B' = alpha A'^T dY;  dC = beta times the column sums of dY */
void kernel_gemm_grad_weight(const struct kernel_call *call)
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
