/* Writes the function of a stage: the arguments, the nodes, the update, the results. */
#include "adapters/xla/emit.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "adapters/xla/emit_internal.h"

/* The function that writes an operator; its gradient (of the input, or of everything); the gradient
 * of its weight. */
static const struct row {
	emit_function *forward, *gradient, *of_weight;
} rows[OP_COUNT] = {
	[OP_CONV] = {emit_conv, emit_conv_grad_input, emit_conv_grad_weight},
	[OP_CONV_TRANSPOSE] = {emit_conv_transpose, emit_conv_transpose_grad_input,
			       emit_conv_transpose_grad_weight},
	[OP_GEMM] = {emit_gemm, emit_gemm_grad_input, emit_gemm_grad_weight},
	[OP_MATMUL] = {emit_matmul, emit_broadcast_grad, NULL},
	[OP_MAX_POOL] = {emit_max_pool, emit_max_pool_grad, NULL},
	[OP_AVERAGE_POOL] = {emit_average_pool, emit_average_pool_grad, NULL},
	[OP_GLOBAL_AVERAGE_POOL] = {emit_mean, emit_mean_grad, NULL},
	[OP_BATCH_NORM] = {emit_batch_norm, emit_batch_norm_grad, NULL},
	[OP_LAYER_NORM] = {emit_layer_norm, emit_layer_norm_grad, NULL},
	[OP_RMS_NORM] = {emit_layer_norm, emit_layer_norm_grad, NULL},
	[OP_GROUP_NORM] = {emit_group_norm, emit_group_norm_grad, NULL},
	[OP_INSTANCE_NORM] = {emit_group_norm, emit_group_norm_grad, NULL},
	[OP_RESIZE] = {emit_resize, emit_resize_grad, NULL},
	[OP_LRN] = {emit_lrn, emit_lrn_grad, NULL},
	[OP_SOFTMAX] = {emit_softmax, emit_softmax_grad, NULL},
	[OP_DROPOUT] = {emit_dropout, emit_dropout_grad, NULL},
	[OP_SOFTMAX_CROSS_ENTROPY] = {emit_cross_entropy, emit_cross_entropy_grad, NULL},
	[OP_HALF_SQUARES] = {emit_half_squares, emit_half_squares_grad, NULL},
	[OP_ADD] = {emit_binary, emit_broadcast_grad, NULL},
	[OP_SUB] = {emit_binary, emit_broadcast_grad, NULL},
	[OP_MUL] = {emit_binary, emit_broadcast_grad, NULL},
	[OP_DIV] = {emit_binary, emit_broadcast_grad, NULL},
	[OP_FLATTEN] = {emit_reshape, emit_reshape, NULL},
	[OP_RESHAPE] = {emit_reshape, emit_reshape, NULL},
	[OP_TRANSPOSE] = {emit_transpose, NULL, NULL},
	[OP_EXPAND] = {emit_expand, emit_broadcast_grad, NULL},
	[OP_CONCAT] = {emit_concat, NULL, NULL},
	[OP_SLICE] = {emit_slice, emit_slice_grad, NULL},
	[OP_PAD] = {emit_pad, emit_pad_grad, NULL},
	[OP_REDUCE_MEAN] = {emit_mean, emit_mean_grad, NULL},
	[OP_GATHER] = {emit_gather, emit_gather_grad, NULL},
	[OP_LSTM] = {emit_recurrent, emit_recurrent_grad, NULL},
	[OP_GRU] = {emit_recurrent, emit_recurrent_grad, NULL},
	[OP_RNN] = {emit_recurrent, emit_recurrent_grad, NULL},
};
static const struct row elementwise = {emit_elementwise, emit_elementwise_grad, NULL};

bool emit_knows(enum op op)
{
	return rows[op].forward || emit_knows_element(op);
}

static void emit_node(struct emitter *l, const struct node *node)
{
	bool gradient = node->differentiates >= 0;
	bool of_weight = node->op == OP_CONV_GRAD_WEIGHT || node->op == OP_GEMM_GRAD_WEIGHT ||
			 node->op == OP_CONV_TRANSPOSE_GRAD_WEIGHT;
	enum op op = gradient ? l->graph->nodes[node->differentiates].op : node->op;
	const struct row *row = rows[op].forward ? &rows[op] : &elementwise;

	(of_weight ? row->of_weight : gradient ? row->gradient : row->forward)(l, node);
}

