/* Writes recurrent layers as a loop over time that multiplies by the last state. The product with
 * the input is computed for all steps before the loop, the gradients of the weights for all steps
 * after it. The forward pass keeps what the backward pass reads. */
#include "adapters/xla/emit_internal.h"

struct layer {
	int64_t batch, steps, features, hidden, gates;
	struct hlo x, w, r; /* T*N x I, gates*H x I, gates*H x H */
};

/* `first` is the number of the input x: a gradient has dy before it. */
static struct layer read_layer(struct emitter *l, const struct node *node, int first, int64_t gates)
{
	static const int time_first[] = {1, 0, 2};
	const struct shape *x = emit_shape(l, node->inputs[first]);
	struct layer layer = {
		.batch = x->dims[0],
		.steps = x->dims[1],
		.features = x->dims[2],
		.hidden = emit_shape(l, node->inputs[first + 2])->dims[1],
		.gates = gates,
		.w = emit_input(l, node, first + 1),
		.r = emit_input(l, node, first + 2),
	};
	const struct shape rows = {.rank = 2, .dims = {layer.steps * layer.batch, layer.features}};

	layer.x = hlo_transpose(&l->h, emit_input(l, node, first), time_first);
	layer.x = hlo_reshape(&l->h, layer.x, &rows);
	return layer;
}

static struct hlo zeros(struct emitter *l, int rank, int64_t a, int64_t b, int64_t c)
{
	const struct shape shape = {.rank = rank, .dims = {a, b, c}};

	return hlo_number(&l->h, (struct hlo){.type = HLO_F32, .shape = shape}, 0);
}

/* Converts rows `step * N` to `(step + 1) * N` into entry `step`; by_row converts back. */
static struct hlo by_step(struct emitter *l, const struct layer *layer, struct hlo rows)
{
	const struct shape shape = {.rank = 3,
				    .dims = {layer->steps, layer->batch, rows.shape.dims[1]}};

	return hlo_reshape(&l->h, rows, &shape);
}

static struct hlo by_row(struct emitter *l, struct hlo entries)
{
	const struct shape shape = {
		.rank = 2,
		.dims = {entries.shape.dims[0] * entries.shape.dims[1], entries.shape.dims[2]}};

	return hlo_reshape(&l->h, entries, &shape);
}

/* Returns w x + b for all steps. */
static struct hlo input_sums(struct emitter *l, const struct node *node, const struct layer *layer)
{
	struct hlo sums = hlo_dot(&l->h, layer->x, 1, layer->w, 1, HLO_F32);

	return by_step(l, layer,
		       hlo_binary(&l->h, "add", sums,
				  emit_channels(l, emit_input_f32(l, node, 3), &sums.shape)));
}

static struct hlo gate(struct emitter *l, const struct layer *layer, struct hlo gates, int which)
{
	return hlo_slice(&l->h, gates, 1, which * layer->hidden, (which + 1) * layer->hidden, 1);
}

/*
 * The values carried by the loop; the last three only for training, GATES and CELLS only for LSTM.
 */
enum { SUMS, WEIGHTS, STATE, CELL, STATES, GATES, CELLS };

/*
 * Activates the gates of one step (i, o, f, c) into *gates, updates *cell and returns the state.
 */
static struct hlo lstm_step(struct emitter *l, const struct layer *layer, struct hlo a,
			    struct hlo *cell, struct hlo *gates)
{
	struct hlo_text *h = &l->h;
	struct hlo i, o, f, g, parts[2];

	parts[0] = hlo_unary(h, "logistic", hlo_slice(h, a, 1, 0, 3 * layer->hidden, 1));
	parts[1] = hlo_unary(h, "tanh", gate(l, layer, a, 3));
	*gates = hlo_concatenate(h, parts, 2, 1);
	i = gate(l, layer, parts[0], 0);
	o = gate(l, layer, parts[0], 1);
	f = gate(l, layer, parts[0], 2);
	g = parts[1];
	*cell = hlo_binary(h, "add", hlo_binary(h, "multiply", f, *cell),
			   hlo_binary(h, "multiply", i, g));
	return hlo_binary(h, "multiply", o, hlo_unary(h, "tanh", *cell));
}

