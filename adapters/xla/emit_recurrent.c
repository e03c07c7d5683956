/* Writes recurrent layers as a loop over time that multiplies by the last state. The product with
 * the input is computed for all steps before the loop, the gradients of the weights for all steps
 * after it. The forward pass keeps what the backward pass reads. */
#include "adapters/xla/emit_internal.h"

struct layer {
	enum op op;
	const struct attributes *attributes;
	int64_t batch, steps, features, hidden;
	struct hlo x, w, r; /* T*N x I in the order of the steps, gates*H x I, gates*H x H */
};

/* Converts batch x time x features to the order of the steps, time first; batch_first converts
 * back. */
static struct hlo by_time(struct emitter *l, const struct attributes *a, struct hlo x)
{
	x = hlo_transpose(&l->h, x, (const int[]){1, 0, 2});
	return a->reverse ? hlo_reverse(&l->h, x, &(const int){0}, 1) : x;
}

static struct hlo batch_first(struct emitter *l, const struct attributes *a, struct hlo x)
{
	x = a->reverse ? hlo_reverse(&l->h, x, &(const int){0}, 1) : x;
	return hlo_transpose(&l->h, x, (const int[]){1, 0, 2});
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

/* `first` is the number of the input x: a gradient has dy before it. */
static struct layer read_layer(struct emitter *l, const struct node *node, int first)
{
	const struct shape *x = emit_shape(l, node->inputs[first]);

	return (struct layer){
		.op = node->differentiates < 0 ? node->op
					       : l->graph->nodes[node->differentiates].op,
		.attributes = &node->attributes,
		.batch = x->dims[0],
		.steps = x->dims[1],
		.features = x->dims[2],
		.hidden = emit_shape(l, node->inputs[first + 2])->dims[1],
		.x = by_row(l, by_time(l, &node->attributes, emit_input(l, node, first))),
		.w = emit_input(l, node, first + 1),
		.r = emit_input(l, node, first + 2),
	};
}

static struct hlo zeros(struct emitter *l, int rank, int64_t a, int64_t b, int64_t c)
{
	const struct shape shape = {.rank = rank, .dims = {a, b, c}};

	return hlo_number(&l->h, (struct hlo){.type = HLO_F32, .shape = shape}, 0);
}

/* The columns of the gates from `first` on, and the rows of the weights. */
static struct hlo gates(struct emitter *l, const struct layer *layer, struct hlo x, int first,
			int count)
{
	return hlo_slice(&l->h, x, x.shape.rank - 1, first * layer->hidden,
			 (first + count) * layer->hidden, 1);
}

static struct hlo rows(struct emitter *l, const struct layer *layer, struct hlo w, int first,
		       int count)
{
	return hlo_slice(&l->h, w, 0, first * layer->hidden, (first + count) * layer->hidden, 1);
}

/* Multiplies N x A by a matrix in the type of the products; the result is F32. */
static struct hlo product(struct emitter *l, struct hlo a, struct hlo w, int over)
{
	return hlo_dot(&l->h, hlo_convert(&l->h, a, l->compute), 1, w, over, HLO_F32);
}

static struct hlo add(struct emitter *l, struct hlo a, struct hlo b)
{
	return hlo_binary(&l->h, "add", a, b);
}

static struct hlo subtract(struct emitter *l, struct hlo a, struct hlo b)
{
	return hlo_binary(&l->h, "subtract", a, b);
}

static struct hlo multiply(struct emitter *l, struct hlo a, struct hlo b)
{
	return hlo_binary(&l->h, "multiply", a, b);
}

/* The gradients d of a logistic function and of tanh, whose values are y. */
static struct hlo logistic_grad(struct emitter *l, struct hlo d, struct hlo y)
{
	return multiply(l, d, multiply(l, y, subtract(l, hlo_number(&l->h, y, 1), y)));
}

static struct hlo tanh_grad(struct emitter *l, struct hlo d, struct hlo y)
{
	return multiply(l, d, subtract(l, hlo_number(&l->h, y, 1), multiply(l, y, y)));
}

/* Returns w x + b for all steps. */
static struct hlo input_sums(struct emitter *l, const struct node *node, const struct layer *layer)
{
	struct hlo sums = hlo_dot(&l->h, layer->x, 1, layer->w, 1, HLO_F32);
	struct hlo bias = hlo_slice(&l->h, emit_input_f32(l, node, 3), 0, 0, sums.shape.dims[1], 1);

