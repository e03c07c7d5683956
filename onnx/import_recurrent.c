/* Recurrent layers of ONNX files: LSTM, GRU and RNN. Each direction becomes an operator of the
 * graph, which has no initial state and no last cell state; a layer with either of them is written
 * out step by step (import_unrolled.c). */
#include "onnx/import_recurrent_internal.h"

#include <strings.h>

#include <string.h>

static bool output_is_used(const struct importer *im, const struct file_node *node, size_t i)
{
	return i < node->output_count && node->outputs[i] != NAME_OMITTED &&
	       im->model->definitions[node->outputs[i]].users > 0;
}

static bool all_zero(const struct constant *c)
{
	for (int64_t i = 0; i < c->count; i++)
		if (!c->is_float || c->floats[i] != 0)
			return false;
	return true;
}

/* Whether an input can be left out: it is not there, or constant and zero. */
static bool is_absent(const struct importer *im, const struct file_node *node, size_t i)
{
	const struct constant *c = import_constant(im, node, i);

	return !import_has(node, i) || (c && all_zero(c));
}

/* Whether the lengths of the sequences are all those of the input. */
static bool lengths_are(const struct importer *im, const struct file_node *node, int64_t steps)
{
	const struct constant *c = import_constant(im, node, 4);

	for (int64_t i = 0; c && !c->is_float && i < c->count; i++)
		if (c->ints[i] != steps)
			return false;
	return !import_has(node, 4) || (c && !c->is_float);
}

/* The activations must be those of the operator; of an RNN they are Tanh or Relu. */
static bool read_activations(struct importer *im, const struct file_node *node,
			     struct recurrent_layer *l)
{
	static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
	const Onnx__AttributeProto *a = onnx_attribute(node->proto, "activations");
	size_t each = l->op == OP_LSTM ? 3 : l->op == OP_GRU ? 2 : 1;
	size_t count = a ? a->n_strings : 0;

	l->activation = 1;
	for (size_t i = 0; i < count; i++) {
		const ProtobufCBinaryData *text = &a->strings[i];
		const char *wanted = l->op == OP_RNN ? "Tanh" : usual[i % each];
		bool relu = l->op == OP_RNN && text->len == 4 &&
			    strncasecmp((const char *)text->data, "Relu", 4) == 0;

		if (i == 0)
			l->activation = !relu;
		if (count == each * (size_t)l->directions && relu == !l->activation &&
		    (relu || (text->len == strlen(wanted) &&
			      strncasecmp((const char *)text->data, wanted, text->len) == 0)))
			continue;
		import_refuse(
			im, node,
			"its activations have '%.*s' at place %zu, where %s is supported; "
			"export it with the usual activations",
			(int)(text->len & 0x1f), text->data ? (const char *)text->data : "", i,
			l->op == OP_RNN ? "Tanh or Relu, the same in both directions" : wanted);
		return false;
	}
	return true;
}

/* Refuses what neither the operators nor their steps can express. */
static bool check_options(struct importer *im, const struct file_node *node,
			  struct recurrent_layer *l)
{
	char direction[16];

	onnx_text(node->proto, "direction", "forward", direction, sizeof(direction));
	l->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
	l->reverse = strcmp(direction, "reverse") == 0;
	l->batch_first = onnx_int(node->proto, "layout", 0) == 1;
	l->linear = l->op == OP_GRU && onnx_int(node->proto, "linear_before_reset", 0) != 0;
	if (l->directions == 1 && !l->reverse && strcmp(direction, "forward") != 0)
		import_refuse(im, node,
			      "its direction is '%s'; supported are forward, reverse and "
			      "bidirectional",
			      direction);
	else if (!is_absent(im, node, 7))
		import_refuse(im, node,
			      "its peepholes (input 7, P) are not supported; export it without");
	else if (onnx_real(node->proto, "clip", 0) != 0)
		import_refuse(im, node, "its clip is not supported; export it without");
	else if (onnx_int(node->proto, "input_forget", 0) != 0)
		import_refuse(im, node, "its input_forget is not supported; export it without");
	else
		return read_activations(im, node, l);
	return false;
}

