#include "adapters/mxnet/mxnet_recurrent.h"

#include <limits.h>
#include <string.h>

#include "adapters/mxnet/mxnet_translate_internal.h"

/* Elements of the node's inputs w, r and b, of which the vector has b twice; what is too large for
 * an array is left to mx_array_new. */
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
	const struct shape *y = mx_shape(graph, node->outputs[0]);
	const struct shape packed = {.rank = 1, .dims = {packed_elements(graph, node)}};
	const struct shape state = {.rank = 3, .dims = {1, y->dims[0], y->dims[1]}};
	enum prony_status status;

	*recurrent = (struct mx_recurrent){.node = node};
	status = mx_array_new(api, &packed, NULL, &recurrent->weights, err);
	if (status == PRONY_OK && gradients)
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

/* The vector belongs to one node: what another one reads as well cannot lie in it. */
static void refuse(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	int readers = 0;

	for (int input = 1; input <= 3; input++) {
		if (graph->values[node->inputs[input]].kind != VALUE_PARAMETER) {
			mx_refuse(reasons, node, "weights that are not parameters");
			return;
		}
		for (int i = 0; i < graph->forward_count; i++)
			for (int k = 0; k < graph->nodes[i].input_count; k++)
				readers += graph->nodes[i].inputs[k] == node->inputs[input];
	}
	if (readers != 3)
		mx_refuse(reasons, node, "weights that another operator reads, too");
}

static enum prony_status add_argument(struct translation *t, const struct node *node,
				      const char *key, const char *suffix, struct mx_inputs *inputs,
				      struct error *err)
{
	struct strbuf name;
	struct mx_symbol *symbol = NULL;
	enum prony_status status;

	strbuf_init(&name, 0);
	strbuf_printf(&name, "%s%s", node->name, suffix);
	status = mx_check(t->api, t->api->MXSymbolCreateVariable(strbuf_text(&name), &symbol),
			  strbuf_text(&name), err);
	strbuf_release(&name);
	if (status != PRONY_OK)
		return status;
	mx_own(t, symbol);
	mx_input(inputs, key, symbol);
	return PRONY_OK;
}

/* The layer: (output, state after the last step[, cells]) of time x batch x features. */
static enum prony_status emit_layer(struct translation *t, const struct node *node,
				    struct mx_symbol *data, struct mx_symbol **out,
				    struct error *err)
{
	bool lstm = node->op == OP_LSTM;
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	enum prony_status status;

	mx_input(&inputs, "data", data);
	status = add_argument(t, node, "parameters", MX_RECURRENT_WEIGHTS, &inputs, err);
	if (status == PRONY_OK)
		status = add_argument(t, node, "state", MX_RECURRENT_STATE, &inputs, err);
	if (status == PRONY_OK && lstm)
		status = add_argument(t, node, "state_cell", MX_RECURRENT_CELL, &inputs, err);
	if (status != PRONY_OK)
		return status;
	mx_option(&options, "mode", "%s", lstm ? "lstm" : "rnn_relu");
	mx_option(&options, "num_layers", "1");
	mx_option(&options, "state_size", "%lld",
		  (long long)mx_shape(t->graph, node->outputs[0])->dims[1]);
	mx_option(&options, "state_outputs", "True");
	return mx_make_part(t, node, "layer", "RNN", &options, &inputs, out, err);
}

/* The state after the last step, as batch x hidden. */
static enum prony_status emit(struct translation *t, const struct node *node, struct error *err)
{
	static const char *const keys[] = {"data", "w", "r", "b"};
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	const int64_t time_first[] = {1, 0, 2};
	struct mx_options turn = {0}, shape = {0};
	struct mx_inputs inputs = {0}, data = {0}, last = {0};
	struct mx_symbol *turned = NULL, *layer = NULL, *state = NULL;
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	mx_input(&data, "data", inputs.symbols[0]);
	mx_option_list(&turn, "axes", time_first, 3);
	status = mx_make_part(t, node, "turned", "transpose", &turn, &data, &turned, err);
	if (status == PRONY_OK)
		status = emit_layer(t, node, turned, &layer, err);
	if (status == PRONY_OK)
		status = mx_check(t->api, t->api->MXSymbolGetOutput(layer, 1, &state), node->name,
				  err);
	if (status != PRONY_OK)
		return status;
	mx_own(t, state);
	mx_input(&last, "data", state);
	mx_option_list(&shape, "shape", y->dims, y->rank);
	return mx_emit(t, node, "Reshape", &shape, &last, err);
}

const struct mx_row mx_recurrent_row = {refuse, emit};
