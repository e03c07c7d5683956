/* Dense layers: y = x W' + b, and the gradients of the three. */
#include "adapters/native/cuda/cuda.h"

/* A layer's matrices: x is rows x inner, W outer x inner, y rows x outer. Columns of x and W are in
 * the order of x's memory. */
struct dense {
	int64_t rows, inner, outer;
	int rank; /* of x and W: 4 after a convolution, so that Flatten costs nothing */
	int64_t dims[TENSOR_MAX_RANK];	  /* of W */
	int64_t strides[TENSOR_MAX_RANK]; /* of W in memory */
};

/* x with a sample in each row, in the type of activations: in its present layout if samples are
 * dense, else row-major. */
static enum prony_status find_source(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->inputs[0]].shape;
	int x = l->values[node->inputs[0]].operand;
	int64_t inner = shape_elements(shape) / shape->dims[0];
	const struct layout *own = x == OPERAND_NONE ? NULL : lower_layout(l, x);
	struct layout rows = layout_row_major(l->data, shape->rank, shape->dims);
	enum prony_status status;

	if (own && !lower_weights_are_shared(l, n) && own->dims[0] == shape->dims[0] &&
	    (own->dims[0] == 1 || own->strides[0] == inner) &&
	    (int64_t)layout_elements(own) == shape_elements(shape))
		return lower_typed(l, x, l->data, node->name, &l->nodes[n].src, err);
	status = lower_value(l, node->inputs[0], node->name, &x, err);
	return status == PRONY_OK ? lower_as(l, x, &rows, node->name, &l->nodes[n].src, err)
				  : status;
}

static struct dense dense_of(const struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct layout *x = lower_layout(l, l->nodes[n].src);
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	struct dense d = {.rows = y->dims[0], .inner = 1, .outer = y->dims[1], .rank = x->rank};

	d.dims[0] = d.outer;
	for (int i = 1; i < x->rank; i++) {
		d.dims[i] = x->dims[i];
		d.strides[i] = x->strides[i];
		d.inner *= x->dims[i];
	}
	d.strides[0] = d.inner;
	return d;
}

static struct layout weights_layout(const struct dense *d, enum dtype type)
{
	return layout_strided(type, d->rank, d->dims, d->strides);
}

/* The weights [outer, inner] of the graph, or [inner, outer] without transB. */
static struct layout outside_weights(const struct dense *d, bool transposed)
{
	int64_t strides[TENSOR_MAX_RANK], stride = transposed ? 1 : d->outer;

	for (int i = d->rank - 1; i > 0; i--) {
		strides[i] = stride;
		stride *= d->dims[i];
	}
	strides[0] = transposed ? stride : 1;
	return layout_strided(DTYPE_F32, d->rank, d->dims, strides);
}

/* The bias in the type of the product's output, as its epilogue wants it. */
static enum prony_status find_bias(struct lowering *l, int n, const struct chain *chain,
				   enum dtype type, int *out, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	enum prony_status status = lower_bias(l, n, chain, out, err);
	struct layout row;

	if (status != PRONY_OK || *out == OPERAND_NONE || type == DTYPE_F32)
		return status;
	row = layout_row_major(type, 1, lower_layout(l, *out)->dims);
	return lower_weights(l, node->inputs[2], &row, node->name, out, err);
}

