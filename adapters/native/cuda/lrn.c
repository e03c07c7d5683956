/* Response normalisation and its gradient, which computes the forward pass's sums again. */
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

static struct lrn_arguments describe(const struct lowering *l, const struct node *node, int x)
{
	const struct attributes *given = &node->attributes;
	const struct layout *layout = lower_layout(l, x);
	double scale = given->alpha / (double)given->size;
	/* A window has no more channels than the input. */
	int64_t channels = layout->dims[1], before = (given->size - 1) / 2;
	int64_t after = given->size - 1 - before;
	struct lrn_arguments a = {.channels = (int)channels,
				  .inner = 1,
				  .before = (int)(before < channels ? before : channels),
				  .after = (int)(after < channels ? after : channels),
				  .scale = (float)scale,
				  .bias = (float)given->bias,
				  .beta = (float)given->beta,
				  .slope = (float)(2 * scale * given->beta)};

	for (int i = 2; i < layout->rank && layout->strides[1] != 1; i++)
		a.inner *= (int)layout->dims[i];
	a.wide = a.before > LRN_HALO || a.after > LRN_HALO;
	return a;
}

/* operands: the result, then what the kernel reads. */
static void append(struct lowering *l, const struct node *node, const char *what,
		   const char *kernel, const int *operands, int count)
{
	struct lrn_arguments a = describe(l, node, operands[0]);
	const struct layout *layout = lower_layout(l, operands[0]);
	int64_t run = LRN_RUN, n;
	struct work *w;

	a.packed = a.inner == 1;
	for (int i = 0; i < count; i++)
		a.packed &= cuda_pack(l, operands[i], a.channels) > 1;
	if (a.packed)
		run = cuda_pack(l, operands[0], a.channels);
	if (a.wide)
		run = 1;
	n = (int64_t)layout_elements(layout) / a.channels * ((a.channels + run - 1) / run);
	w = cuda_kernel(l, node->name, what, kernel, layout->type, n);
	for (int i = 0; i < count; i++)
		cuda_operand(l, w, operands[i]);
	cuda_struct(l, w, &a, sizeof(a));
	cuda_long(l, w, n);
}

enum prony_status cuda_lrn(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	struct node_state *state = &l->nodes[n];
	enum prony_status status =
		cuda_activation(l, node->inputs[0], node->name, &state->src, err);

	if (status == PRONY_OK)
		status = program_operand(l->program, lower_layout(l, state->src), REGION_PLANNED,
					 &state->dst, err);
	if (status != PRONY_OK)
		return status;
	append(l, node, "forward", "lrn", (const int[]){state->dst, state->src}, 2);
	l->values[node->outputs[0]].operand = state->dst;
	return PRONY_OK;
}

enum prony_status cuda_lrn_grad(struct lowering *l, int n, struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct node_state *state = &l->nodes[node->differentiates];
	int dy, dx;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &dy, err);

	if (status == PRONY_OK)
		status = lower_as(l, dy, lower_layout(l, state->src), node->name, &dy, err);
	if (status == PRONY_OK)
		status = program_operand(l->program, lower_layout(l, state->src), REGION_PLANNED,
					 &dx, err);
	if (status != PRONY_OK)
		return status;
	append(l, &l->graph->nodes[node->differentiates], "gradient", "lrn_grad",
	       (const int[]){dx, dy, state->src}, 3);
	l->values[node->outputs[0]].operand = dx;
	return PRONY_OK;
}