/* The constant input i as directions x rows x columns (columns 0: directions x rows). */
static bool read_weight(struct importer *im, const struct file_node *node,
			const struct recurrent_layer *l, size_t i, int64_t rows, int64_t columns,
			const struct constant **out)
{
	struct shape wanted = {.rank = columns ? 3 : 2, .dims = {l->directions, rows, columns}};
	char text[128], has[128];

	if (!import_need_constant(im, node, i, out))
		return false;
	if ((*out)->is_float && shape_equal(&(*out)->shape, &wanted))
		return true;
	shape_text(&wanted, text, sizeof(text));
	shape_text(&(*out)->shape, has, sizeof(has));
	import_refuse(im, node, "input %zu must be real numbers of shape %s, but it has %s", i,
		      text, has);
	return false;
}

/* Batch x time x features. A Transpose in front of the node is taken back. */
static int batch_first(struct importer *im, const struct file_node *node,
		       const struct recurrent_layer *l, int x)
{
	static const int64_t order[] = {1, 0, 2};

	if (l->batch_first)
		return x;
	return import_turned(im, node, x, order, 3);
}

static bool read_layer(struct importer *im, const struct file_node *node, struct recurrent_layer *l)
{
	int64_t gates = l->op == OP_LSTM ? 4 : l->op == OP_GRU ? 3 : 1;
	const struct shape *x;
	int value;

	if (!import_need_value(im, node, 0, 3, &value) || !check_options(im, node, l))
		return false;
	x = import_shape(im, value);
	l->batch = x->dims[l->batch_first ? 0 : 1];
	l->steps = x->dims[l->batch_first ? 1 : 0];
	l->features = x->dims[2];
	if (!lengths_are(im, node, l->steps)) {
		import_refuse(im, node,
			      "its sequence_lens (input 4) are not supported; export it for "
			      "sequences of one length, without them");
		return false;
	}
	if (!import_need_constant(im, node, 2, &l->r))
		return false;
	l->hidden = l->r->shape.rank == 3 ? l->r->shape.dims[2] : 0;
	l->rows = gates * l->hidden;
	if (l->hidden < 1 || l->hidden > INT32_MAX / 8) {
		import_refuse(im, node, "input 2 must have three dimensions");
		return false;
	}
	if (!read_weight(im, node, l, 1, l->rows, l->features, &l->w) ||
	    !read_weight(im, node, l, 2, l->rows, l->hidden, &l->r) ||
	    (import_has(node, 3) && !read_weight(im, node, l, 3, 2 * l->rows, 0, &l->b)))
		return false;
	l->x = batch_first(im, node, l, value);
	return l->x != VALUE_NONE;
}

/* The operator of one direction: all states (batch x time x hidden), or the last one. */
static int append_direction(struct importer *im, const struct file_node *node,
			    const struct recurrent_layer *l, int direction)
{
	struct attributes attributes;
	int inputs[4] = {l->x};

	operator_default_attributes(l->op, &attributes);
	attributes.sequence = l->all;
	attributes.reverse = l->reverse || direction == 1;
	attributes.activation = l->op == OP_RNN && l->activation;
	attributes.linear_before_reset = l->linear;
	inputs[1] = import_part(im, node, l->w, direction * l->rows * l->features, 2, l->rows,
				l->features, "weight");
	inputs[2] = import_part(im, node, l->r, direction * l->rows * l->hidden, 2, l->rows,
				l->hidden, "recurrent");
	inputs[3] = import_bias(im, node, l, direction);
	for (int i = 1; i < 4; i++)
		if (inputs[i] == VALUE_NONE)
			return VALUE_NONE;
	return import_append(im, node, l->op, inputs, 4, &attributes);
}

/* The last state of a direction out of all of them: batch x hidden. */
static int last_state(struct importer *im, const struct file_node *node,
		      const struct recurrent_layer *l, int direction, int all)
{
	bool reverse = l->reverse || direction == 1;
	const struct onnx_range range = {
		.axis = 1, .start = reverse ? 0 : l->steps - 1, .step = 1, .count = 1};
	const struct shape shape = {.rank = 2, .dims = {l->batch, l->hidden}};
	int x = import_range(im, node, all, &range);

	return x == VALUE_NONE ? x : import_reshaped(im, node, x, &shape);
}

