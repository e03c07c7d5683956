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
		[BIAS] = {4, {1, 1, r->gates, r->hidden}},
		[HIDDEN_LAYER] = {3, {r->steps, r->rows, r->hidden}},
	};

	return layout_row_major(tensor == CELL || tensor == BIAS ? DTYPE_F32 : type,
				shapes[tensor].rank, shapes[tensor].dims);
}

/* Owned. */
struct descriptors {
	dnnl_memory_desc_t data[TENSORS], gradient[TENSORS];
};

static void release(const struct lowering *l, struct descriptors *s)
{
	for (int i = 0; i < TENSORS; i++) {
		if (s->data[i])
			cpu_onednn(l)->memory_desc_destroy(s->data[i]);
		if (s->gradient[i])
			cpu_onednn(l)->memory_desc_destroy(s->gradient[i]);
	}
}

static enum prony_status make(const struct lowering *l, const struct layout *layout, bool any,
			      dnnl_memory_desc_t *out, struct error *err)
{
	return any ? cpu_any(l, layout->type, layout->rank, layout->dims, out, err)
		   : cpu_describe(cpu_onednn(l), layout, out, err);
}

/* With what is multiplied in `type`. */
static enum prony_status make_all(const struct lowering *l, const struct recurrent *r,
				  enum dtype type, struct descriptors *s, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (int i = 0; status == PRONY_OK && i < TENSORS; i++) {
		struct layout data = recurrent_layout(r, (enum tensor_index)i, type);
		struct layout gradient = recurrent_layout(r, (enum tensor_index)i, DTYPE_F32);
		bool any = i == WEIGHT || i == REPEAT;

		status = make(l, &data, any, &s->data[i], err);
		if (status == PRONY_OK)
			status = make(l, &gradient, any, &s->gradient[i], err);
	}
	return status;
}

static dnnl_status_t create_forward(const struct lowering *l, bool lstm,
				    const struct descriptors *s,
				    const_dnnl_primitive_attr_t attributes,
				    dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);
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
				     const struct descriptors *s,
				     const_dnnl_primitive_desc_t forward,
				     const_dnnl_primitive_attr_t attributes,
				     dnnl_primitive_desc_t *out)
{
	const struct onednn *dnn = cpu_onednn(l);

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
				  enum dtype type, struct error *err)
{
	struct node_work *work = l->nodes[n].work;
	dnnl_primitive_attr_t attributes = NULL;
	struct descriptors s = {0};
	dnnl_status_t created;
	enum prony_status status = make_all(l, r, type, &s, err);

	if (status == PRONY_OK)
		status = cpu_attributes(l, false, &attributes, err);
	if (status == PRONY_OK) {
		created = create_forward(l, r->lstm, &s, attributes, &work->forward);
		if (created == dnnl_success && l->training)
			created = create_backward(l, r->lstm, &s, work->forward, attributes,
						  &work->backward_data);
		cpu_onednn(l)->primitive_attr_destroy(attributes);
		status = onednn_check(created, "recurrent layer", l->graph->nodes[n].name, err);
	}
	release(l, &s);
	return status;
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
	if (work->forward) /* then it was the gradient that does not exist */
		cpu_onednn(l)->primitive_desc_destroy(work->forward);
	work->forward = NULL;
	*type = DTYPE_F32;
	return describe(l, n, r, *type, err);
}
