/* Layers: nodes together with their parameters. */
#include "graph/graph.h"

#include <assert.h>
#include <string.h>

#include "graph/edit_internal.h"

/* Adds parameter "NAME.SUFFIX", filled with zeros or He-normal numbers. */
static int layer_parameter(struct builder *b, const char *layer, const char *suffix,
			   const struct shape *shape, enum weight_fill fill, int64_t fan_in)
{
	const char *name;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	name = arena_printf(&b->graph->arena, "%s.%s", layer, suffix);
	return build_parameter(b, name, shape->rank, shape->dims, fill, fan_in);
}

static int layer_state(struct builder *b, const char *layer, const char *suffix,
		       const struct shape *shape, enum weight_fill fill)
{
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	return build_state(b, arena_printf(&b->graph->arena, "%s.%s", layer, suffix), shape->rank,
			   shape->dims, fill);
}

/* Gives the shape of x if it has `rank` dimensions; otherwise false and an error that names the
 * layer. */
static bool layer_input(struct builder *b, const char *layer, int x, int rank, struct shape *shape)
{
	char text[128];

	if (b->error.code != PRONY_OK)
		return false;
	*shape = b->graph->values[x].shape;
	if (shape->rank == rank)
		return true;
	shape_text(shape, text, sizeof(text));
	error_set(&b->error, PRONY_BAD_INPUT,
		  "layer '%s' needs an input with %d dimensions, but gets %s", layer, rank, text);
	return false;
}

static int unary(struct builder *b, enum op op, const char *name, int x)
{
	return build_node(b, op, name, &x, 1, NULL);
}

struct window window_square(int64_t kernel, int64_t stride, int64_t pad)
{
	return (struct window){
		.kernel = {kernel, kernel},
		.strides = {stride, stride},
		.pads = {pad, pad, pad, pad},
	};
}

static void set_window(const struct window *window, struct attributes *a)
{
	for (int i = 0; i < 2; i++) {
		a->kernel[i] = window->kernel[i];
		a->strides[i] = window->strides[i] == 0 ? 1 : window->strides[i];
		a->dilations[i] = window->dilations[i] == 0 ? 1 : window->dilations[i];
	}
	memcpy(a->pads, window->pads, sizeof(a->pads));
	a->ceil_mode = window->ceil_mode;
}

int build_conv_window(struct builder *b, const char *name, int x, int64_t channels,
		      const struct window *window, int64_t group, bool bias)
{
	struct attributes attributes;
	struct shape in, weight, channel = {.rank = 1, .dims = {channels}};
	int inputs[3] = {x};

	assert(group > 0 && !window->ceil_mode);
	if (!layer_input(b, name, x, 4, &in))
		return VALUE_NONE;
	operator_default_attributes(OP_CONV, &attributes);
	set_window(window, &attributes);
	attributes.group = group;
	weight = (struct shape){
		.rank = 4,
		.dims = {channels, in.dims[1] / group, window->kernel[0], window->kernel[1]}};
	inputs[1] = layer_parameter(b, name, "weight", &weight, FILL_HE_NORMAL,
				    weight.dims[1] * weight.dims[2] * weight.dims[3]);
	if (bias)
		inputs[2] = layer_parameter(b, name, "bias", &channel, FILL_ZERO, 0);
	return build_node(b, OP_CONV, name, inputs, bias ? 3 : 2, &attributes);
}

int build_conv_transpose(struct builder *b, const char *name, int x, int64_t channels,
			 const struct window *window, int64_t group)
{
	struct attributes attributes;
	struct shape in, weight, channel = {.rank = 1, .dims = {channels}};
	int inputs[3] = {x};

	if (!layer_input(b, name, x, 4, &in))
		return VALUE_NONE;
	operator_default_attributes(OP_CONV_TRANSPOSE, &attributes);
	set_window(window, &attributes);
	attributes.group = group;
	weight = (struct shape){
		.rank = 4,
		.dims = {in.dims[1], channels / group, window->kernel[0], window->kernel[1]}};
	/* As many products as an element of the output sums on average. */
	inputs[1] = layer_parameter(b, name, "weight", &weight, FILL_HE_NORMAL,
				    in.dims[1] / group * window->kernel[0] * window->kernel[1] /
					    (attributes.strides[0] * attributes.strides[1]));
	inputs[2] = layer_parameter(b, name, "bias", &channel, FILL_ZERO, 0);
	return build_node(b, OP_CONV_TRANSPOSE, name, inputs, 3, &attributes);
}

int build_conv(struct builder *b, const char *name, int x, int64_t channels, int64_t kernel,
	       int64_t stride, int64_t pad)
{
	struct window window = window_square(kernel, stride, pad);

	return build_conv_window(b, name, x, channels, &window, 1, true);
}

int build_max_pool_window(struct builder *b, const char *name, int x, const struct window *window)
{
	struct attributes attributes;

	operator_default_attributes(OP_MAX_POOL, &attributes);
	set_window(window, &attributes);
	return build_node(b, OP_MAX_POOL, name, &x, 1, &attributes);
}