	return by_step(l, layer, add(l, sums, emit_channels(l, bias, &sums.shape)));
}

/*
 * The values carried by the loop; KEPT and STATES only for training, STATES also for every state.
 * What a layer does not need is one number. BIAS: of the recurrent product of a GRU.
 */
enum { SUMS, WEIGHTS, BIAS, STATE, CELL, STATES, GATES, CELLS, CARRIED };

/*
 * Activates the gates of one step (i, o, f, c) into *kept, updates *cell and returns the state.
 */
static struct hlo lstm_step(struct emitter *l, const struct layer *layer, struct hlo a,
			    struct hlo *cell, struct hlo *kept)
{
	const struct hlo parts[2] = {hlo_unary(&l->h, "logistic", gates(l, layer, a, 0, 3)),
				     hlo_unary(&l->h, "tanh", gates(l, layer, a, 3, 1))};

	*kept = hlo_concatenate(&l->h, parts, 2, 1);
	*cell = add(l, multiply(l, gates(l, layer, *kept, 2, 1), *cell),
		    multiply(l, gates(l, layer, *kept, 0, 1), parts[1]));
	return multiply(l, gates(l, layer, *kept, 1, 1), hlo_unary(&l->h, "tanh", *cell));
}

/* The same for a GRU: the gates z, r, h, and the recurrent product of h. */
static struct hlo gru_step(struct emitter *l, const struct layer *layer, const struct hlo *inside,
			   struct hlo sums, struct hlo *kept)
{
	bool linear = layer->attributes->linear_before_reset;
	struct hlo state = inside[STATE], weights = inside[WEIGHTS], both, r, parts[3];

	both = product(l, state, linear ? weights : rows(l, layer, weights, 0, 2), 1);
	parts[0] = hlo_unary(&l->h, "logistic",
			     add(l, gates(l, layer, sums, 0, 2), gates(l, layer, both, 0, 2)));
	r = gates(l, layer, parts[0], 1, 1);
	if (linear)
		parts[2] = add(l, gates(l, layer, both, 2, 1), inside[BIAS]);
	else
		parts[2] = product(l, multiply(l, r, state), rows(l, layer, weights, 2, 1), 1);
	parts[1] = linear ? multiply(l, r, parts[2]) : parts[2];
	parts[1] = hlo_unary(&l->h, "tanh", add(l, gates(l, layer, sums, 2, 1), parts[1]));
	*kept = hlo_concatenate(&l->h, parts, 3, 1);
	return add(l, parts[1],
		   multiply(l, gates(l, layer, parts[0], 0, 1), subtract(l, state, parts[1])));
}

static struct hlo step(struct emitter *l, const struct layer *layer, const struct hlo_loop *loop,
		       struct hlo *cell, struct hlo *kept)
{
	struct hlo a = hlo_entry(&l->h, loop->inside[SUMS], loop->index);

	if (layer->op == OP_GRU)
		return gru_step(l, layer, loop->inside, a, kept);
	a = add(l, product(l, loop->inside[STATE], loop->inside[WEIGHTS], 1), a);
	if (layer->op == OP_LSTM)
		return lstm_step(l, layer, a, cell, kept);
	return layer->attributes->activation ? hlo_unary(&l->h, "tanh", a)
					     : hlo_with(&l->h, "maximum", a, 0);
}

/* Sets the values before the first step. */
static void begin(struct emitter *l, const struct node *node, const struct layer *layer,
		  struct hlo *carried)
{
	const struct shape state = {.rank = 2, .dims = {layer->batch, layer->hidden}};
	bool lstm = layer->op == OP_LSTM, keeps = lstm || layer->op == OP_GRU;

