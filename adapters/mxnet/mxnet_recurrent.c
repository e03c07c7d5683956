/* Translates LSTM, GRU and RNN nodes to MXNet's operator RNN, and creates their arrays. */
#include "adapters/mxnet/mxnet_recurrent.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "adapters/mxnet/mxnet_translate_internal.h"

/* The number of elements of the node's inputs w, r and b; the vector has b twice. mx_array_new
 * refuses sizes that are too large for an array. */
static int64_t packed_elements(const struct graph *graph, const struct node *node)
{
	static const int parts[] = {1, 2, 3, 3};
	int64_t elements = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		int64_t part = shape_elements(mx_shape(graph, node->inputs[parts[i]]));

		if (part > INT_MAX)
			return part;
		elements += part;
	}
	return elements;
}

enum prony_status mx_recurrent_init(struct mx_recurrent *recurrent, const struct mx_api *api,
				    const struct graph *graph, const struct node *node,
				    bool gradients, struct error *err)
{
	const struct shape packed = {.rank = 1, .dims = {packed_elements(graph, node)}};
	const struct shape state = {.rank = 3,
				    .dims = {1, mx_shape(graph, node->inputs[0])->dims[0],
					     mx_shape(graph, node->inputs[2])->dims[1]}};
	enum prony_status status = PRONY_OK;

	*recurrent = (struct mx_recurrent){.node = node};
	if (node->op != OP_GRU)
		status = mx_array_new(api, &packed, NULL, &recurrent->weights, err);
	if (status == PRONY_OK && gradients && node->op != OP_GRU)
		status = mx_array_new(api, &packed, NULL, &recurrent->gradients, err);
	if (status == PRONY_OK)
		status = mx_array_new(api, &state, NULL, &recurrent->zeros, err);
	return status;
}

void mx_recurrent_release(struct mx_recurrent *recurrent, const struct mx_api *api)
{
	struct mx_ndarray *const arrays[] = {recurrent->weights, recurrent->gradients,
					     recurrent->zeros};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
		if (arrays[i])
			api->MXNDArrayFree(arrays[i]);
	}
	*recurrent = (struct mx_recurrent){0};
}

enum prony_status mx_recurrent_window(const struct mx_api *api, const struct graph *graph,
				      const struct node *node, int input, struct mx_ndarray *packed,
				      struct mx_ndarray **out, struct error *err)
{
	const struct shape *shape = mx_shape(graph, node->inputs[input]);
	int64_t begin = 0;
	int dims[TENSOR_MAX_RANK];
	struct mx_ndarray *flat = NULL;
	enum prony_status status;

	for (int before = 1; before < input; before++)
		begin += shape_elements(mx_shape(graph, node->inputs[before]));
	for (int i = 0; i < shape->rank; i++)
		dims[i] = (int)shape->dims[i];
	status = mx_check(api,
			  api->MXNDArraySlice(packed, (uint32_t)begin,
					      (uint32_t)(begin + shape_elements(shape)), &flat),
			  "slice the packed weights", err);
	if (status != PRONY_OK)
		return status;
	status = mx_check(api, api->MXNDArrayReshape(flat, shape->rank, dims, out),
			  "reshape a slice of the packed weights", err);
	api->MXNDArrayFree(flat);
	return status;
}

bool mx_recurrent_argument(const struct mx_recurrent *recurrent, const char *name,
			   struct mx_ndarray **array, struct mx_ndarray **gradients)
{
	size_t length = strlen(recurrent->node->name);

	if (strncmp(name, recurrent->node->name, length) != 0)
		return false;
	if (strcmp(name + length, MX_RECURRENT_WEIGHTS) == 0) {
		*array = recurrent->weights;
		*gradients = recurrent->gradients;
		return true;
	}
	if (strcmp(name + length, MX_RECURRENT_STATE) != 0 &&
	    strcmp(name + length, MX_RECURRENT_CELL) != 0)
		return false;
	*array = recurrent->zeros;
	*gradients = NULL;
	return true;
}