int build_max_pool(struct builder *b, const char *name, int x, int64_t kernel, int64_t stride)
{
	struct window window = window_square(kernel, stride, 0);

	return build_max_pool_window(b, name, x, &window);
}

int build_average_pool(struct builder *b, const char *name, int x, const struct window *window,
		       bool count_include_pad)
{
	struct attributes attributes;

	assert(window->dilations[0] <= 1 && window->dilations[1] <= 1);
	operator_default_attributes(OP_AVERAGE_POOL, &attributes);
	set_window(window, &attributes);
	attributes.count_include_pad = count_include_pad;
	return build_node(b, OP_AVERAGE_POOL, name, &x, 1, &attributes);
}

int build_global_average_pool(struct builder *b, const char *name, int x)
{
	return unary(b, OP_GLOBAL_AVERAGE_POOL, name, x);
}

int build_batch_norm_scaled(struct builder *b, const char *name, int x, double epsilon,
			    double momentum, double scale)
{
	struct attributes attributes = {.epsilon = epsilon, .momentum = momentum};
	struct shape channel = {.rank = 1};
	int inputs[5] = {x};

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	channel.dims[0] = b->graph->values[x].shape.dims[1];
	inputs[1] = layer_parameter(b, name, "scale", &channel, FILL_ONE, 0);
	inputs[2] = layer_parameter(b, name, "bias", &channel, FILL_ZERO, 0);
	inputs[3] = layer_state(b, name, "mean", &channel, FILL_RUNNING_MEAN);
	inputs[4] = layer_state(b, name, "var", &channel, FILL_RUNNING_VARIANCE);
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	b->graph->values[inputs[1]].fill_scale = scale;
	return build_node(b, OP_BATCH_NORM, name, inputs, 5, &attributes);
}

int build_batch_norm(struct builder *b, const char *name, int x, double epsilon, double momentum)
{
	return build_batch_norm_scaled(b, name, x, epsilon, momentum, 1);
}

int build_lrn(struct builder *b, const char *name, int x, int64_t size, double alpha, double beta,
	      double bias)
{
	struct attributes attributes = {.size = size, .alpha = alpha, .beta = beta, .bias = bias};

	return build_node(b, OP_LRN, name, &x, 1, &attributes);
}

int build_relu(struct builder *b, const char *name, int x)
{
	return unary(b, OP_RELU, name, x);
}

int build_add(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_ADD, name, (const int[]){a, c}, 2, NULL);
}

int build_concat(struct builder *b, const char *name, const int *values, int count, int64_t axis)
{
	struct attributes attributes = {.axis = axis};

	return build_node(b, OP_CONCAT, name, values, count, &attributes);
}

int build_slice(struct builder *b, const char *name, int x, int64_t axis, int64_t start,
		int64_t end, int64_t step)
{
	struct attributes attributes = {.axis = axis, .start = start, .end = end, .step = step};

	return build_node(b, OP_SLICE, name, &x, 1, &attributes);
}

int build_flatten(struct builder *b, const char *name, int x)
{
	return unary(b, OP_FLATTEN, name, x);
}

static struct int_list int_list(int count, const int64_t *items)
{
	struct int_list list = {.count = count};

	assert(count >= 0 && count <= ATTRIBUTE_MAX_INTS);
	for (int i = 0; i < count; i++)
		list.items[i] = items[i];
	return list;
}

int build_pad(struct builder *b, const char *name, int x, const int64_t *pads, double value)
{
	struct attributes attributes = {.value = value};

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	attributes.ints = int_list(2 * b->graph->values[x].shape.rank, pads);
	return build_node(b, OP_PAD, name, &x, 1, &attributes);
}

int build_dropout(struct builder *b, const char *name, int x, double ratio)
{
	struct attributes attributes = {.ratio = ratio};

	return build_node(b, OP_DROPOUT, name, &x, 1, &attributes);
}

int build_linear(struct builder *b, const char *name, int x, int64_t features)
{
	struct attributes attributes;
	struct shape in, weight, bias = {.rank = 1, .dims = {features}};
	int w, c;

	if (!layer_input(b, name, x, 2, &in))
		return VALUE_NONE;
	operator_default_attributes(OP_GEMM, &attributes);
	attributes.trans_b = true;
	weight = (struct shape){.rank = 2, .dims = {features, in.dims[1]}};
	w = layer_parameter(b, name, "weight", &weight, FILL_HE_NORMAL, in.dims[1]);
	c = layer_parameter(b, name, "bias", &bias, FILL_ZERO, 0);
	return build_node(b, OP_GEMM, name, (const int[]){x, w, c}, 3, &attributes);
}