static struct port *add_port(struct emitter *l, struct port *ports, int *count, enum role role,
			     int value, enum hlo_type type)
{
	const struct shape lies = emit_lying(l, value);
	struct port *port = &ports[(*count)++];

	*port = (struct port){.role = role,
			      .value = value,
			      .order = layouts_arrangement(&l->layouts, value),
			      .hlo = hlo_name(&l->h, type, &lies)};
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

static bool counts_updates(const struct emitter *l)
{
	return l->recipe->stage == STAGE_TRAIN && l->recipe->optimiser == OPTIMISER_ADAMW;
}

static void add_values(struct emitter *l, struct program *out, enum role role, bool kept)
{
	bool update = l->recipe->stage == STAGE_TRAIN;
	/* Matrices are converted once for evaluation, but in each step of training. */
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

/* Adds the tensors of a batch, in graph order. */
static void add_batch(struct emitter *l, struct program *out, enum value_kind kind, enum role role)
{
	for (int i = 0; i < l->graph->value_count; i++) {
		const struct value *value = &l->graph->values[i];

		if (value->kind == kind)
			add_port(l, out->arguments, &out->argument_count, role, i,
				 value->dtype == DTYPE_F32 ? HLO_F32 : HLO_I32);
	}
}

/* Lists the arguments: first those that results overwrite, in the order of the results; the batch
 * last. */
static void list_arguments(struct emitter *l, struct program *out)
{
	const struct shape two = {.rank = 1, .dims = {2}};

	out->arguments = arena_array(l->arena, 3 * (size_t)l->graph->value_count + 4,
				     sizeof(*out->arguments));
	add_values(l, out, ROLE_PARAMETER, true);
	if (l->recipe->optimiser != OPTIMISER_SGD)
		add_values(l, out, ROLE_MOMENT, true);
	if (counts_updates(l)) {
		add_values(l, out, ROLE_SQUARE, true);
		l->updates = hlo_name(&l->h, HLO_F32, &(struct shape){0});
		out->arguments[out->argument_count++] =
			(struct port){.role = ROLE_UPDATES, .value = VALUE_NONE, .hlo = l->updates};
		l->updates = hlo_with(&l->h, "add", l->updates, 1);
	}
	add_values(l, out, ROLE_STATE, true);
	if (drops(l)) {
		l->random = hlo_name(&l->h, HLO_U64, &two);
		out->arguments[out->argument_count++] =
			(struct port){.role = ROLE_RANDOM, .value = VALUE_NONE, .hlo = l->random};
	}
	out->kept = out->argument_count;
	add_values(l, out, ROLE_PARAMETER, false);
	add_values(l, out, ROLE_STATE, false);
	add_batch(l, out, VALUE_INPUT, ROLE_INPUT);
	if (l->training)
		add_batch(l, out, VALUE_LABEL, ROLE_LABELS);
	for (int i = 0; i < out->argument_count; i++) {
		const struct port *port = &out->arguments[i];

		if (port->role != ROLE_MOMENT && port->role != ROLE_SQUARE &&
		    port->value != VALUE_NONE)
			l->values[port->value] = port->hlo;
	}
}

/* Sets l->norm, which all gradients share. */
static void find_norm(struct emitter *l, const struct program *out)
{
	static const int all[TENSOR_MAX_RANK] = {0, 1, 2, 3};
	const double epsilon = 1e-6; /* as in torch.nn.utils.clip_grad_norm_ */
	struct hlo_text *h = &l->h;
	struct hlo sum = {0};

	for (int i = 0; i < out->kept; i++) {
		const struct port *port = &out->arguments[i];
		struct hlo g;

		if (port->role != ROLE_PARAMETER)
			continue;
		g = emit_value_as(l, l->graph->values[port->value].gradient, HLO_F32);
		g = hlo_reduce(h, "add", hlo_binary(h, "multiply", g, g), all, g.shape.rank);
		sum = i == 0 ? g : hlo_binary(h, "add", sum, g);
	}
	l->norm = hlo_with(h, "maximum", hlo_with(h, "add", hlo_unary(h, "sqrt", sum), epsilon),
			   l->recipe->clip_norm);
}

/* g, or clip_norm / max(norm + 1e-6, clip_norm) * g */
static struct hlo clipped(struct emitter *l, int parameter)
{
	struct hlo g = emit_value_as(l, l->graph->values[parameter].gradient, HLO_F32);

	if (l->recipe->clip_norm <= 0)
		return g;
	return hlo_binary(&l->h, "divide", hlo_with(&l->h, "multiply", g, l->recipe->clip_norm),
			  hlo_broadcast(&l->h, l->norm, NULL, &g.shape));
}

/* decay * w + g */
static struct hlo decayed(struct emitter *l, const struct port *weight)
{
	struct hlo g = clipped(l, weight->value);

	if (l->recipe->weight_decay == 0)
		return g;
	return hlo_binary(&l->h, "add", g,
			  hlo_with(&l->h, "multiply", weight->hlo, l->recipe->weight_decay));
}

/* Writes the update of one parameter, as in the reference, with epsilon inside the root. */
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

/* 1 / (1 - beta^updates) in the shape of x; 1 - beta^updates would lose digits. */
static struct hlo corrected(struct emitter *l, struct hlo x, double beta)
{
	struct hlo_text *h = &l->h;
	struct hlo power = hlo_unary(h, "exponential_minus_one",
				     hlo_with(h, "multiply", l->updates, log(beta)));

	power = hlo_broadcast(h, hlo_unary(h, "negate", power), NULL, &x.shape);
	return hlo_binary(h, "divide", x, power);
}

/* AdamW, as in the reference. */
static struct hlo update_adamw(struct emitter *l, const struct port *weight, struct hlo moment,
			       struct hlo square, struct hlo *next_moment, struct hlo *next_square)
{
	const struct recipe *recipe = l->recipe;
	const struct value *value = &l->graph->values[weight->value];
	struct hlo_text *h = &l->h;
	struct hlo g = clipped(l, weight->value), change, root;

	*next_moment = hlo_binary(h, "add", hlo_with(h, "multiply", moment, recipe->beta1),
				  hlo_with(h, "multiply", g, 1 - recipe->beta1));
	*next_square = hlo_binary(
		h, "add", hlo_with(h, "multiply", square, recipe->beta2),
		hlo_with(h, "multiply", hlo_binary(h, "multiply", g, g), 1 - recipe->beta2));
	root = hlo_unary(h, "sqrt", corrected(l, *next_square, recipe->beta2));
	change = hlo_binary(h, "divide", corrected(l, *next_moment, recipe->beta1),
			    hlo_with(h, "add", root, recipe->epsilon));
	if (value->shape.rank >= 2 && recipe->weight_decay > 0)
		change = hlo_binary(h, "add", change,
				    hlo_with(h, "multiply", weight->hlo, recipe->weight_decay));
	return hlo_binary(h, "subtract", weight->hlo,
			  hlo_with(h, "multiply", change, recipe->learning_rate));
}

static struct hlo next_state(struct emitter *l, const struct port *state)
{
	double momentum = 0;
	int statistic = graph_state_statistic(l->graph, state->value, &momentum);
	struct hlo batch = emit_value_as(l, statistic, HLO_F32);

	return hlo_binary(&l->h, "add", hlo_with(&l->h, "multiply", state->hlo, momentum),
			  hlo_with(&l->h, "multiply", batch, 1 - momentum));
}

static void list_kept(struct emitter *l, struct program *out)
{
	bool moments = l->recipe->optimiser != OPTIMISER_SGD;
	int parameters = graph_parameters(l->graph, NULL, 0);

	if (l->recipe->stage == STAGE_TRAIN && l->recipe->clip_norm > 0)
		find_norm(l, out);
	memcpy(out->results, out->arguments, (size_t)out->kept * sizeof(*out->results));
	for (int i = 0; i < out->kept; i++) {
		const struct port *from = &out->arguments[i];
		struct hlo *next = &out->results[i].hlo;

		if (from->role == ROLE_PARAMETER && counts_updates(l))
			*next = update_adamw(l, from, out->arguments[i + parameters].hlo,
					     out->arguments[i + 2 * parameters].hlo,
					     &out->results[i + parameters].hlo,
					     &out->results[i + 2 * parameters].hlo);
		else if (from->role == ROLE_PARAMETER)
			*next = update(l, from, moments ? &out->arguments[i + parameters] : NULL,
				       &out->results[i + parameters].hlo);
		else if (from->role == ROLE_STATE)
			*next = next_state(l, from);
		else if (from->role == ROLE_RANDOM)
			*next = l->random;
		else if (from->role == ROLE_UPDATES)
			*next = l->updates;
	}
	out->result_count = out->kept;
}

static void list_results(struct emitter *l, struct program *out)
{
	const struct graph *graph = l->graph;

	out->results =
		arena_array(l->arena, 3 * (size_t)graph->value_count + 4, sizeof(*out->results));
	list_kept(l, out);
	for (int i = 0; i < graph->value_count; i++) {
		struct port *port;

		if (graph->values[i].kind != VALUE_PARAMETER ||
		    l->recipe->stage != STAGE_FORWARD_BACKWARD)
			continue;
		port = add_port(l, out->results, &out->result_count, ROLE_GRADIENT, i, HLO_F32);
		port->hlo = emit_value_as(l, graph->values[i].gradient, HLO_F32);
	}
	if (l->training)
		add_port(l, out->results, &out->result_count, ROLE_LOSS, graph->loss, HLO_F32)
			->hlo = emit_value_as(l, graph->loss, HLO_F32);
	add_port(l, out->results, &out->result_count, ROLE_LOGITS, graph->logits, HLO_F32)->hlo =
		emit_value_as(l, graph->logits, HLO_F32);
}

static void write_ports(struct strbuf *out, const struct port *ports, int count)
{
	for (int i = 0; i < count; i++) {
		strbuf_puts(out, i > 0 ? ", " : "");
		hlo_write_type(out, ports[i].hlo.type, &ports[i].hlo.shape);
	}
}

/* Writes the module: head, body and end. Donation uses the same attribute as in JAX. */
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
	graph_layouts(graph, true, arena, &l.layouts);
	l.values = arena_array(arena, (size_t)graph->value_count, sizeof(*l.values));
	l.recurrences = arena_array(arena, (size_t)graph->node_count, sizeof(*l.recurrences));
	list_arguments(&l, &program);
	for (int i = 0; i < nodes; i++) {
		/* Evaluation stops at the logits. */
		if (l.training || !operator_row(graph->nodes[i].op)->is_loss)
			emit_node(&l, &graph->nodes[i]);
		if (i == graph->forward_count - 1)
			program.macs = l.h.macs;
	}
	list_results(&l, &program);
	write_module(&l, &program);
	hlo_release(&l.h);
	*out = program;
	return PRONY_OK;
}
