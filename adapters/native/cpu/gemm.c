#include "adapters/native/lower/lower_internal.h"

/* Below this many rows the library's general gemm, which reads weights as they are, beats its
 * blocked kernels, which are made for reuse (batch 1, 800 x 500: 19+22+19 us against 19+39+54). */
#define FEW_ROWS 16

struct product {
	int rank; /* of source and weights: 4 behind a convolution, so that Flatten costs nothing */
	dnnl_dims_t w, y, bias;
	dnnl_data_type_t result; /* fp32 for logits: nothing is gained by rounding them */
	bool has_bias, wants_dx;
	struct chain chain;
};

/* The weights [out, in] of the graph, or [in, out] without transB, as out x dims of the source. */
static enum prony_status plain_weights(const struct lowering *l, const struct product *p,
				       bool transposed, dnnl_memory_desc_t *out, struct error *err)
{
	dnnl_dims_t strides;
	int64_t stride = transposed ? 1 : p->w[0];

	for (int i = p->rank - 1; i > 0; i--) {
		strides[i] = stride;
		stride *= p->w[i];
	}
	strides[0] = transposed ? stride : 1;
	return onednn_check(
		l->dnn->memory_desc_create_with_strides(out, p->rank, p->w, dnnl_f32, strides),
		"memory descriptor", "weights", err);
}

/* Weights whose rows run through the source's elements in the order that they have in memory;
 * PRONY_OK with *out NULL when the source is blocked. */
static enum prony_status matching_weights(const struct lowering *l, const struct product *p,
					  const_dnnl_memory_desc_t src, dnnl_memory_desc_t *out,
					  struct error *err)
{
	const dnnl_dims_t *source = NULL;
	dnnl_dims_t strides;
	int64_t row = 1;
	int blocks = 0;

	*out = NULL;
	if (l->dnn->memory_desc_query(src, dnnl_query_inner_nblks_s32, &blocks) || blocks > 0 ||
	    l->dnn->memory_desc_query(src, dnnl_query_strides, &source))
		return PRONY_OK;
	for (int i = 1; i < p->rank; i++) {
		strides[i] = (*source)[i];
		row *= p->w[i];
	}
	strides[0] = row;
	return onednn_check(
		l->dnn->memory_desc_create_with_strides(out, p->rank, p->w, l->data, strides),
		"memory descriptor", "weights", err);
}

static dnnl_status_t create_forward(const struct lowering *l, const struct product *p,
				    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
				    const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				    struct node_state *state)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_attr_t fused = NULL;
	dnnl_status_t status = dnnl_out_of_memory;

	if (lower_chain_attributes(l, &p->chain, &fused, NULL) != PRONY_OK)
		return status;
	status = dnn->inner_product_forward_primitive_desc_create(
		&state->forward, dnn->engine,
		l->training ? dnnl_forward_training : dnnl_forward_inference, src, weights, bias,
		dst, fused);
	dnn->primitive_attr_destroy(fused);
	return status;
}

/* One of the two gradients over given weights. */
static dnnl_status_t create_backward(const struct lowering *l, bool of_weights,
				     const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
				     const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				     const_dnnl_primitive_desc_t forward,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_status_t status = dnnl_out_of_memory;

	if (lower_attributes(l, false, &attributes, NULL) != PRONY_OK)
		return status;
	if (of_weights)
		status = dnn->inner_product_backward_weights_primitive_desc_create(
			out, dnn->engine, src, weights, bias, dst, forward, attributes);
	else
		status = dnn->inner_product_backward_data_primitive_desc_create(
			out, dnn->engine, src, weights, dst, forward, attributes);
	dnn->primitive_attr_destroy(attributes);
	return status;
}

/* The layout of weights in that type, owned by the caller; NULL where the type changes and blocks,
 * which depend on it, with it. */
static dnnl_memory_desc_t same_weights(const struct lowering *l, const_dnnl_memory_desc_t weights,
				       dnnl_data_type_t type)
{
	dnnl_memory_desc_t same = NULL;
	int blocks = 0;

	if (onednn_type(l->dnn, weights) == type)
		return l->dnn->memory_desc_clone(&same, weights) == dnnl_success ? same : NULL;
	l->dnn->memory_desc_query(weights, dnnl_query_inner_nblks_s32, &blocks);
	if (blocks > 0 || lower_retype(l, weights, type, &same, NULL) != PRONY_OK)
		return NULL;
	return same;
}