int build_recurrent(struct builder *b, enum op op, const char *name, int x, int64_t hidden,
		    const struct attributes *attributes)
{
	struct shape in, w = {.rank = 2}, r = {.rank = 2}, c = {.rank = 1};
	int64_t gates = op == OP_LSTM ? 4 : op == OP_GRU ? 3 : 1;
	int inputs[4] = {x};

	if (!layer_input(b, name, x, 3, &in))
		return VALUE_NONE;
	w.dims[0] = r.dims[0] = gates * hidden;
	w.dims[1] = in.dims[2];
	r.dims[1] = hidden;
	c.dims[0] = (gates + (attributes && attributes->linear_before_reset)) * hidden;
	/* Gates halve the signal; twice the fan-in keeps the recurrence from growing. */
	inputs[1] = layer_parameter(b, name, "weight", &w, FILL_HE_NORMAL, 2 * w.dims[1]);
	inputs[2] = layer_parameter(b, name, "recurrent", &r, FILL_HE_NORMAL, 2 * hidden);
	inputs[3] = layer_parameter(b, name, "bias", &c, FILL_ZERO, 0);
	return build_node(b, op, name, inputs, 4, attributes);
}

int build_lstm(struct builder *b, const char *name, int x, int64_t hidden)
{
	return build_recurrent(b, OP_LSTM, name, x, hidden, NULL);
}

int build_irnn(struct builder *b, const char *name, int x, int64_t hidden, double deviation)
{
	struct shape in, w = {.rank = 2}, r = {.rank = 2, .dims = {hidden, hidden}};
	struct shape c = {.rank = 1, .dims = {hidden}};
	int inputs[4] = {x};

	if (!layer_input(b, name, x, 3, &in))
		return VALUE_NONE;
	w.dims[0] = hidden;
	w.dims[1] = in.dims[2];
	inputs[1] = layer_parameter(b, name, "weight", &w, FILL_NORMAL, 0);
	inputs[2] = layer_parameter(b, name, "recurrent", &r, FILL_IDENTITY, 0);
	inputs[3] = layer_parameter(b, name, "bias", &c, FILL_ZERO, 0);
	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	b->graph->values[inputs[1]].fill_scale = deviation;
	return build_node(b, OP_RNN, name, inputs, 4, NULL);
}

int build_embedding(struct builder *b, const char *name, int indices, int64_t rows, int64_t width)
{
	struct shape shape = {.rank = 2, .dims = {rows, width}};
	int table = layer_parameter(b, name, "weight", &shape, FILL_NORMAL, 1);

	return build_node(b, OP_GATHER, name, (const int[]){table, indices}, 2, NULL);
}

static int norm_of_rows(struct builder *b, enum op op, const char *name, int x, int64_t axis,
			double epsilon)
{
	struct attributes attributes = {.axis = axis, .epsilon = epsilon};
	int inputs[3] = {x}, count = operator_row(op)->max_inputs;
	struct shape in, row;

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	in = b->graph->values[x].shape;
	row = shape_make(in.rank - (int)axis, in.dims + axis);
	inputs[1] = layer_parameter(b, name, "scale", &row, FILL_ONE, 0);
	if (count > 2)
		inputs[2] = layer_parameter(b, name, "bias", &row, FILL_ZERO, 0);
	return build_node(b, op, name, inputs, count, &attributes);
}

int build_layer_norm(struct builder *b, const char *name, int x, int64_t axis, double epsilon)
{
	return norm_of_rows(b, OP_LAYER_NORM, name, x, axis, epsilon);
}

int build_rms_norm(struct builder *b, const char *name, int x, int64_t axis, double epsilon)
{
	return norm_of_rows(b, OP_RMS_NORM, name, x, axis, epsilon);
}

int build_swish(struct builder *b, const char *name, int x)
{
	struct attributes attributes = {.alpha = 1};

	return build_node(b, OP_SWISH, name, &x, 1, &attributes);
}

int build_reshape(struct builder *b, const char *name, int x, int rank, const int64_t *dims)
{
	struct attributes attributes = {.ints = int_list(rank, dims)};

	return build_node(b, OP_RESHAPE, name, &x, 1, &attributes);
}

int build_transpose(struct builder *b, const char *name, int x, const int64_t *order)
{
	struct attributes attributes = {.group = 0};

	if (b->error.code != PRONY_OK)
		return VALUE_NONE;
	attributes.ints = int_list(b->graph->values[x].shape.rank, order);
	return build_node(b, OP_TRANSPOSE, name, &x, 1, &attributes);
}

int build_softmax(struct builder *b, const char *name, int x, int64_t axis)
{
	struct attributes attributes = {.axis = axis};

	return build_node(b, OP_SOFTMAX, name, &x, 1, &attributes);
}

int build_matmul(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_MATMUL, name, (const int[]){a, c}, 2, NULL);
}

int build_mul(struct builder *b, const char *name, int a, int c)
{
	return build_node(b, OP_MUL, name, (const int[]){a, c}, 2, NULL);
}

int build_expand(struct builder *b, const char *name, int x, int rank, const int64_t *dims)
{
	struct attributes attributes = {.ints = int_list(rank, dims)};

	return build_node(b, OP_EXPAND, name, &x, 1, &attributes);
}
