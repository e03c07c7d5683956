#include "adapters/native/cpu/recurrent.h"

void recurrent_layouts_release(const struct lowering *l, struct recurrent_layouts *s)
{
	for (int i = 0; i < TENSORS; i++) {
		if (s->data[i])
			l->dnn->memory_desc_destroy(s->data[i]);
		if (s->gradient[i])
			l->dnn->memory_desc_destroy(s->gradient[i]);
		s->data[i] = s->gradient[i] = NULL;
	}
}

/* With what is multiplied in `type`. Cell states and biases are fp32. */
static enum prony_status layouts_make(const struct lowering *l, const struct recurrent *r,
				      dnnl_data_type_t type, struct recurrent_layouts *s,
				      struct error *err)
{
	const struct {
		int rank;
		int64_t dims[5];
	} wanted[TENSORS] = {
		[LAYER] = {3, {r->steps, r->rows, r->features}},
		[INNER] = {4, {1, 1, r->rows, r->hidden}},
		[CELL] = {4, {1, 1, r->rows, r->hidden}},
		[WEIGHT] = {5, {1, 1, r->features, r->gates, r->hidden}},
		[REPEAT] = {5, {1, 1, r->hidden, r->gates, r->hidden}},
		[BIAS] = {4, {1, 1, r->gates, r->hidden}},
		[HIDDEN_LAYER] = {3, {r->steps, r->rows, r->hidden}},
	};
	enum prony_status status = PRONY_OK;

	*s = (struct recurrent_layouts){0};
	for (int i = 0; status == PRONY_OK && i < TENSORS; i++) {
		enum prony_status (*make)(const struct lowering *, dnnl_data_type_t, int,
					  const int64_t *, dnnl_memory_desc_t *, struct error *) =
			i == WEIGHT || i == REPEAT ? lower_any : lower_plain;

		status = make(l, i == CELL || i == BIAS ? dnnl_f32 : type, wanted[i].rank,
			      wanted[i].dims, &s->data[i], err);
		if (status == PRONY_OK)
			status = make(l, dnnl_f32, wanted[i].rank, wanted[i].dims, &s->gradient[i],
				      err);
	}
	if (status != PRONY_OK)
		recurrent_layouts_release(l, s);
	return status;
}

static dnnl_status_t create_forward(const struct lowering *l, bool lstm,
				    const struct recurrent_layouts *s,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;
	dnnl_prop_kind_t kind = l->training ? dnnl_forward_training : dnnl_forward_inference;

	if (!lstm)
		return dnn->vanilla_rnn_forward_primitive_desc_create(
			out, dnn->engine, kind, dnnl_eltwise_relu, dnnl_unidirectional_left2right,
			s->data[LAYER], s->data[INNER], s->data[WEIGHT], s->data[REPEAT],
			s->data[BIAS], s->data[HIDDEN_LAYER], s->data[INNER], 0, 0, 0, attributes);
	return dnn->lstm_forward_primitive_desc_create(
		out, dnn->engine, kind, dnnl_unidirectional_left2right, s->data[LAYER],
		s->data[INNER], s->data[CELL], s->data[WEIGHT], s->data[REPEAT], NULL, NULL,
		s->data[BIAS], s->data[HIDDEN_LAYER], s->data[INNER], s->data[CELL], 0, attributes);
}

static dnnl_status_t create_backward(const struct lowering *l, bool lstm,
				     const struct recurrent_layouts *s,
				     const_dnnl_primitive_desc_t forward,
				     const_dnnl_primitive_attr_t attributes,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = l->dnn;

	if (!lstm)
		return dnn->vanilla_rnn_backward_primitive_desc_create(
			out, dnn->engine, dnnl_backward, dnnl_eltwise_relu,
			dnnl_unidirectional_left2right, s->data[LAYER], s->data[INNER],
			s->data[WEIGHT], s->data[REPEAT], s->data[BIAS], s->data[HIDDEN_LAYER],
			s->data[INNER], s->gradient[LAYER], s->gradient[INNER], s->gradient[WEIGHT],
			s->gradient[REPEAT], s->gradient[BIAS], s->gradient[HIDDEN_LAYER],
			s->gradient[INNER], 0, 0, 0, forward, attributes);
	return dnn->lstm_backward_primitive_desc_create(
		out, dnn->engine, dnnl_backward, dnnl_unidirectional_left2right, s->data[LAYER],
		s->data[INNER], s->data[CELL], s->data[WEIGHT], s->data[REPEAT], NULL, NULL,
		s->data[BIAS], s->data[HIDDEN_LAYER], s->data[INNER], s->data[CELL],
		s->gradient[LAYER], s->gradient[INNER], s->gradient[CELL], s->gradient[WEIGHT],
		s->gradient[REPEAT], NULL, NULL, s->gradient[BIAS], s->gradient[HIDDEN_LAYER],
		s->gradient[INNER], s->gradient[CELL], 0, forward, attributes);
}

static enum prony_status describe(struct lowering *l, int n, const struct recurrent *r,
				  const struct recurrent_layouts *s, struct error *err)
{
	struct node_state *state = &l->nodes[n];
	dnnl_primitive_attr_t attributes = NULL;
	dnnl_status_t created;
	enum prony_status status = lower_attributes(l, false, &attributes, err);

	if (status != PRONY_OK)
		return status;
	created = create_forward(l, r->lstm, s, attributes, &state->forward);
	if (created == dnnl_success && l->training)
		created = create_backward(l, r->lstm, s, state->forward, attributes,
					  &state->backward_data);
	l->dnn->primitive_attr_destroy(attributes);
	return onednn_check(created, "recurrent layer", l->graph->nodes[n].name, err);
}

enum prony_status recurrent_describe(struct lowering *l, int n, const struct recurrent *r,
				     struct recurrent_layouts *s, struct error *err)
{
	enum prony_status status = layouts_make(l, r, l->data, s, err);

	if (status != PRONY_OK)
		return status;
	status = describe(l, n, r, s, l->data == dnnl_f32 ? err : NULL);
	if (status != PRONY_UNSUPPORTED || l->data == dnnl_f32)
		return status;
	recurrent_layouts_release(l, s);
	if (l->nodes[n].forward) /* then it was the gradient that does not exist */
		l->dnn->primitive_desc_destroy(l->nodes[n].forward);
	l->nodes[n].forward = NULL;
	status = layouts_make(l, r, dnnl_f32, s, err);
	return status == PRONY_OK ? describe(l, n, r, s, err) : status;
}
