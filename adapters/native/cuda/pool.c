/* Pooling of images and its gradients. The gradient of max pooling reads where each maximum was,
 * not the input. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

int cuda_pack(const struct lowering *l, int operand, int64_t adjacent)
{
	int count = PACK_BYTES / (int)dtype_bytes(lower_layout(l, operand)->type);

	for (int i = operand; i >= 0; i = l->program->operands[i].alias) {
		if (l->program->operands[i].region == REGION_ALIAS &&
		    l->program->operands[i].shift % PACK_BYTES != 0)
			return 1;
	}
	return adjacent % count == 0 ? count : 1;
}

enum prony_status cuda_packed(struct lowering *l, const char *name, int *operand, struct error *err)
{
	return cuda_pack(l, *operand, 0) > 1
		       ? PRONY_OK
		       : lower_part(l, *operand, lower_layout(l, *operand), name, operand, err);
}

static struct pool_arguments *describe(struct lowering *l, int n)
{
	const struct node *node = &l->graph->nodes[n];
	const struct attributes *given = &node->attributes;
	const struct layout *x = lower_layout(l, l->nodes[n].src);
	const struct layout *y = lower_layout(l, l->nodes[n].dst);
	bool global = node->op == OP_GLOBAL_AVERAGE_POOL;
	struct pool_arguments *a = arena_alloc(&l->program->arena, sizeof(*a));

	/* An image of one point has both layouts. */
	*a = (struct pool_arguments){.channels = (int)x->dims[1],
				     .channels_last = x->strides[1] == 1 && y->strides[1] == 1,
				     .include_pad = given->count_include_pad};
	for (int i = 0; i < 2; i++) {
		a->in[i] = (int)x->dims[2 + i];
		a->out[i] = (int)y->dims[2 + i];
		a->kernel[i] = global ? a->in[i] : (int)given->kernel[i];
		a->strides[i] = global ? 1 : (int)given->strides[i];
		a->dilations[i] = global ? 1 : (int)given->dilations[i];
		a->pads[i] = global ? 0 : (int)given->pads[i];
		a->pads[2 + i] = global ? 0 : (int)given->pads[2 + i];
	}
	a->wide = (int64_t)a->kernel[0] * a->kernel[1] > 256;
	return a;
}

/* Appends the kernel `kernel`_max or _average that computes `to` from `from`; `taps`: where each
 * maximum is in its window, or OPERAND_NONE. */
static void append(struct lowering *l, const struct node *node, bool gradient, int to, int from,
		   int taps, struct pool_arguments *a)
{
	static const char *const kernels[2][2] = {{"average_pool", "average_pool_grad"},
						  {"max_pool", "max_pool_grad"}};
	bool max = node->op == OP_MAX_POOL;
	enum dtype type = lower_layout(l, to)->type;
	int64_t n = (int64_t)layout_elements(lower_layout(l, to));
	struct work *w;

	a->packed = a->channels_last && cuda_pack(l, to, a->channels) > 1 &&
		    cuda_pack(l, from, a->channels) > 1;
	if (a->packed)
		n /= cuda_pack(l, to, a->channels);
	w = cuda_kernel(l, node->name, gradient ? "gradient" : "forward", kernels[max][gradient],
			type, n);
	cuda_operand(l, w, to);
	if (max && !gradient)
		cuda_operand(l, w, taps);
	cuda_operand(l, w, from);
	if (max && gradient)
		cuda_operand(l, w, taps);
	cuda_struct(l, w, a, sizeof(*a));
	cuda_long(l, w, n);
}

enum prony_status cuda_pool(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *y = &l->graph->values[node->outputs[0]].shape;
	struct node_state *state = &l->nodes[n];
	struct pool_arguments *a;
	enum prony_status status =
		cuda_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = cuda_new_image(l, l->data, y->rank, y->dims, &state->dst, err);
	if (status != PRONY_OK)
		return status;
	state->work->detail = a = describe(l, n);
	state->side = OPERAND_NONE;
	if (l->training && node->op == OP_MAX_POOL)
		state->side = program_bytes(l->program, (size_t)shape_elements(y) *
								(a->wide ? sizeof(int) : 1));
	append(l, node, false, state->dst, state->src, state->side, a);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status cuda_pool_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	struct pool_arguments a = *(const struct pool_arguments *)state->work->detail;
	int dy, dx = OPERAND_NONE;
	enum prony_status status = cuda_activation(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = program_operand(l->program, lower_layout(l, state->src), REGION_PLANNED,
					 &dx, err);
	if (status != PRONY_OK)
		return status;
	append(l, &l->graph->nodes[node->differentiates], true, dx, dy, state->side, &a);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