	for (int i = 0; i < CARRIED; i++)
		carried[i] = zeros(l, 1, 1, 0, 0);
	carried[SUMS] = input_sums(l, node, layer);
	carried[WEIGHTS] = layer->r;
	carried[STATE] = zeros(l, 2, layer->batch, layer->hidden, 0);
	if (layer->attributes->linear_before_reset)
		carried[BIAS] =
			emit_channels(l, rows(l, layer, emit_input_f32(l, node, 3), 3, 1), &state);
	if (lstm)
		carried[CELL] = carried[STATE];
	if (l->training || layer->attributes->sequence)
		carried[STATES] = zeros(l, 3, layer->steps + 1, layer->batch, layer->hidden);
	if (l->training && keeps)
		carried[GATES] = zeros(l, 3, layer->steps, layer->batch, 4 * layer->hidden);
	if (l->training && lstm)
		carried[CELLS] = carried[STATES];
}

void emit_recurrent(struct emitter *l, const struct node *node)
{
	const struct layer layer = read_layer(l, node, 0);
	const struct attributes *a = layer.attributes;
	struct hlo_text *h = &l->h;
	struct hlo next[HLO_CARRIED], activated = {0}, behind, y;
	struct hlo_loop loop = {.trips = layer.steps, .count = CARRIED};

	begin(l, node, &layer, loop.carried);
	hlo_loop_begin(h, &loop);
	for (int i = 0; i < loop.count; i++)
		next[i] = loop.inside[i];
	next[STATE] = step(l, &layer, &loop, &next[CELL], &activated);
	behind = hlo_with(h, "add", loop.index, 1);
	if (l->training || a->sequence)
		next[STATES] = hlo_with_entry(h, loop.inside[STATES], next[STATE], behind);
	if (l->training && layer.op != OP_RNN)
		next[GATES] = hlo_with_entry(h, loop.inside[GATES], activated, loop.index);
	if (l->training && layer.op == OP_LSTM)
		next[CELLS] = hlo_with_entry(h, loop.inside[CELLS], next[CELL], behind);
	hlo_loop_end(h, &loop, next);
	l->recurrences[node - l->graph->nodes] =
		(struct recurrence){loop.after[GATES], loop.after[STATES], loop.after[CELLS]};
	y = loop.after[STATE];
	if (a->sequence)
		y = batch_first(l, a, hlo_slice(h, loop.after[STATES], 0, 1, layer.steps + 1, 1));
	emit_output(l, node, 0, y);
}

/* Values carried by the backward loop: DSTATE to DSUMS change, the others are read only. DKEPT: the
 * cells of an LSTM, else the states. */
enum { DSTATE, DCELL, DSUMS, DWEIGHTS, DKEPT, DGATES, DOUT, DCARRIED };

/* Returns the gradient of the sums of one LSTM step; *dcell becomes the gradient of the previous
 * cell. */
static struct hlo lstm_step_grad(struct emitter *l, const struct layer *layer,
				 const struct hlo_loop *loop, struct hlo at, struct hlo dh,
				 struct hlo *dcell)
{
	struct hlo_text *h = &l->h;
	struct hlo kept = hlo_entry(h, loop->inside[DGATES], at);
	struct hlo i = gates(l, layer, kept, 0, 1), o = gates(l, layer, kept, 1, 1);
	struct hlo f = gates(l, layer, kept, 2, 1), g = gates(l, layer, kept, 3, 1);
	struct hlo before = hlo_entry(h, loop->inside[DKEPT], at), squashed, d, parts[4];

	squashed =
		hlo_unary(h, "tanh", hlo_entry(h, loop->inside[DKEPT], hlo_with(h, "add", at, 1)));
	d = add(l, tanh_grad(l, multiply(l, dh, o), squashed), *dcell);
	*dcell = multiply(l, d, f);
	parts[0] = logistic_grad(l, multiply(l, d, g), i);
	parts[1] = logistic_grad(l, multiply(l, dh, squashed), o);
	parts[2] = logistic_grad(l, multiply(l, d, before), f);
	parts[3] = tanh_grad(l, multiply(l, d, i), g);
	return hlo_concatenate(h, parts, 4, 1);
}

/* The same for a GRU: the gradients of its sums and, with linear_before_reset, of its recurrent
 * product; *dstate becomes the gradient of the previous state. */
static struct hlo gru_step_grad(struct emitter *l, const struct layer *layer,
				const struct hlo_loop *loop, struct hlo at, struct hlo dh,
				struct hlo *dstate)
{
	struct hlo_text *h = &l->h;
	struct hlo kept = hlo_entry(h, loop->inside[DGATES], at), w = loop->inside[DWEIGHTS];
	struct hlo z = gates(l, layer, kept, 0, 1), r = gates(l, layer, kept, 1, 1);
	struct hlo c = gates(l, layer, kept, 2, 1), u = gates(l, layer, kept, 3, 1);
	struct hlo before = hlo_entry(h, loop->inside[DKEPT], at), ds, d[4];

