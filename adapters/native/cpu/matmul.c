/* Products of two computed operands, with the library's matmul: it reads factors with any strides
 * and repeats dimensions of 1. */
#include "adapters/native/cpu/cpu.h"

/* Factor i with as many dimensions as the result. */
static enum prony_status factor(struct lowering *l, const struct node *node, int i, int rank,
				int *out, struct error *err)
{
	int64_t dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
	const struct layout *own;
	struct layout as;
	int lead;
	enum prony_status status = lower_activation(l, node->inputs[i], node->name, out, err);

	if (status == PRONY_OK)
		status = lower_unblocked(l, *out, node->name, out, err);
	if (status != PRONY_OK)
		return status;
	own = lower_layout(l, *out);
	lead = rank - own->rank;
	if (lead == 0)
		return PRONY_OK;
	for (int k = 0; k < rank; k++) {
		dims[k] = k < lead ? 1 : own->dims[k - lead];
		strides[k] = k < lead ? own->dims[0] * own->strides[0] : own->strides[k - lead];
	}
	as = layout_strided(own->type, rank, dims, strides);
	return program_alias(l->program, *out, &as, 0, out, err);
}

static enum prony_status describe(struct lowering *l, int n, const int *factors, int y,
				  struct error *err)
{
	const struct onednn *dnn = cpu_onednn(l);

	return onednn_check(
		dnn->matmul_primitive_desc_create(&l->nodes[n].work->forward, dnn->engine,
						  cpu_desc(l, factors[0]), cpu_desc(l, factors[1]),
						  NULL, cpu_desc(l, y), cpu_attributes(l, NULL)),
		"matrix product", l->graph->nodes[n].name, err);
}

struct layout cpu_result_layout(const struct lowering *l, int value, enum dtype type)
{
	const struct shape *shape = &l->graph->values[value].shape;
	const struct value_state *state = &l->values[value];
	const struct node *reader = state->uses == 1 ? &l->graph->nodes[state->reader] : NULL;
	int64_t strides[TENSOR_MAX_RANK], stride = 1;

	if (!reader || reader->op != OP_TRANSPOSE)
		return layout_row_major(type, shape->rank, shape->dims);
	for (int i = shape->rank - 1; i >= 0; i--) {
		int64_t from = reader->attributes.ints.items[i];

		strides[from] = stride;
		stride *= shape->dims[from];
	}
	return layout_strided(type, shape->rank, shape->dims, strides);
}

/* Chooses the result's layout and the primitive. Reference code is slower than copies in the usual
 * order. */
static enum prony_status choose(struct lowering *l, int n, int *factors, enum dtype type, int *y,
				struct error *err)
{
	struct node_work *work = l->nodes[n].work;
	const char *name = l->graph->nodes[n].name;
	int value = l->graph->nodes[n].outputs[0];
	const struct shape *shape = &l->graph->values[value].shape;
	struct layout layout = cpu_result_layout(l, value, type);
	enum prony_status status = program_operand(l->program, &layout, REGION_PLANNED, y, err);

	if (status == PRONY_OK)
		status = describe(l, n, factors, *y, err);
	if (status != PRONY_OK || cpu_grade(l, work->forward, 1) > 0)
		return status;
	for (int i = 0; status == PRONY_OK && i < 2; i++) {
		const struct layout *own = lower_layout(l, factors[i]);
		struct layout rows = layout_row_major(own->type, own->rank, own->dims);

		status = lower_as(l, factors[i], &rows, name, &factors[i], err);
	}
	cpu_onednn(l)->primitive_desc_destroy(work->forward);
	work->forward = NULL;
	if (status == PRONY_OK)
		status = lower_new(l, type, shape->rank, shape->dims, y, err);
	return status == PRONY_OK ? describe(l, n, factors, *y, err) : status;
}

enum prony_status cpu_matmul(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *shape = &l->graph->values[node->outputs[0]].shape;
	const struct shape *a = &l->graph->values[node->inputs[0]].shape;
	enum dtype type = node->outputs[0] == l->graph->logits ? DTYPE_F32 : l->data;
	int factors[2] = {OPERAND_NONE, OPERAND_NONE}, y;
	enum prony_status status = factor(l, node, 0, shape->rank, &factors[0], err);

	if (status == PRONY_OK)
		status = factor(l, node, 1, shape->rank, &factors[1], err);
	if (status == PRONY_OK)
		status = choose(l, n, factors, type, &y, err);
	if (status == PRONY_OK)
		status = cpu_primitive(l, node->name, "", l->nodes[n].work->forward,
				       (const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
				       (const int[]){factors[0], factors[1], y}, 3, err);
	if (status != PRONY_OK)
		return status;
	l->values[node->outputs[0]].operand = y;
	if (n < l->graph->forward_count) {
		l->macs += shape_elements(shape) * a->dims[a->rank - 1];
		cpu_note(l, n, NULL, 0);
	}
	return PRONY_OK;
}
