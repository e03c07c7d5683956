#include "adapters/xla/emit.h"

#include <assert.h>
#include <string.h>

#include "adapters/xla/emit_internal.h"

static emit_function *const rows[OP_COUNT] = {
	[OP_CONV] = emit_conv,
	[OP_CONV_GRAD_INPUT] = emit_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = emit_conv_grad_weight,
	[OP_GEMM] = emit_gemm,
	[OP_GEMM_GRAD_INPUT] = emit_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = emit_gemm_grad_weight,
	[OP_MAX_POOL] = emit_max_pool,
	[OP_MAX_POOL_GRAD] = emit_max_pool_grad,
	[OP_AVERAGE_POOL] = emit_average_pool,
	[OP_AVERAGE_POOL_GRAD] = emit_average_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL] = emit_global_average,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = emit_global_average_grad,
	[OP_BATCH_NORM] = emit_batch_norm,
	[OP_BATCH_NORM_GRAD] = emit_batch_norm_grad,
	[OP_LRN] = emit_lrn,
	[OP_LRN_GRAD] = emit_lrn_grad,
	[OP_SOFTMAX] = emit_softmax,
	[OP_SOFTMAX_GRAD] = emit_softmax_grad,
	[OP_DROPOUT] = emit_dropout,
	[OP_DROPOUT_GRAD] = emit_dropout_grad,
	[OP_SOFTMAX_CROSS_ENTROPY] = emit_cross_entropy,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = emit_cross_entropy_grad,
	[OP_HALF_SQUARES] = emit_half_squares,
	[OP_HALF_SQUARES_GRAD] = emit_half_squares_grad,
	[OP_RELU_GRAD] = emit_relu_grad,
	[OP_ELEMENTWISE_GRAD] = emit_elementwise_grad,
	[OP_ADD] = emit_binary,
	[OP_SUB] = emit_binary,
	[OP_MUL] = emit_binary,
	[OP_DIV] = emit_binary,
	[OP_FLATTEN] = emit_reshape,
	[OP_FLATTEN_GRAD] = emit_reshape_grad,
	[OP_RESHAPE] = emit_reshape,
	[OP_RESHAPE_GRAD] = emit_reshape_grad,
	[OP_TRANSPOSE] = emit_transpose,
	[OP_CONCAT] = emit_concat,
	[OP_SLICE] = emit_slice,
	[OP_SLICE_GRAD] = emit_slice_grad,
	[OP_PAD] = emit_pad,
	[OP_PAD_GRAD] = emit_pad_grad,
	[OP_REDUCE_MEAN] = emit_reduce_mean,
	[OP_REDUCE_MEAN_GRAD] = emit_reduce_mean_grad,
	[OP_BROADCAST_GRAD] = emit_broadcast_grad,
	[OP_LSTM] = emit_lstm,
	[OP_LSTM_GRAD] = emit_lstm_grad,
	[OP_RNN] = emit_rnn,
	[OP_RNN_GRAD] = emit_rnn_grad,
};

static emit_function *row_of(enum op op)
{
	return emit_knows_element(op) ? emit_elementwise : rows[op];
}

bool emit_knows(enum op op)
{
	return row_of(op) != NULL;
}

/* Weights of a convolution are kept as it reads them. */
static enum memory_order parameter_layout(const struct graph *graph, int value)
{
	for (int i = 0; i < graph->forward_count; i++)
		if (graph->nodes[i].op == OP_CONV && graph->nodes[i].inputs[1] == value)
			return LAYOUT_HWIO;
	return emit_layout(graph->values[value].shape.rank);
}

static struct port *add_port(struct emitter *l, struct port *ports, int *count, enum role role,
			     int value, enum hlo_type type)
{
	const struct shape *shape = &l->graph->values[value].shape;
	struct port *port = &ports[(*count)++];

	*port = (struct port){.role = role, .value = value};
	port->layout = role == ROLE_PARAMETER || role == ROLE_MOMENT || role == ROLE_GRADIENT
			       ? parameter_layout(l->graph, value)
		       : role == ROLE_LOGITS ? LAYOUT_PLAIN
					     : emit_layout(shape->rank);
	const struct shape lies = layout_shape(port->layout, shape);
	port->hlo = hlo_name(&l->h, type, &lies);
	return port;
}

static bool drops(const struct emitter *l)
{
	return l->training && l->recipe->dropout && graph_has_dropout(l->graph);
}

static bool follows(const struct emitter *l, int state)
{
	double momentum;

	return l->training && graph_state_statistic(l->graph, state, &momentum) != VALUE_NONE;
}

