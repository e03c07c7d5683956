/* Resize of images, and its gradient. */
#include "graph/resize.h"
#include "adapters/native/cuda/cuda.h"
#include "adapters/native/cuda/kernels/arguments.h"

/* x: the shape of the smaller image. */
static void append(struct lowering *l, const char *name, const char *kernel,
		   const struct attributes *attributes, const struct shape *x, int to, int from)
{
	const struct layout *layout = lower_layout(l, to);
	struct resize_arguments a = {
		.planes = x->dims[0] * x->dims[1],
		.channels = (int)x->dims[1],
		.in = {(int)x->dims[2], (int)x->dims[3]},
		.scales = {(int)attributes->strides[0], (int)attributes->strides[1]},
		.linear = attributes->mode == RESIZE_LINEAR,
		.align_corners = attributes->coordinates == RESIZE_ALIGN_CORNERS,
		.last = l->program->device->precision != PRECISION_FP32};
	struct work *work =
		cuda_kernel(l, name, "", kernel, layout->type, (int64_t)layout_elements(layout));

	cuda_operand(l, work, to);
	cuda_operand(l, work, from);
	cuda_struct(l, work, &a, sizeof(a));
}

/* Output 0 of node n from its input 0. */
static enum prony_status resize(struct lowering *l, int n, const char *kernel, bool gradient,
				struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *in = &l->graph->values[node->inputs[0]].shape;
	const struct shape *out = &l->graph->values[node->outputs[0]].shape;
	int from, to;
	enum prony_status status = cuda_activation(l, node->inputs[0], node->name, &from, err);

	if (status == PRONY_OK)
		status = cuda_new_image(l, l->data, out->rank, out->dims, &to, err);
	if (status != PRONY_OK)
		return status;
	append(l, node->name, kernel, &node->attributes, gradient ? out : in, to, from);
	l->values[node->outputs[0]].operand = to;
	return PRONY_OK;
}

enum prony_status cuda_resize(struct lowering *l, int n, struct error *err)
{
	return resize(l, n, "resize", false, err);
}

enum prony_status cuda_resize_grad(struct lowering *l, int n, struct error *err)
{
	return resize(l, n, "resize_grad", true, err);
}