enum prony_status cuda_gemm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	struct chain chain = lower_chain(l, n, false, false);
	int last = chain.count > 0 ? chain.nodes[chain.count - 1] : n;
	enum dtype type =
		l->graph->nodes[last].outputs[0] == l->graph->logits ? DTYPE_F32 : l->data;
	enum prony_status status = find_source(l, n, err);
	int weights, bias = OPERAND_NONE;
	struct layout master, outside, wanted;
	struct cuda_product product;
	struct dense d;

	if (status != PRONY_OK)
		return status;
	d = dense_of(l, n);
	master = weights_layout(&d, DTYPE_F32);
	wanted = weights_layout(&d, l->data);
	outside = outside_weights(&d, node->attributes.trans_b);
	status = lower_parameter(l, node->inputs[1], &master, &outside, err);
	if (status == PRONY_OK)
		status = lower_weights(l, node->inputs[1], &wanted, node->name, &weights, err);
	if (status == PRONY_OK)
		status = find_bias(l, n, &chain, type, &bias, err);
	if (status == PRONY_OK)
		status =
			lower_new(l, type, 2, (const int64_t[]){d.rows, d.outer}, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	product = (struct cuda_product){.m = d.rows,
					.n = d.outer,
					.k = d.inner,
					.batch = 1,
					.transpose_b = true,
					.lda = d.inner,
					.ldb = d.inner,
					.ldc = d.outer,
					.a = l->data,
					.b = l->data,
					.c = type,
					.bias = bias != OPERAND_NONE,
					.relu = chain.count > 0};
	l->macs += d.rows * d.inner * d.outer;
	l->values[node->outputs[0]].operand = state->dst;
	lower_chain_absorb(l, &chain, state->dst);
	return cuda_product(l, node->name, "forward", &product, state->src, 0, weights, 0,
			    state->dst, 0, bias, err);
}

/* The gradient of y: row-major, in the type of activations. */
static enum prony_status find_gradient(struct lowering *l, int value, const char *name, int *out,
				       struct error *err)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout rows = layout_row_major(l->data, shape->rank, shape->dims);
	enum prony_status status = lower_value(l, value, name, out, err);

	return status == PRONY_OK ? lower_as(l, *out, &rows, name, out, err) : status;
}

enum prony_status cuda_gemm_grad_weight(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct dense d = dense_of(l, node->differentiates);
	bool bias = node->output_count > 1 && node->outputs[1] != VALUE_NONE;
	struct cuda_product product = {.m = d.outer,
				       .n = d.inner,
				       .k = d.rows,
				       .batch = 1,
				       .transpose_a = true,
				       .lda = d.outer,
				       .ldb = d.inner,
				       .ldc = d.inner,
				       .a = l->data,
				       .b = l->data,
				       .c = DTYPE_F32};
	struct layout layout = weights_layout(&d, DTYPE_F32);
	int dy, dw;
	enum prony_status status = find_gradient(l, node->inputs[1], forward->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_weight_gradient(l, node, forward->inputs[1], &layout, &dw, err);
	if (status == PRONY_OK)
		status = cuda_product(l, forward->name, "weight gradient", &product, dy, 0,
				      l->nodes[node->differentiates].src, 0, dw, 0, OPERAND_NONE,
				      err);
	if (status != PRONY_OK || !bias)
		return status;
	return cuda_column_sums(l, forward->name, "bias gradient", dy, d.rows, d.outer,
				lower_find_parameter(l, forward->inputs[2])->gradient, err);
}

enum prony_status cuda_gemm_grad_input(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct dense d = dense_of(l, node->differentiates);
	struct layout wanted = weights_layout(&d, l->data);
	struct cuda_product product = {.m = d.rows,
				       .n = d.inner,
				       .k = d.outer,
				       .batch = 1,
				       .lda = d.outer,
				       .ldb = d.inner,
				       .ldc = d.inner,
				       .a = l->data,
				       .b = l->data,
				       .c = l->data};
	int dy, dx, weights;
	enum prony_status status = find_gradient(l, node->inputs[0], forward->name, &dy, err);

	if (status == PRONY_OK)
		status =
			lower_weights(l, forward->inputs[1], &wanted, forward->name, &weights, err);
	/* In the order of x's memory, as W. */
	if (status == PRONY_OK)
		status = program_operand(l->program,
					 lower_layout(l, l->nodes[node->differentiates].src),
					 REGION_PLANNED, &dx, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = dx;
	return cuda_product(l, forward->name, "data gradient", &product, dy, 0, weights, 0, dx, 0,
			    OPERAND_NONE, err);
}