static void forward(struct emitter *l, const struct node *node, int64_t gates)
{
	const struct layer layer = read_layer(l, node, 0, gates);
	struct recurrence *kept = &l->recurrences[node - l->graph->nodes];
	struct hlo_text *h = &l->h;
	struct hlo next[HLO_CARRIED], a, activated, behind;
	int64_t width = gates * layer.hidden;
	struct hlo_loop loop = {.trips = layer.steps, .count = gates == 4 ? CELL + 1 : STATE + 1};

	loop.carried[SUMS] = input_sums(l, node, &layer);
	loop.carried[WEIGHTS] = layer.r;
	loop.carried[STATE] = zeros(l, 2, layer.batch, layer.hidden, 0);
	loop.carried[CELL] = loop.carried[STATE];
	if (l->training) {
		loop.count = gates == 4 ? CELLS + 1 : STATES + 1;
		loop.carried[STATES] = zeros(l, 3, layer.steps + 1, layer.batch, layer.hidden);
		loop.carried[CELLS] = loop.carried[STATES];
		loop.carried[GATES] = zeros(l, 3, layer.steps, layer.batch, width);
	}
	hlo_loop_begin(h, &loop);
	for (int i = 0; i < loop.count; i++)
		next[i] = loop.inside[i];
	a = hlo_dot(h, hlo_convert(h, loop.inside[STATE], l->compute), 1, loop.inside[WEIGHTS], 1,
		    HLO_F32);
	a = hlo_binary(h, "add", a, hlo_entry(h, loop.inside[SUMS], loop.index));
	if (gates == 4)
		next[STATE] = lstm_step(l, &layer, a, &next[CELL], &activated);
	else
		next[STATE] = hlo_with(h, "maximum", a, 0);
	behind = hlo_with(h, "add", loop.index, 1);
	if (l->training)
		next[STATES] = hlo_with_entry(h, loop.inside[STATES], next[STATE], behind);
	if (l->training && gates == 4) {
		next[GATES] = hlo_with_entry(h, loop.inside[GATES], activated, loop.index);
		next[CELLS] = hlo_with_entry(h, loop.inside[CELLS], next[CELL], behind);
	}
	hlo_loop_end(h, &loop, next);
	*kept = (struct recurrence){loop.after[GATES], loop.after[STATES], loop.after[CELLS]};
	emit_output(l, node, 0, loop.after[STATE]);
}

/* Values carried by the backward loop: DSTATE to DSUMS change, the others are read only. */
enum { DSTATE, DCELL, DSUMS, DWEIGHTS, DKEPT, DGATES };

/* Returns the gradient of the sums of one LSTM step; *dcell becomes the gradient of the previous
 * cell. */
static struct hlo lstm_step_grad(struct emitter *l, const struct layer *layer,
				 const struct hlo_loop *loop, struct hlo step, struct hlo *dcell)
{
	struct hlo_text *h = &l->h;
	struct hlo gates = hlo_entry(h, loop->inside[DGATES], step), dh = loop->inside[DSTATE];
	struct hlo i = gate(l, layer, gates, 0), o = gate(l, layer, gates, 1);
	struct hlo f = gate(l, layer, gates, 2), g = gate(l, layer, gates, 3);
	struct hlo before = hlo_entry(h, loop->inside[DKEPT], step), d, squashed, one, parts[4];
	struct hlo cell = hlo_entry(h, loop->inside[DKEPT], hlo_with(h, "add", step, 1));

	one = hlo_number(h, cell, 1);
	squashed = hlo_unary(h, "tanh", cell);
	d = hlo_binary(h, "subtract", one, hlo_binary(h, "multiply", squashed, squashed));
	d = hlo_binary(h, "multiply", hlo_binary(h, "multiply", dh, o), d);
	d = hlo_binary(h, "add", d, *dcell);
	*dcell = hlo_binary(h, "multiply", d, f);
	parts[0] = hlo_binary(h, "multiply", d, g);
	parts[1] = hlo_binary(h, "multiply", dh, squashed);
	parts[2] = hlo_binary(h, "multiply", d, before);
	for (int k = 0; k < 3; k++) {
		struct hlo y = k == 0 ? i : k == 1 ? o : f;

		y = hlo_binary(h, "multiply", y, hlo_binary(h, "subtract", one, y));
		parts[k] = hlo_binary(h, "multiply", parts[k], y);
	}
	g = hlo_binary(h, "subtract", one, hlo_binary(h, "multiply", g, g));
	parts[3] = hlo_binary(h, "multiply", hlo_binary(h, "multiply", d, i), g);
	return hlo_concatenate(h, parts, 4, 1);
}