/* States of all directions (batch x hidden each) as the node has them: directions x batch x hidden,
 * or with the batch first. */
static int join_states(struct importer *im, const struct file_node *node,
		       const struct recurrent_layer *l, const int states[2])
{
	struct shape shape = {.rank = 3, .dims = {1, l->batch, l->hidden}};
	struct attributes attributes;
	int axis = l->batch_first ? 1 : 0, inputs[2];

	shape.dims[axis] = 1;
	shape.dims[1 - axis] = l->batch;
	for (int d = 0; d < l->directions; d++) {
		if (states[d] == VALUE_NONE)
			return VALUE_NONE;
		inputs[d] = import_reshaped(im, node, states[d], &shape);
		if (inputs[d] == VALUE_NONE)
			return VALUE_NONE;
	}
	operator_default_attributes(OP_CONCAT, &attributes);
	attributes.axis = axis;
	return l->directions == 1 ? inputs[0]
				  : import_append(im, node, OP_CONCAT, inputs, 2, &attributes);
}

/* Sets Y: time x directions x batch x hidden, or batch x time x directions x hidden. With one
 * direction, the axis of 1 comes last, so that a Squeeze and a Transpose behind it are taken back.
 */
static void set_all(struct importer *im, const struct file_node *node,
		    const struct recurrent_layer *l, const int all[2])
{
	static const int64_t time_first[] = {1, 0, 2}, of_two[] = {1, 2, 0, 3};
	struct shape shape = {.rank = 4, .dims = {l->steps, 1, l->batch, l->hidden}};
	struct attributes attributes;
	int y = all[0];

	if (l->batch_first || l->directions == 2)
		shape = (struct shape){.rank = 4,
				       .dims = {l->batch, l->steps, l->directions, l->hidden}};
	operator_default_attributes(OP_CONCAT, &attributes);
	attributes.axis = 2;
	if (l->directions == 2)
		y = import_append(im, node, OP_CONCAT, all, 2, &attributes);
	else if (!l->batch_first && y != VALUE_NONE)
		y = import_turned(im, node, y, time_first, 3);
	if (y != VALUE_NONE)
		y = import_reshaped(im, node, y, &shape);
	if (l->directions == 2 && !l->batch_first && y != VALUE_NONE)
		y = import_turned(im, node, y, of_two, 4);
	import_set(im, node, 0, y);
}

void import_recurrent(struct importer *im, const struct file_node *node)
{
	const char *op = node->proto->op_type;
	struct recurrent_layer l = {
		.op = strcmp(op, "LSTM") == 0  ? OP_LSTM
		      : strcmp(op, "GRU") == 0 ? OP_GRU
					       : OP_RNN,
		.all = output_is_used(im, node, 0),
	};
	int all[2], last[2], cells[2];
	bool steps;

	l.first[0] = !is_absent(im, node, 5);
	l.first[1] = l.op == OP_LSTM && !is_absent(im, node, 6);
	steps = l.first[0] || l.first[1] || (l.op == OP_LSTM && output_is_used(im, node, 2));
	if (!read_layer(im, node, &l))
		return;
	for (int d = 0; d < l.directions; d++) {
		last[d] = cells[d] = VALUE_NONE;
		all[d] = steps ? import_unrolled(im, node, &l, d, &last[d], &cells[d])
			       : append_direction(im, node, &l, d);
		if (all[d] == VALUE_NONE && (!steps || last[d] == VALUE_NONE))
			return;
		if (!steps)
			last[d] = !l.all ? all[d]
				  : output_is_used(im, node, 1)
					  ? last_state(im, node, &l, d, all[d])
					  : VALUE_NONE;
	}
	if (output_is_used(im, node, 1))
		import_set(im, node, 1, join_states(im, node, &l, last));
	if (output_is_used(im, node, 2))
		import_set(im, node, 2, join_states(im, node, &l, cells));
	if (l.all)
		set_all(im, node, &l, all);
}
