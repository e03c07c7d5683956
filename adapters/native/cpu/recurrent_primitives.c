/* The library's primitives of a recurrent layer. */
#include "adapters/native/cpu/recurrent.h"

struct layout recurrent_layout(const struct recurrent *r, enum tensor_index tensor, enum dtype type)
{
	const struct {
		int rank;
		int64_t dims[5];
	} shapes[TENSORS] = {
		[LAYER] = {3, {r->steps, r->rows, r->features}},
		[INNER] = {4, {1, 1, r->rows, r->hidden}},
		[CELL] = {4, {1, 1, r->rows, r->hidden}},
		[WEIGHT] = {5, {1, 1, r->features, r->gates, r->hidden}},
		[REPEAT] = {5, {1, 1, r->hidden, r->gates, r->hidden}},
		[BIAS] = {4, {1, 1, r->biases, r->hidden}},
		[HIDDEN_LAYER] = {3, {r->steps, r->rows, r->hidden}},
	};

	return layout_row_major(tensor == CELL || tensor == BIAS ? DTYPE_F32 : type,
				shapes[tensor].rank, shapes[tensor].dims);
}

struct descriptors {
	const_dnnl_memory_desc_t data[TENSORS], gradient[TENSORS];
};

/* Creates the primitives in that type, with the weights in any layout. */
static const_dnnl_memory_desc_t make(const struct lowering *l, const struct recurrent *r,
				     enum tensor_index tensor, enum dtype type)
{
	struct layout layout = recurrent_layout(r, tensor, type);

	return tensor == WEIGHT || tensor == REPEAT
		       ? cpu_any(l, layout.type, layout.rank, layout.dims)
		       : cpu_desc_of(l, &layout);
}

static dnnl_rnn_direction_t direction_of(const struct recurrent *r)
{
	return r->attributes->reverse ? dnnl_unidirectional_right2left
				      : dnnl_unidirectional_left2right;
}

static dnnl_alg_kind_t activation_of(const struct recurrent *r)
{
	return r->attributes->activation ? dnnl_eltwise_tanh : dnnl_eltwise_relu;
}

/* The library's gates of a GRU are ONNX's. */
static dnnl_status_t create_forward(const struct lowering *l, const struct recurrent *r,
				    const struct descriptors *s,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);
	dnnl_prop_kind_t kind = l->training ? dnnl_forward_training : dnnl_forward_inference;

	if (r->op == OP_RNN)
		return dnn->vanilla_rnn_forward_primitive_desc_create(
			out, dnn->engine, kind, activation_of(r), direction_of(r), s->data[LAYER],
			s->data[INNER], s->data[WEIGHT], s->data[REPEAT], s->data[BIAS],
			s->data[HIDDEN_LAYER], s->data[INNER], 0, 0, 0, attributes);
	if (r->op == OP_GRU)
		return (r->attributes->linear_before_reset
				? dnn->lbr_gru_forward_primitive_desc_create
				: dnn->gru_forward_primitive_desc_create)(
			out, dnn->engine, kind, direction_of(r), s->data[LAYER], s->data[INNER],
			s->data[WEIGHT], s->data[REPEAT], s->data[BIAS], s->data[HIDDEN_LAYER],
			s->data[INNER], 0, attributes);
	return dnn->lstm_forward_primitive_desc_create(
		out, dnn->engine, kind, direction_of(r), s->data[LAYER], s->data[INNER],
		s->data[CELL], s->data[WEIGHT], s->data[REPEAT], NULL, NULL, s->data[BIAS],
		s->data[HIDDEN_LAYER], s->data[INNER], s->data[CELL], 0, attributes);
}

static dnnl_status_t create_backward(const struct lowering *l, const struct recurrent *r,
				     const struct descriptors *s,
				     const_dnnl_primitive_desc_t forward,
				     const_dnnl_primitive_attr_t attributes,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);

	if (r->op == OP_GRU)
		return (r->attributes->linear_before_reset
				? dnn->lbr_gru_backward_primitive_desc_create
				: dnn->gru_backward_primitive_desc_create)(
			out, dnn->engine, dnnl_backward, direction_of(r), s->data[LAYER],
			s->data[INNER], s->data[WEIGHT], s->data[REPEAT], s->data[BIAS],
			s->data[HIDDEN_LAYER], s->data[INNER], s->gradient[LAYER],
			s->gradient[INNER], s->gradient[WEIGHT], s->gradient[REPEAT],
			s->gradient[BIAS], s->gradient[HIDDEN_LAYER], s->gradient[INNER], 0,
			forward, attributes);
	if (r->op == OP_RNN)
		return dnn->vanilla_rnn_backward_primitive_desc_create(
			out, dnn->engine, dnnl_backward, activation_of(r), direction_of(r),
			s->data[LAYER], s->data[INNER], s->data[WEIGHT], s->data[REPEAT],
			s->data[BIAS], s->data[HIDDEN_LAYER], s->data[INNER], s->gradient[LAYER],
			s->gradient[INNER], s->gradient[WEIGHT], s->gradient[REPEAT],
			s->gradient[BIAS], s->gradient[HIDDEN_LAYER], s->gradient[INNER], 0, 0, 0,
			forward, attributes);
	return dnn->lstm_backward_primitive_desc_create(
		out, dnn->engine, dnnl_backward, direction_of(r), s->data[LAYER], s->data[INNER],
		s->data[CELL], s->data[WEIGHT], s->data[REPEAT], NULL, NULL, s->data[BIAS],
		s->data[HIDDEN_LAYER], s->data[INNER], s->data[CELL], s->gradient[LAYER],
		s->gradient[INNER], s->gradient[CELL], s->gradient[WEIGHT], s->gradient[REPEAT],
		NULL, NULL, s->gradient[BIAS], s->gradient[HIDDEN_LAYER], s->gradient[INNER],
		s->gradient[CELL], 0, forward, attributes);
}

static enum prony_status describe(struct lowering *l, int n, const struct recurrent *r,
				  enum dtype type, struct error *err)
{
	struct node_work *work = l->nodes[n].work;
	const_dnnl_primitive_attr_t attributes = cpu_attributes(l, NULL);
	struct descriptors s;
	dnnl_status_t created;

	for (int i = 0; i < TENSORS; i++) {
		s.data[i] = make(l, r, (enum tensor_index)i, type);
		s.gradient[i] = make(l, r, (enum tensor_index)i, DTYPE_F32);
	}
	created = create_forward(l, r, &s, attributes, &work->forward);
	if (created == dnnl_success && l->training)
		created =
			create_backward(l, r, &s, work->forward, attributes, &work->backward_data);
	return onednn_check(created, "recurrent layer", l->graph->nodes[n].name, err);
}

enum prony_status recurrent_describe(struct lowering *l, int n, const struct recurrent *r,
				     enum dtype *type, struct error *err)
{
	struct node_work *work = l->nodes[n].work;
	enum prony_status status;

	*type = l->data;
	status = describe(l, n, r, *type, *type == DTYPE_F32 ? err : NULL);
	if (status != PRONY_UNSUPPORTED || *type == DTYPE_F32)
		return status;
	if (work->forward) /* in this case the gradient does not exist */
		cpu_onednn(l)->primitive_desc_destroy(work->forward);
	work->forward = NULL;
	*type = DTYPE_F32;
	return describe(l, n, r, *type, err);
}