	*dstate = multiply(l, dh, z);
	d[0] = logistic_grad(l, multiply(l, dh, subtract(l, before, c)), z);
	d[2] = tanh_grad(l, subtract(l, dh, *dstate), c);
	d[3] = multiply(l, d[2], r);
	if (layer->attributes->linear_before_reset) {
		d[1] = logistic_grad(l, multiply(l, d[2], u), r);
		ds = hlo_concatenate(h, (const struct hlo[]){d[0], d[1], d[3]}, 3, 1);
		*dstate = add(l, *dstate, product(l, ds, w, 0));
		return hlo_concatenate(h, d, 4, 1);
	}
	ds = product(l, d[2], rows(l, layer, w, 2, 1), 0);
	d[1] = logistic_grad(l, multiply(l, ds, before), r);
	*dstate = add(l, *dstate, multiply(l, ds, r));
	ds = hlo_concatenate(h, d, 2, 1);
	*dstate = add(l, *dstate, product(l, ds, rows(l, layer, w, 0, 2), 0));
	return hlo_concatenate(h, d, 3, 1);
}

static struct hlo step_grad(struct emitter *l, const struct layer *layer,
			    const struct hlo_loop *loop, struct hlo at, struct hlo *next)
{
	struct hlo_text *h = &l->h;
	struct hlo dh = loop->inside[DSTATE], da, state;

	if (layer->attributes->sequence)
		dh = add(l, dh, hlo_entry(h, loop->inside[DOUT], at));
	if (layer->op == OP_GRU)
		return gru_step_grad(l, layer, loop, at, dh, &next[DSTATE]);
	if (layer->op == OP_LSTM) {
		da = lstm_step_grad(l, layer, loop, at, dh, &next[DCELL]);
	} else {
		state = hlo_entry(h, loop->inside[DKEPT], hlo_with(h, "add", at, 1));
		da = layer->attributes->activation
			     ? tanh_grad(l, dh, state)
			     : hlo_select(h, hlo_compare(h, "GT", state, hlo_number(h, state, 0)),
					  dh, hlo_number(h, state, 0));
	}
	next[DSTATE] = product(l, da, loop->inside[DWEIGHTS], 0);
	return da;
}

/* Loops from the last step to the first; returns the gradient of the sums of all steps as rows. */
static struct hlo backward_loop(struct emitter *l, const struct node *node,
				const struct layer *layer, const struct recurrence *kept)
{
	struct hlo_text *h = &l->h;
	struct hlo next[HLO_CARRIED], at, da, dy = emit_input_f32(l, node, 0);
	struct hlo none = zeros(l, 1, 1, 0, 0), state = zeros(l, 2, layer->batch, layer->hidden, 0);
	bool sequence = layer->attributes->sequence, lstm = layer->op == OP_LSTM;
	struct hlo_loop loop = {.trips = layer->steps, .count = DCARRIED};

	loop.carried[DSTATE] = sequence ? state : dy;
	loop.carried[DCELL] = lstm ? state : none;
	loop.carried[DSUMS] =
		zeros(l, 3, layer->steps, layer->batch, emit_shape(l, node->inputs[4])->dims[0]);
	loop.carried[DWEIGHTS] = layer->r;
	loop.carried[DKEPT] = lstm ? kept->cells : kept->states;
	loop.carried[DGATES] = kept->gates;
	loop.carried[DOUT] = sequence ? by_time(l, layer->attributes, dy) : none;
	hlo_loop_begin(h, &loop);
	for (int i = 0; i < loop.count; i++)
		next[i] = loop.inside[i];
	at = subtract(l, hlo_number(h, loop.index, (double)layer->steps - 1), loop.index);
	da = step_grad(l, layer, &loop, at, next);
	next[DSUMS] = hlo_with_entry(h, loop.inside[DSUMS], da, at);
	hlo_loop_end(h, &loop, next);
	return by_row(l, loop.after[DSUMS]);
}

/* The gradient of r, with the gradients `da` of the sums (and of a GRU's recurrent product). */
static struct hlo recurrent_weight_grad(struct emitter *l, const struct layer *layer,
					const struct recurrence *kept, struct hlo da)
{
	struct hlo_text *h = &l->h;
	struct hlo before = by_row(l, hlo_slice(h, kept->states, 0, 0, layer->steps, 1)), parts[2];
	struct hlo states = hlo_convert(h, before, l->compute);

	if (layer->op != OP_GRU)
		return hlo_dot(h, da, 0, states, 0, HLO_F32);
	parts[0] = gates(l, layer, da, 0, 2);
	if (layer->attributes->linear_before_reset) {
		parts[1] = gates(l, layer, da, 3, 1);
		da = hlo_concatenate(h, parts, 2, 1);
		return hlo_dot(h, da, 0, states, 0, HLO_F32);
	}
	before = multiply(l, before, by_row(l, gates(l, layer, kept->gates, 1, 1)));
	parts[0] = hlo_dot(h, parts[0], 0, states, 0, HLO_F32);
	parts[1] = hlo_dot(h, gates(l, layer, da, 2, 1), 0, hlo_convert(h, before, l->compute), 0,
			   HLO_F32);
	return hlo_concatenate(h, parts, 2, 0);
}

void emit_recurrent_grad(struct emitter *l, const struct node *node)
{
	const struct layer layer = read_layer(l, node, 1);
	const struct recurrence *kept = &l->recurrences[node->differentiates];
	struct hlo da = backward_loop(l, node, &layer, kept);
	struct hlo all = hlo_convert(&l->h, da, l->compute);
	struct hlo sums = hlo_slice(&l->h, all, 1, 0, layer.w.shape.dims[0], 1);

	if (node->outputs[0] != VALUE_NONE)
		emit_output(l, node, 0,
			    batch_first(l, layer.attributes,
					by_step(l, &layer,
						hlo_dot(&l->h, sums, 1, layer.w, 0, l->compute))));
	emit_output(l, node, 1, hlo_dot(&l->h, sums, 0, layer.x, 0, HLO_F32));
	emit_output(l, node, 2, recurrent_weight_grad(l, &layer, kept, all));
	emit_output(l, node, 3, emit_sum_channels(l, da));
}