static void add_values(struct emitter *l, struct program *out, enum role role, bool kept)
{
	bool update = l->recipe->stage == STAGE_TRAIN;
	/* Evaluation converts what it multiplies once, training in each step. */
	enum hlo_type matrix = l->training ? HLO_F32 : l->compute;

	for (int i = 0; i < l->graph->value_count; i++) {
		const struct value *value = &l->graph->values[i];
		bool fits = role == ROLE_STATE ? value->kind == VALUE_STATE && follows(l, i) == kept
					       : value->kind == VALUE_PARAMETER && update == kept;

		if (fits)
			add_port(l, out->arguments, &out->argument_count, role, i,
				 role == ROLE_PARAMETER && value->shape.rank > 1 ? matrix
										 : HLO_F32);
	}
}

/* What the results overwrite first, in their order. */
static void list_arguments(struct emitter *l, struct program *out)
{
	const struct shape two = {.rank = 1, .dims = {2}};

	out->arguments = arena_array(l->arena, 2 * (size_t)l->graph->value_count + 3,
				     sizeof(*out->arguments));
	add_values(l, out, ROLE_PARAMETER, true);
	if (l->recipe->optimiser != OPTIMISER_SGD)
		add_values(l, out, ROLE_MOMENT, true);
	add_values(l, out, ROLE_STATE, true);
	if (drops(l)) {
		l->random = hlo_name(&l->h, HLO_U64, &two);
		out->arguments[out->argument_count++] =
			(struct port){.role = ROLE_RANDOM, .value = VALUE_NONE, .hlo = l->random};
	}
	out->kept = out->argument_count;
	add_values(l, out, ROLE_PARAMETER, false);
	add_values(l, out, ROLE_STATE, false);
	add_port(l, out->arguments, &out->argument_count, ROLE_INPUT, l->graph->input, HLO_F32);
	if (l->training)
		add_port(l, out->arguments, &out->argument_count, ROLE_LABELS, l->graph->label,
			 HLO_I32);
	for (int i = 0; i < out->argument_count; i++) {
		const struct port *port = &out->arguments[i];

		if (port->role == ROLE_MOMENT || port->role == ROLE_RANDOM)
			continue;
		l->values[port->value].hlo = port->hlo;
		l->values[port->value].layout = port->layout;
	}
}

/* decay * w + g */
static struct hlo decayed(struct emitter *l, const struct port *weight)
{
	int gradient = l->graph->values[weight->value].gradient;
	struct hlo g = emit_value_as(l, gradient, weight->layout, HLO_F32);

	if (l->recipe->weight_decay == 0)
		return g;
	return hlo_binary(&l->h, "add", g,
			  hlo_with(&l->h, "multiply", weight->hlo, l->recipe->weight_decay));
}

/* Writes the update of one parameter; as the reference has it, epsilon inside the root. */
static struct hlo update(struct emitter *l, const struct port *weight, const struct port *moment,
			 struct hlo *next_moment)
{
	const struct recipe *recipe = l->recipe;
	struct hlo_text *h = &l->h;
	struct hlo g = decayed(l, weight), change = g, m;

	if (recipe->optimiser == OPTIMISER_MOMENTUM) {
		m = hlo_with(h, "multiply", moment->hlo, recipe->momentum);
		change = *next_moment = hlo_binary(h, "add", m, g);
	} else if (recipe->optimiser == OPTIMISER_RMSPROP) {
		m = hlo_with(h, "multiply", moment->hlo, recipe->rho);
		g = hlo_with(h, "multiply", hlo_binary(h, "multiply", g, g), 1 - recipe->rho);
		*next_moment = hlo_binary(h, "add", m, g);
		g = hlo_unary(h, "rsqrt", hlo_with(h, "add", *next_moment, recipe->epsilon));
		change = hlo_binary(h, "multiply", change, g);
	}
	return hlo_binary(h, "subtract", weight->hlo,
			  hlo_with(h, "multiply", change, recipe->learning_rate));
}

static struct hlo next_state(struct emitter *l, const struct port *state)
{
	double momentum = 0;
	int statistic = graph_state_statistic(l->graph, state->value, &momentum);
	struct hlo batch = emit_value_as(l, statistic, state->layout, HLO_F32);

	return hlo_binary(&l->h, "add", hlo_with(&l->h, "multiply", state->hlo, momentum),
			  hlo_with(&l->h, "multiply", batch, 1 - momentum));
}