/* A gradient in the forward's layout of the weights unless only the reference code has it. */
static dnnl_status_t choose_backward(const struct lowering *l, bool of_weights,
				     const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t any,
				     const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
				     const_dnnl_primitive_desc_t forward,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;
	dnnl_memory_desc_t same =
		same_weights(l, dnn->primitive_desc_query_md(forward, dnnl_query_weights_md, 0),
			     of_weights ? dnnl_f32 : l->data);
	dnnl_primitive_desc_t kept = NULL, free_choice = NULL;
	dnnl_status_t status = dnnl_unimplemented;

	if (same) {
		status = create_backward(l, of_weights, src, same, bias, dst, forward, &kept);
		dnn->memory_desc_destroy(same);
	}
	if (status == dnnl_success && lower_grade(l, kept, 2) > 0) {
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

/* Layouts that the primitives of a product are made over. */
struct layouts {
	const_dnnl_memory_desc_t src;
	dnnl_memory_desc_t any, matching; /* of weights; matching: NULL where the library chooses */
	dnnl_memory_desc_t gradient;	  /* of their gradient, which is fp32 */
	dnnl_memory_desc_t bias, dst, ddst;
};

static enum prony_status create_all(struct lowering *l, int n, const struct product *p,
				    const struct layouts *f, struct error *err)
{
	struct node_state *state = &l->nodes[n];
	dnnl_status_t status = create_forward(l, p, f->src, f->matching ? f->matching : f->any,
					      f->bias, f->dst, state);

	if (status == dnnl_unimplemented && f->matching)
		status = create_forward(l, p, f->src, f->any, f->bias, f->dst, state);
	if (status == dnnl_success && l->training)
		status = choose_backward(l, true, f->src, f->gradient, f->bias, f->ddst,
					 state->forward, &state->backward_weights);
	if (status == dnnl_success && l->training && p->wants_dx)
		status = choose_backward(l, false, f->src, f->any, f->bias, f->ddst, state->forward,
					 &state->backward_data);
	return onednn_check(status, "matrix product", l->graph->nodes[n].name, err);
}

static enum prony_status choose(struct lowering *l, int n, const struct product *p,
				struct error *err)
{
	struct layouts f = {.src = l->program->operands[l->nodes[n].src].desc};
	enum prony_status status = lower_any(l, l->data, p->rank, p->w, &f.any, err);

	if (status == PRONY_OK)
		status = lower_any(l, dnnl_f32, p->rank, p->w, &f.gradient, err);
	if (status == PRONY_OK && p->y[0] < FEW_ROWS)
		status = matching_weights(l, p, f.src, &f.matching, err);
	if (status == PRONY_OK && p->has_bias)
		status = lower_plain(l, dnnl_f32, 1, p->bias, &f.bias, err);
	if (status == PRONY_OK)
		status = lower_plain(l, p->result, 2, p->y, &f.dst, err);
	if (status == PRONY_OK)
		status = lower_plain(l, l->data, 2, p->y, &f.ddst, err);
	if (status == PRONY_OK)
		status = create_all(l, n, p, &f, err);
	for (int i = 0; i < 6; i++) {
		dnnl_memory_desc_t made[] = {f.any, f.matching, f.gradient, f.bias, f.dst, f.ddst};

		if (made[i])
			l->dnn->memory_desc_destroy(made[i]);
	}
	return status;
}

/* The source as it is, up to the library's five dimensions: its rows are samples. */
static enum prony_status find_source(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	int x = l->values[node->inputs[0]].operand;

	if (x == OPERAND_NONE || lower_rank(l, l->program->operands[x].desc) > 5 ||
	    lower_dims(l, l->program->operands[x].desc)[0] !=
		    l->graph->values[node->inputs[0]].shape.dims[0])
		return lower_value(l, node->inputs[0], node->name, &l->nodes[n].src, err);
	l->nodes[n].src = x;
	return PRONY_OK;
}

enum prony_status lower_gemm(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	struct product p = {.wants_dx = l->nodes[n].wants_dx};
	dnnl_memory_desc_t plain = NULL;
	const int64_t *x;
	enum prony_status status = find_source(l, n, err);
	int64_t macs;
	int last;

	if (status == PRONY_OK)
		status =
			lower_typed(l, l->nodes[n].src, l->data, node->name, &l->nodes[n].src, err);
	if (status != PRONY_OK)
		return status;
	if (lower_is_few_rows(l, n))
		return lower_few_rows(l, n, err);
	p.rank = lower_rank(l, l->program->operands[l->nodes[n].src].desc);
	x = lower_dims(l, l->program->operands[l->nodes[n].src].desc);

	p.chain = lower_chain(l, n, false, false);
	last = p.chain.count > 0 ? p.chain.nodes[p.chain.count - 1] : n;
	p.result = l->graph->nodes[last].outputs[0] == l->graph->logits ? dnnl_f32 : l->data;
	p.has_bias = node->input_count > 2 && node->inputs[2] != VALUE_NONE;
	p.y[0] = y->dims[0];
	p.y[1] = p.bias[0] = p.w[0] = y->dims[1];
	macs = y->dims[0] * y->dims[1];
	for (int i = 1; i < p.rank; i++) {
		p.w[i] = x[i];
		macs *= x[i];
	}
	l->macs += macs;
	status = choose(l, n, &p, err);
	if (status != PRONY_OK)
		return status;
	status = plain_weights(l, &p, node->attributes.trans_b, &plain, err);
	return status == PRONY_OK ? lower_weighted_forward(l, n, plain, &p.chain, err) : status;
}
