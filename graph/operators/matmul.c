/* MatMul: products of matrices, one for each position of the leading dimensions, which are
 * broadcast. Its gradients are two MatMuls. */
#include "graph/operators/operator.h"

#include <string.h>

#include "graph/gemm_f64.h"

/* The shape without its last two dimensions. */
static struct shape leading(const struct shape *shape)
{
	return shape_make(shape->rank - 2, shape->dims);
}

static enum prony_status matmul_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct shape a = *node_input_shape(graph, node, 0);
	const struct shape b = *node_input_shape(graph, node, 1);
	enum prony_status status = PRONY_OK;
	struct shape outer[2], y;

	for (int i = 0; i < 2; i++) {
		int rank = node_input_shape(graph, node, i)->rank;

		status = node_need_float(graph, node, i, err);
		if (status != PRONY_OK)
			return status;
		if (rank < 2 || rank > 4)
			return node_error(
				node, err,
				"input %d ('%s') has %d dimensions; a product needs 2 to 4", i,
				graph->values[node->inputs[i]].name, rank);
	}
	outer[0] = leading(&a);
	outer[1] = leading(&b);
	if (!broadcast_shape(&outer[0], &outer[1], &y) ||
	    a.dims[a.rank - 1] != b.dims[b.rank - 2]) {
		char a_text[128], b_text[128];

		shape_text(&a, a_text, sizeof(a_text));
		shape_text(&b, b_text, sizeof(b_text));
		return node_error(node, err, "shapes %s and %s cannot be multiplied", a_text,
				  b_text);
	}
	y.dims[y.rank++] = a.dims[a.rank - 2];
	y.dims[y.rank++] = b.dims[b.rank - 1];
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static int64_t matmul_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *a = node_input_shape(graph, node, 0);

	return saturating_multiply(shape_elements(node_output_shape(graph, node, 0)),
				   a->dims[a->rank - 1]);
}

/* Appends the transpose of input i, over its last two axes. */
static enum prony_status turned(struct graph *graph, const struct node *node, int i, int *out,
				struct error *err)
{
	int rank = node_input_shape(graph, node, i)->rank;
	struct attributes turn = {.ints = {.count = rank}};

	for (int k = 0; k < rank; k++)
		turn.ints.items[k] = k;
	turn.ints.items[rank - 2] = rank - 1;
	turn.ints.items[rank - 1] = rank - 2;
	return backward_apply(graph, node, i, OP_TRANSPOSE, &node->inputs[i], 1, &turn, out, err);
}

/* dA = dY B^T, dB = A^T dY; summed over what broadcasting has repeated. */
static enum prony_status matmul_backward(struct graph *graph, const struct node *node,
					 struct error *err)
{
	int dy = backward_gradient(graph, node);
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		int factors[2] = {dy, dy}, gradient;

		if (!backward_wants(graph, node, i))
			continue;
		status = turned(graph, node, 1 - i, &factors[1 - i], err);
		if (status == PRONY_OK)
			status = backward_apply(graph, node, i, OP_MATMUL, factors, 2, NULL,
						&gradient, err);
		if (status == PRONY_OK)
			status = broadcast_contribute(graph, node, i, gradient, err);
	}
	return status;
}

static void matmul_compute(const struct kernel_call *call)
{
	const struct shape *y = kernel_output_shape(call, 0);
	int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
	int64_t depth = kernel_input_shape(call, 0)->dims[kernel_input_shape(call, 0)->rank - 1];
	struct shape outer = leading(y);
	struct array_walk walk = array_walk_start(&outer);

	for (int i = 0; i < 2; i++) {
		struct shape repeated = leading(kernel_input_shape(call, i));

		array_walk_broadcast(&walk, i, &repeated);
	}
	memset(kernel_output(call, 0), 0, (size_t)shape_elements(y) * sizeof(double));
	for (int64_t i = 0; i < shape_elements(&outer); i++, array_walk_next(&walk)) {
		const double *a = kernel_input(call, 0) + walk.at[0] * rows * depth;
		const double *b = kernel_input(call, 1) + walk.at[1] * depth * columns;
		double *to = kernel_output(call, 0) + i * rows * columns;

		gemm_f64(&(struct gemm_f64){
			.rows = rows,
			.columns = columns,
			.depth = depth,
			.alpha = 1,
			.a = gemm_f64_matrix(a, 1, depth),
			.b = gemm_f64_matrix(b, columns, 1),
			.target = gemm_f64_rows(to, columns),
		});
	}
}

/* Samples along the inner dimension are summed. */
static struct samples_axis matmul_samples(const struct samples *s, const struct node *node,
					  const struct samples_axis *unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		int inner = node_input_shape(s->graph, node, i)->rank - 1 - i;

		if (s->places[node->inputs[i]].axis == inner)
			return samples_nowhere;
	}
	return broadcast_samples(s, node, 2);
}

/* clang-format off */
const struct operator_row row_MATMUL = {
	ARITY(2, 2, 1), .attributes = no_attributes, .infer = matmul_infer,
	.macs = matmul_macs, .backward = matmul_backward, .compute = matmul_compute,
	.samples = matmul_samples, .samples_from = SAMPLES_FROM_ANY,
};
/* clang-format on */
