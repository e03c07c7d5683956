/* Matrix products. */
#include "adapters/native/cpu/cpu.h"

/* With fewer rows the library's general gemm, which reads weights in place, is faster than its
 * blocked kernels, which reuse weights (batch 1, 800 x 500: 19+22+19 us against 19+39+54). */
#define FEW_ROWS 16

struct product {
	int rank; /* of source and weights: 4 after a convolution, so that Flatten costs nothing */
	dnnl_dims_t w, y, bias;
	enum dtype result; /* fp32 for logits, because rounding them saves nothing */
	bool has_bias, wants_dx;
	struct chain chain;
};

/* The weights [out, in] of the graph, or [in, out] without transB, as out x dims of the source. */
static struct layout outside_weights(const struct product *p, bool transposed)
{
	int64_t strides[TENSOR_MAX_RANK], stride = transposed ? 1 : p->w[0];

	for (int i = p->rank - 1; i > 0; i--) {
		strides[i] = stride;
		stride *= p->w[i];
	}
	strides[0] = transposed ? stride : 1;
	return layout_strided(DTYPE_F32, p->rank, p->w, strides);
}

/* Weights whose rows follow the source's elements in the order of its memory; NULL when the source
 * is blocked. */
static const_dnnl_memory_desc_t matching_weights(const struct lowering *l, const struct product *p,
						 const struct layout *src)
{
	int64_t strides[TENSOR_MAX_RANK], row = 1;
	struct layout weights;

	if (src->blob)
		return NULL;
	for (int i = 1; i < p->rank; i++) {
		strides[i] = src->strides[i];
		row *= p->w[i];
	}
	strides[0] = row;
	weights = layout_strided(l->data, p->rank, p->w, strides);
	return cpu_desc_of(l, &weights);
}

static dnnl_status_t create_forward(const struct lowering *l, const struct product *p,
				    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
				    const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				    struct node_work *work)
{
	return cpu_onednn(l)->inner_product_forward_primitive_desc_create(
		&work->forward, cpu_onednn(l)->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, src, weights, bias,
		dst, cpu_attributes(l, &p->chain));
}

/* Creates one of the two gradients over given weights. */
static dnnl_status_t create_backward(const struct lowering *l, bool of_weights,
				     const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
				     const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				     const_dnnl_primitive_desc_t forward,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);

	return of_weights ? dnn->inner_product_backward_weights_primitive_desc_create(
				    out, dnn->engine, src, weights, bias, dst, forward, attributes)
			  : dnn->inner_product_backward_data_primitive_desc_create(
				    out, dnn->engine, src, weights, dst, forward, attributes);
}

/* The layout of weights in that type; NULL if its blocks depend on the type. */
static const_dnnl_memory_desc_t same_weights(const struct lowering *l,
					     const_dnnl_memory_desc_t weights, enum dtype type)
{
	struct layout layout = cpu_layout(cpu_onednn(l), weights);

	if (layout.type != type && layout.blob)
		return NULL;
	layout.type = type;
	return cpu_desc_of(l, &layout);
}

/* Chooses a gradient over the weights' forward layout, unless only reference code supports it. */
static dnnl_status_t choose_backward(const struct lowering *l, bool of_weights,
				     const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t any,
				     const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				     const_dnnl_primitive_desc_t forward,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);
	const_dnnl_memory_desc_t same =
		same_weights(l, dnn->primitive_desc_query_md(forward, dnnl_query_weights_md, 0),
			     of_weights ? DTYPE_F32 : l->data);
	dnnl_primitive_desc_t kept = NULL, free_choice = NULL;
	dnnl_status_t status = dnnl_unimplemented;

	if (same)
		status = create_backward(l, of_weights, src, same, bias, dst, forward, &kept);
	if (status == dnnl_success && cpu_grade(l, kept, 2) > 0) {
		*out = kept;
		return dnnl_success;
	}
	if (create_backward(l, of_weights, src, any, bias, dst, forward, &free_choice) ==
	    dnnl_success) {
		if (kept)
			dnn->primitive_desc_destroy(kept);
		*out = free_choice;
		return dnnl_success;
	}
	*out = kept;
	return kept ? dnnl_success : dnnl_unimplemented;
}