static void list_kept(struct emitter *l, struct program *out)
{
	bool moments = l->recipe->optimiser != OPTIMISER_SGD;
	int parameters = graph_parameters(l->graph, NULL, 0);

	memcpy(out->results, out->arguments, (size_t)out->kept * sizeof(*out->results));
	for (int i = 0; i < out->kept; i++) {
		const struct port *from = &out->arguments[i];
		struct hlo *next = &out->results[i].hlo;

		if (from->role == ROLE_PARAMETER)
			*next = update(l, from, moments ? &out->arguments[i + parameters] : NULL,
				       &out->results[i + parameters].hlo);
		else if (from->role == ROLE_STATE)
			*next = next_state(l, from);
		else if (from->role == ROLE_RANDOM)
			*next = l->random;
	}
	out->result_count = out->kept;
}

static void list_results(struct emitter *l, struct program *out)
{
	const struct graph *graph = l->graph;

	out->results =
		arena_array(l->arena, 2 * (size_t)graph->value_count + 3, sizeof(*out->results));
	list_kept(l, out);
	for (int i = 0; i < graph->value_count; i++) {
		struct port *port;

		if (graph->values[i].kind != VALUE_PARAMETER ||
		    l->recipe->stage != STAGE_FORWARD_BACKWARD)
			continue;
		port = add_port(l, out->results, &out->result_count, ROLE_GRADIENT, i, HLO_F32);
		port->hlo = emit_value_as(l, graph->values[i].gradient, port->layout, HLO_F32);
	}
	if (l->training)
		add_port(l, out->results, &out->result_count, ROLE_LOSS, graph->loss, HLO_F32)
			->hlo = emit_value_as(l, graph->loss, LAYOUT_PLAIN, HLO_F32);
	add_port(l, out->results, &out->result_count, ROLE_LOGITS, graph->logits, HLO_F32)->hlo =
		emit_value_as(l, graph->logits, LAYOUT_PLAIN, HLO_F32);
}

static void write_ports(struct strbuf *out, const struct port *ports, int count)
{
	for (int i = 0; i < count; i++) {
		strbuf_puts(out, i > 0 ? ", " : "");
		hlo_write_type(out, ports[i].hlo.type, &ports[i].hlo.shape);
	}
}

/* Head, body and end of the module; jax writes donation with the same attribute. */
static void write_module(const struct emitter *l, struct program *out)
{
	struct strbuf text;

	strbuf_init(&text, 0);
	strbuf_puts(&text, "module @prony {\nfunc.func public @main(");
	for (int i = 0; i < out->argument_count; i++) {
		const struct hlo *hlo = &out->arguments[i].hlo;

		strbuf_printf(&text, "%s%%v%d: ", i > 0 ? ", " : "", hlo->id);
		hlo_write_type(&text, hlo->type, &hlo->shape);
		if (i < out->kept)
			strbuf_printf(&text, " {tf.aliasing_output = %d : i32}", i);
	}
	strbuf_puts(&text, ") -> (");
	write_ports(&text, out->results, out->result_count);
	strbuf_printf(&text, ") {\n%s  return ", strbuf_text(&l->h.text));
	for (int i = 0; i < out->result_count; i++)
		strbuf_printf(&text, "%s%%v%d", i > 0 ? ", " : "", out->results[i].hlo.id);
	strbuf_puts(&text, " : ");
	write_ports(&text, out->results, out->result_count);
	strbuf_puts(&text, "\n}\n}\n");
	out->bytes = text.length;
	out->text = strbuf_take(&text);
}

enum prony_status emit_program(struct graph *graph, const struct recipe *recipe, bool exact,
			       struct arena *arena, struct program *out, struct error *err)
{
	struct program program = {.text = NULL};
	struct emitter l = {
		.graph = graph,
		.recipe = recipe,
		.arena = arena,
		.training = recipe->stage != STAGE_FORWARD,
		.compute = recipe->precision == PRECISION_BF16 ? HLO_BF16 : HLO_F32,
	};
	enum prony_status status = l.training ? graph_add_backward(graph, err) : PRONY_OK;
	int nodes = l.training ? graph->node_count : graph->forward_count;

	if (status != PRONY_OK)
		return status;
	hlo_init(&l.h);
	l.h.exact = exact;
	l.values = arena_array(arena, (size_t)graph->value_count, sizeof(*l.values));
	l.recurrences = arena_array(arena, (size_t)graph->node_count, sizeof(*l.recurrences));
	list_arguments(&l, &program);
	for (int i = 0; i < nodes; i++) {
		/* Evaluation ends at the logits. */
		if (l.training || !operator_row(graph->nodes[i].op)->is_loss)
			row_of(graph->nodes[i].op)(&l, &graph->nodes[i]);
		if (i == graph->forward_count - 1)
			program.macs = l.h.macs;
	}
	list_results(&l, &program);
	write_module(&l, &program);
	hlo_release(&l.h);
	*out = program;
	return PRONY_OK;
}