/* Loops from the last step to the first; returns the gradient of the sums of all steps as rows. */
static struct hlo backward_loop(struct emitter *l, const struct node *node,
				const struct layer *layer, const struct recurrence *kept)
{
	struct hlo_text *h = &l->h;
	struct hlo next[HLO_CARRIED], step, da, state;
	bool lstm = layer->gates == 4;
	struct hlo_loop loop = {.trips = layer->steps, .count = lstm ? DGATES + 1 : DKEPT + 1};

	loop.carried[DSTATE] = emit_input_f32(l, node, 0);
	loop.carried[DCELL] = zeros(l, 2, layer->batch, layer->hidden, 0);
	loop.carried[DSUMS] = zeros(l, 3, layer->steps, layer->batch, layer->gates * layer->hidden);
	loop.carried[DWEIGHTS] = layer->r;
	loop.carried[DKEPT] = lstm ? kept->cells : kept->states;
	loop.carried[DGATES] = kept->gates;
	hlo_loop_begin(h, &loop);
	for (int i = 0; i < loop.count; i++)
		next[i] = loop.inside[i];
	step = hlo_binary(h, "subtract", hlo_number(h, loop.index, (double)layer->steps - 1),
			  loop.index);
	if (lstm) {
		da = lstm_step_grad(l, layer, &loop, step, &next[DCELL]);
	} else {
		state = hlo_entry(h, loop.inside[DKEPT], hlo_with(h, "add", step, 1));
		da = hlo_select(h, hlo_compare(h, "GT", state, hlo_number(h, state, 0)),
				loop.inside[DSTATE], hlo_number(h, state, 0));
	}
	next[DSUMS] = hlo_with_entry(h, loop.inside[DSUMS], da, step);
	next[DSTATE] =
		hlo_dot(h, hlo_convert(h, da, l->compute), 1, loop.inside[DWEIGHTS], 0, HLO_F32);
	hlo_loop_end(h, &loop, next);
	return by_row(l, loop.after[DSUMS]);
}

static void backward(struct emitter *l, const struct node *node, int64_t gates)
{
	static const int batch_first[] = {1, 0, 2};
	const struct layer layer = read_layer(l, node, 1, gates);
	const struct recurrence *kept = &l->recurrences[node->differentiates];
	struct hlo da = backward_loop(l, node, &layer, kept), rows, before;

	rows = hlo_convert(&l->h, da, l->compute);
	if (node->outputs[0] != VALUE_NONE) {
		struct hlo dx = hlo_dot(&l->h, rows, 1, layer.w, 0, l->compute);

		dx = hlo_transpose(&l->h, by_step(l, &layer, dx), batch_first);
		emit_output(l, node, 0, dx);
	}
	before = by_row(l, hlo_slice(&l->h, kept->states, 0, 0, layer.steps, 1));
	before = hlo_convert(&l->h, before, l->compute);
	emit_output(l, node, 1, hlo_dot(&l->h, rows, 0, layer.x, 0, HLO_F32));
	emit_output(l, node, 2, hlo_dot(&l->h, rows, 0, before, 0, HLO_F32));
	emit_output(l, node, 3, emit_sum_channels(l, da));
}

void emit_lstm(struct emitter *l, const struct node *node)
{
	forward(l, node, 4);
}

void emit_rnn(struct emitter *l, const struct node *node)
{
	forward(l, node, 1);
}

void emit_lstm_grad(struct emitter *l, const struct node *node)
{
	backward(l, node, 4);
}

void emit_rnn_grad(struct emitter *l, const struct node *node)
{
	backward(l, node, 1);
}