static void swap_blocks(float *a, float *b, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		float kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

/* i o f c -> i f o c -> i f c o */
void mx_gates_to_mxnet(float *data, int64_t elements)
{
	int64_t block = elements / 4;

	swap_blocks(data + block, data + 2 * block, block);
	swap_blocks(data + 2 * block, data + 3 * block, block);
}

void mx_gates_to_graph(float *data, int64_t elements)
{
	int64_t block = elements / 4;

	swap_blocks(data + 2 * block, data + 3 * block, block);
	swap_blocks(data + block, data + 2 * block, block);
}

/* The vector belongs to one node: it cannot hold a value that another node also reads. */
void mx_refuse_recurrent(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	int readers = 0;

	if (node->op == OP_GRU) {
		if (!node->attributes.linear_before_reset)
			mx_refuse(reasons, node,
				  "MXNet resets after the product only (linear_before_reset)");
		return;
	}
	for (int input = 1; input <= 3; input++) {
		if (graph->values[node->inputs[input]].kind != VALUE_PARAMETER) {
			mx_refuse(reasons, node, "its weights are not parameters");
			return;
		}
		readers += graph_forward_readers(graph, node->inputs[input]);
	}
	if (readers != 3)
		mx_refuse(reasons, node, "another operator also reads its weights");
}

static struct mx_symbol *argument(struct translation *t, const char *suffix)
{
	return mx_variable(t, mx_text(t, "%s%s", t->node->name, suffix));
}

/* Packs the weights of a GRU: of w, r and the biases, the gates r, z, h. Only h has a second bias.
 */
static struct mx_symbol *pack_gru(struct translation *t, const struct node *node, int64_t hidden)
{
	static const int order[] = {1, 0, 2};
	struct mx_symbol *parts[11];
	char name[16];
	int count = 0;

	for (int i = 1; i <= 3; i++) {
		const struct shape *shape = mx_shape(t->graph, node->inputs[i]);
		int64_t block = hidden * (shape->rank > 1 ? shape->dims[1] : 1);
		struct mx_symbol *flat;

		snprintf(name, sizeof(name), "flat%d", i);
		flat = mx_op(t, name, "Reshape", MX_IN(mx_in(t, i)), "shape=(-1,)");
		for (int k = 0; k < 3; k++) {
			snprintf(name, sizeof(name), "part%d", count);
			parts[count++] = mx_op(t, name, "slice_axis", &flat, 1,
					       mx_text(t, "axis=0 begin=%lld end=%lld",
						       (long long)(order[k] * block),
						       (long long)((order[k] + 1) * block)));
		}
		if (i == 3)
			parts[10] = mx_op(t, "second", "slice_axis", &flat, 1,
					  mx_text(t, "axis=0 begin=%lld end=%lld",
						  (long long)(3 * block), (long long)(4 * block)));
	}
	parts[9] = mx_op(t, "none", "_zeros", NULL, 0,
			 mx_text(t, "shape=(%lld,)", (long long)(2 * hidden)));
	return mx_op(t, "packed", "Concat", parts, 11, "dim=0 num_args=11");
}

static const char *mode_of(const struct node *node)
{
	if (node->op == OP_RNN)
		return node->attributes.activation ? "rnn_tanh" : "rnn_relu";
	return node->op == OP_LSTM ? "lstm" : "gru";
}

/* The layer returns (output, state after the last step[, cells]). The output is time x batch x
 * features; the state is batch x hidden. */
struct mx_symbol *mx_recurrent(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	int64_t hidden = y->dims[y->rank - 1];
	bool lstm = node->op == OP_LSTM;
	struct mx_symbol *in[4], *state;

	in[0] = mx_op(t, "turned", "transpose", MX_IN(mx_in(t, 0)), "axes=(1,0,2,)");
	if (a->reverse)
		in[0] = mx_op(t, "reversed", "reverse", &in[0], 1, "axis=(0,)");
	in[1] = node->op == OP_GRU ? pack_gru(t, node, hidden) : argument(t, MX_RECURRENT_WEIGHTS);
	in[2] = argument(t, MX_RECURRENT_STATE);
	in[3] = lstm ? argument(t, MX_RECURRENT_CELL) : NULL;
	state = mx_op(t, "layer", "RNN", in, lstm ? 4 : 3,
		      mx_text(t, "mode=%s num_layers=1 state_size=%lld state_outputs=True",
			      mode_of(node), (long long)hidden));
	state = mx_output(t, state, a->sequence ? 0 : 1);
	if (a->sequence && a->reverse)
		state = mx_op(t, "back", "reverse", &state, 1, "axis=(0,)");
	if (a->sequence)
		return mx_op(t, "", "transpose", &state, 1, "axes=(1,0,2,)");
	return mx_op(t, "", "Reshape", &state, 1,
		     mx_text(t, "shape=%s", mx_list(y->dims, y->rank).text));
}