static enum prony_status choose(struct lowering *l, int n, const struct product *p,
				struct error *err)
{
	struct node_work *work = l->nodes[n].work;
	const struct layout *source = lower_layout(l, l->nodes[n].src);
	const_dnnl_memory_desc_t src = cpu_desc(l, l->nodes[n].src);
	const_dnnl_memory_desc_t any = cpu_any(l, l->data, p->rank, p->w);
	const_dnnl_memory_desc_t gradient = cpu_any(l, DTYPE_F32, p->rank, p->w);
	const_dnnl_memory_desc_t matching =
		p->y[0] < FEW_ROWS ? matching_weights(l, p, source) : NULL;
	const_dnnl_memory_desc_t bias =
		p->has_bias ? cpu_row_major(l, DTYPE_F32, 1, p->bias) : NULL;
	const_dnnl_memory_desc_t dst = cpu_row_major(l, p->result, 2, p->y);
	const_dnnl_memory_desc_t ddst = cpu_row_major(l, l->data, 2, p->y);
	dnnl_status_t status =
		create_forward(l, p, src, matching ? matching : any, bias, dst, work);

	if (status == dnnl_unimplemented && matching)
		status = create_forward(l, p, src, any, bias, dst, work);
	if (status == dnnl_success && l->training)
		status = choose_backward(l, true, src, gradient, bias, ddst, work->forward,
					 &work->backward_weights);
	if (status == dnnl_success && l->training && p->wants_dx)
		status = choose_backward(l, false, src, any, bias, ddst, work->forward,
					 &work->backward_data);
	return onednn_check(status, "matrix product", l->graph->nodes[n].name, err);
}

/* The source, whose rows are samples, in its present layout; the library supports up to five
 * dimensions. */
static enum prony_status find_source(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand;

	if (x == OPERAND_NONE || lower_layout(l, x)->rank > 5 || lower_weights_are_shared(l, n) ||
	    lower_layout(l, x)->dims[0] != l->graph->values[node->inputs[0]].shape.dims[0])
		return lower_value(l, node->inputs[0], node->name, &l->nodes[n].src, err);
	l->nodes[n].src = x;
	return PRONY_OK;
}

/* The chain, with a sum only onto rows of the type in which the product stores its result. */
static struct chain find_chain(const struct lowering *l, int n, bool allow_sum)
{
	struct chain chain = lower_chain(l, n, false, allow_sum);
	int last = chain.count > 0 ? chain.nodes[chain.count - 1] : n;
	const struct layout *target;
	struct layout rows;

	if (chain.sum == OPERAND_NONE)
		return chain;
	target = lower_layout(l, chain.sum);
	rows = layout_row_major(target->type, target->rank, target->dims);
	if (target->rank == 2 && lower_same(l, target, &rows) &&
	    l->graph->nodes[last].outputs[0] != l->graph->logits)
		return chain;
	return find_chain(l, n, false);
}

enum prony_status cpu_gemm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	struct product p = {.wants_dx = l->nodes[n].wants_dx};
	struct layout outside;
	const struct layout *x;
	enum prony_status status = find_source(l, n, err);
	int64_t macs;
	int last;

	if (status == PRONY_OK)
		status =
			lower_typed(l, l->nodes[n].src, l->data, node->name, &l->nodes[n].src, err);
	if (status != PRONY_OK)
		return status;
	if (cpu_is_few_rows(l, n))
		return cpu_few_rows(l, n, err);
	x = lower_layout(l, l->nodes[n].src);
	p.rank = x->rank;

	p.chain = find_chain(l, n, true);
	last = p.chain.count > 0 ? p.chain.nodes[p.chain.count - 1] : n;
	p.result = l->graph->nodes[last].outputs[0] == l->graph->logits ? DTYPE_F32 : l->data;
	p.has_bias = node->input_count > 2 && node->inputs[2] != VALUE_NONE;
	p.y[0] = y->dims[0];
	p.y[1] = p.bias[0] = p.w[0] = y->dims[1];
	macs = y->dims[0] * y->dims[1];
	for (int i = 1; i < p.rank; i++) {
		p.w[i] = x->dims[i];
		macs *= x->dims[i];
	}
	l->macs += macs;
	status = choose(l, n, &p, err);
	if (status != PRONY_OK)
		return status;
	outside = outside_weights(&p, node->attributes.trans_b);
	return cpu_weighted_forward(l, n, &outside, &p.chain, err);
}
