/* Infers shapes of operators with sliding windows, and of gradients. */
#include "graph/node_internal.h"

#include "graph/edit_internal.h"

static enum prony_status out_of_range(const struct node *node, const char *name, int64_t number,
				      int least, struct error *err)
{
	return node_error(node, err, "%s contains %lld; each number must be %d to %d", name,
			  (long long)number, least, GRAPH_MAX_DIM);
}

static enum prony_status check_window(const struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;

	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] < 1 || a->kernel[i] > GRAPH_MAX_DIM)
			return out_of_range(node, "kernel_shape", a->kernel[i], 1, err);
		if (a->strides[i] < 1 || a->strides[i] > GRAPH_MAX_DIM)
			return out_of_range(node, "strides", a->strides[i], 1, err);
		if (a->dilations[i] < 1 || a->dilations[i] > GRAPH_MAX_DIM)
			return out_of_range(node, "dilations", a->dilations[i], 1, err);
	}
	for (int i = 0; i < 4; i++) {
		if (a->pads[i] < 0 || a->pads[i] > GRAPH_MAX_DIM)
			return out_of_range(node, "pads", a->pads[i], 0, err);
	}
	return PRONY_OK;
}

enum prony_status node_sliding_windows(const struct graph *graph, const struct node *node, int x,
				       int64_t out[2], struct error *err)
{
	const struct attributes *a = &node->attributes;
	const struct shape *in = node_input_shape(graph, node, x);
	enum prony_status status = check_window(node, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < 2; i++) {
		int64_t size = in->dims[2 + i];
		int64_t window = (a->kernel[i] - 1) * a->dilations[i] + 1;
		int64_t room = size + a->pads[i] + a->pads[i + 2] - window;

		if (room < 0)
			return node_error(
				node, err,
				"the kernel spans %lld elements, but the padded %s is %lld",
				(long long)window, i == 0 ? "height" : "width",
				(long long)(room + window));
		out[i] = room / a->strides[i] + 1;
		/* Rounding up must not add a window that lies wholly in the padding behind the
		 * input: ONNX 1.17 (opset 22) defines this, and frameworks have always done so. */
		if (a->ceil_mode && room % a->strides[i] != 0 &&
		    out[i] * a->strides[i] < size + a->pads[i])
			out[i]++;
	}
	return PRONY_OK;
}

int node_target(const struct node *node, int i)
{
	int first = operator_row(node->op)->first_target;

	return first == TARGET_AXIS ? (int)node->attributes.axis : first + i;
}

enum prony_status infer_gradient(struct graph *graph, struct node *node, struct error *err)
{
	const struct node *forward = &graph->nodes[node->differentiates];

	for (int i = 0; i < node->output_count; i++) {
		enum prony_status status;
		struct shape shape;

		if (node->outputs[i] == VALUE_NONE)
			continue;
		if (node_target(node, i) < 0 || !node_has_input(forward, node_target(node, i)))
			return node_error(node, err,
					  "node '%s' has no input %d to compute a gradient for",
					  forward->name, node_target(node, i));
		shape = *node_input_shape(graph, forward, node_target(node, i));
		status = node_set_output(graph, node, i, DTYPE_F32, &shape, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

int64_t saturating_multiply(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t saturating_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
