/* Products of two computed operands, in batches. */
#include "adapters/native/cuda/cuda.h"

/* A factor as a batch of matrices: rows or columns are adjacent, matrices at equal distances. */
struct factor {
	int operand;
	bool transposed;
	int64_t leading, stride;
};

/* Whether all dimensions before the last two are one batch of matrices at equal distances. A factor
 * that lacks them is the same for the whole batch. */
static bool batch_stride(const struct layout *own, int64_t batch, int64_t *stride)
{
	int64_t elements = 1;

	*stride = 0;
	for (int i = own->rank - 3; i >= 0; i--) {
		if (own->dims[i] == 1)
			continue;
		if (elements == 1)
			*stride = own->strides[i];
		else if (own->strides[i] != *stride * elements)
			return false;
		elements *= own->dims[i];
	}
	return elements == batch || elements == 1;
}

/* A factor in its present layout, if the library can read it so; a matrix of one row or column has
 * any leading dimension that is large enough. */
static bool read_in_place(const struct layout *own, int64_t batch, struct factor *out)
{
	int64_t rows, columns, down, across;

	if (own->rank < 2 || !batch_stride(own, batch, &out->stride))
		return false;
	rows = own->dims[own->rank - 2];
	columns = own->dims[own->rank - 1];
	down = own->strides[own->rank - 2];
	across = own->strides[own->rank - 1];
	out->transposed = across != 1 && columns > 1;
	if (out->transposed && down != 1 && rows > 1)
		return false;
	out->leading = out->transposed ? across : down;
	if (out->leading < (out->transposed ? rows : columns)) {
		if ((out->transposed ? columns : rows) > 1)
			return false;
		out->leading = out->transposed ? rows : columns;
	}
	return true;
}

static enum prony_status find_factor(struct lowering *l, const struct node *node, int i,
				     int64_t batch, struct factor *out, struct error *err)
{
	const struct layout *own;
	struct layout rows;
	enum prony_status status = lower_value(l, node->inputs[i], node->name, &out->operand, err);

	if (status == PRONY_OK)
		status = lower_typed(l, out->operand, l->data, node->name, &out->operand, err);
	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, out->operand);
	if (read_in_place(own, batch, out))
		return PRONY_OK;
	rows = layout_row_major(own->type, own->rank, own->dims);
	status = lower_as(l, out->operand, &rows, node->name, &out->operand, err);
	if (status == PRONY_OK && !read_in_place(lower_layout(l, out->operand), batch, out))
		return error_set(err, PRONY_UNSUPPORTED,
				 "MatMul '%s' repeats a part of the dimensions of a factor",
				 node->name);
	return status;
}

enum prony_status cuda_matmul(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	const struct shape *x = &l->graph->values[node->inputs[0]].shape;
	enum dtype type = node->outputs[0] == l->graph->logits ? DTYPE_F32 : l->data;
	int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1],
		batch = shape_elements(y) / (rows * columns);
	struct cuda_product product = {.m = rows,
				       .n = columns,
				       .k = x->dims[x->rank - 1],
				       .batch = batch,
				       .ldc = columns,
				       .stride_c = rows * columns,
				       .a = l->data,
				       .b = l->data,
				       .c = type};
	struct factor a, b;
	int out;
	enum prony_status status = find_factor(l, node, 0, batch, &a, err);

	if (status == PRONY_OK)
		status = find_factor(l, node, 1, batch, &b, err);
	if (status == PRONY_OK)
		status = lower_new(l, type, y->rank, y->dims, &out, err);
	if (status != PRONY_OK)
		return status;
	product.transpose_a = a.transposed;
	product.lda = a.leading;
	product.stride_a = a.stride;
	product.transpose_b = b.transposed;
	product.ldb = b.leading;
	product.stride_b = b.stride;
	if (batch > 1 && b.stride == 0 && !a.transposed && a.stride == rows * a.leading) {
		/* One matrix for the whole batch: one tall product. */
		product.m *= batch;
		product.batch = 1;
	}
	l->values[node->outputs[0]].operand = out;
	if (n < l->graph->forward_count)
		l->macs += shape_elements(y) * x->dims[x->rank - 1];
	return cuda_product(l, node->name, "", &product, a.operand, 0, b.operand, 0, out, 0,
			    OPERAND_NONE, err);
}
