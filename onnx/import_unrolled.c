/* The steps of a recurrent layer as operators of the graph: for layers with an initial state, or
 * whose last cell state is used. */
#include "onnx/import_recurrent_internal.h"

/* A step is up to 16 nodes. */
#define STEPS_MAX 256

/* One direction. */
struct unrolled {
	struct importer *im;
	const struct file_node *node;
	const struct recurrent_layer *l;
	const char *name; /* nodes are NAME.step0, NAME.step1... */
	int count;	  /* of them */
	int given;	  /* w x + b of all times: batch x time x rows */
	int r[2], b[2];	  /* of the recurrent product; a GRU's last gate has its own */
	int state, cell;  /* batch x hidden; VALUE_NONE: zeros */
};

static int append(struct unrolled *u, enum op op, const int *inputs, int count,
		  const struct attributes *attributes)
{
	const char *name = arena_printf(&u->im->arena, "%s.step%d", u->name, u->count++);

	return import_append_named(u->im, u->node, name, op, inputs, count, attributes);
}

static int add(struct unrolled *u, enum op op, int x, int y, const struct attributes *attributes)
{
	const int inputs[] = {x, y};

	if (x == VALUE_NONE || (y == VALUE_NONE && operator_row(op)->min_inputs > 1))
		return VALUE_NONE;
	return append(u, op, inputs, y == VALUE_NONE ? 1 : 2, attributes);
}

static int slice(struct unrolled *u, int x, int axis, int64_t start, int64_t count)
{
	struct attributes a;

	operator_default_attributes(OP_SLICE, &a);
	a.axis = axis;
	a.start = start;
	a.end = start + count;
	return add(u, OP_SLICE, x, VALUE_NONE, &a);
}

static int reshape(struct unrolled *u, int x, int rank, int64_t second, int64_t third)
{
	struct attributes a;

	operator_default_attributes(OP_RESHAPE, &a);
	a.ints = (struct int_list){.items = {u->l->batch, second, third}, .count = rank};
	return add(u, OP_RESHAPE, x, VALUE_NONE, &a);
}

/* Gate `first` and those behind it, of sums for all gates. */
static int gates(struct unrolled *u, int sums, int64_t first, int64_t count)
{
	return slice(u, sums, 1, first * u->l->hidden, count * u->l->hidden);
}

/* The recurrent product of a state that is not zero. */
static int product(struct unrolled *u, int which, int state)
{
	struct attributes a;
	int inputs[] = {state, u->r[which], u->b[which]};

	if (state == VALUE_NONE)
		return VALUE_NONE;
	operator_default_attributes(OP_GEMM, &a);
	a.trans_b = true;
	return append(u, OP_GEMM, inputs, u->b[which] == VALUE_NONE ? 2 : 3, &a);
}

/* Gates i, o, f, c. */
static void lstm_step(struct unrolled *u, int sums)
{
	int three = add(u, OP_SIGMOID, gates(u, sums, 0, 3), VALUE_NONE, NULL);
	int fresh = add(u, OP_TANH, gates(u, sums, 3, 1), VALUE_NONE, NULL);

	fresh = add(u, OP_MUL, gates(u, three, 0, 1), fresh, NULL);
	u->cell = u->cell == VALUE_NONE
			  ? fresh
			  : add(u, OP_ADD, add(u, OP_MUL, gates(u, three, 2, 1), u->cell, NULL),
				fresh, NULL);
	u->state = add(u, OP_MUL, gates(u, three, 1, 1), add(u, OP_TANH, u->cell, VALUE_NONE, NULL),
		       NULL);
}

/* Gates z, r, h. The new state is c + z (h - c). */
static void gru_step(struct unrolled *u, int given)
{
	int two = add(u, OP_SIGMOID,
		      add(u, OP_ADD, gates(u, given, 0, 2), product(u, 0, u->state), NULL),
		      VALUE_NONE, NULL);
	int reset = gates(u, two, 1, 1), candidate;

	if (u->l->linear)
		candidate = add(u, OP_MUL, reset, product(u, 1, u->state), NULL);
	else
		candidate = product(u, 1, add(u, OP_MUL, reset, u->state, NULL));
	candidate = add(u, OP_TANH, add(u, OP_ADD, gates(u, given, 2, 1), candidate, NULL),
			VALUE_NONE, NULL);
	u->state = add(u, OP_ADD, candidate,
		       add(u, OP_MUL, gates(u, two, 0, 1),
			   add(u, OP_SUB, u->state, candidate, NULL), NULL),
		       NULL);
}

static void step(struct unrolled *u, int64_t time)
{
	const struct recurrent_layer *l = u->l;
	int sums = reshape(u, slice(u, u->given, 1, time, 1), 2, l->rows, 0);

	if (l->op == OP_GRU) {
		gru_step(u, sums);
		return;
	}
	if (u->state != VALUE_NONE)
		sums = add(u, OP_ADD, sums, product(u, 0, u->state), NULL);
	if (l->op == OP_LSTM)
		lstm_step(u, sums);
	else
		u->state = add(u, l->activation ? OP_TANH : OP_RELU, sums, VALUE_NONE, NULL);
}

/* The initial state of a direction, input 5 or 6: batch x hidden. */
static int first_state(struct unrolled *u, int direction, size_t input)
{
	const struct recurrent_layer *l = u->l;
	struct onnx_range range = {
		.axis = l->batch_first, .start = direction, .step = 1, .count = 1};
	struct shape shape = {.rank = 2, .dims = {l->batch, l->hidden}};
	struct attributes a = {.ints = {.items = {l->batch, l->hidden}, .count = 2}};
	int x = import_operand(u->im, u->node, input);
	const struct shape *has = x == VALUE_NONE ? NULL : import_shape(u->im, x);

	if (has == NULL)
		return VALUE_NONE;
	if (has->rank != 3 || has->dims[l->batch_first] != l->directions ||
	    has->dims[2] != l->hidden) {
		import_refuse(u->im, u->node,
			      "input %zu, an initial state, must have three dimensions, with %d "
			      "directions and %lld hidden units",
			      input, l->directions, (long long)l->hidden);
		return VALUE_NONE;
	}
	/* A learned state, the same for each sample. */
	if (shape_elements(has) == l->directions * l->hidden)
		shape.dims[0] = 1;
	x = import_range(u->im, u->node, x, &range);
	if (x != VALUE_NONE)
		x = import_reshaped(u->im, u->node, x, &shape);
	return x != VALUE_NONE && shape.dims[0] != l->batch
		       ? import_append(u->im, u->node, OP_EXPAND, &x, 1, &a)
		       : x;
}

/* Appends w x + b of all times, and the parameters of the recurrent product. */
static bool prepare(struct unrolled *u, int direction)
{
	const struct recurrent_layer *l = u->l;
	bool gru = l->op == OP_GRU;
	int64_t own = gru ? 2 * l->hidden : l->rows; /* rows of the first recurrent product */
	int64_t r = direction * l->rows * l->hidden, b = (2 * direction + 1) * l->rows;
	const struct shape rows = {.rank = 2, .dims = {l->batch * l->steps, l->features}};
	const struct shape sums = {.rank = 3, .dims = {l->batch, l->steps, l->rows}};
	struct attributes a;
	int inputs[3] = {import_reshaped(u->im, u->node, l->x, &rows)}, count = 2;

	operator_default_attributes(OP_GEMM, &a);
	a.trans_b = true;
	inputs[1] = import_part(u->im, u->node, l->w, direction * l->rows * l->features, 2, l->rows,
				l->features, "weight");
	u->r[0] = import_part(u->im, u->node, l->r, r, 2, own, l->hidden, "recurrent");
	u->r[1] = u->b[0] = u->b[1] = VALUE_NONE;
	if (gru)
		u->r[1] = import_part(u->im, u->node, l->r, r + own * l->hidden, 2, l->hidden,
				      l->hidden, "recurrent.h");
	if (gru && l->b) {
		u->b[0] = import_part(u->im, u->node, l->b, b, 1, own, 0, "recurrent.bias");
		u->b[1] = import_part(u->im, u->node, l->b, b + own, 1, l->hidden, 0,
				      "recurrent.bias.h");
		inputs[count++] =
			import_part(u->im, u->node, l->b, b - l->rows, 1, l->rows, 0, "bias");
	} else if (l->b) {
		inputs[count++] = import_bias(u->im, u->node, l, direction);
	}
	for (int i = 0; i < count; i++)
		if (inputs[i] == VALUE_NONE)
			return false;
	if (u->r[0] == VALUE_NONE || (gru && u->r[1] == VALUE_NONE) ||
	    (gru && l->b && (u->b[0] == VALUE_NONE || u->b[1] == VALUE_NONE)))
		return false;
	u->given = import_append(u->im, u->node, OP_GEMM, inputs, count, &a);
	if (u->given == VALUE_NONE)
		return false;
	u->name = u->im->builder.graph->values[u->given].name;
	u->given = import_reshaped(u->im, u->node, u->given, &sums);
	return u->given != VALUE_NONE;
}

/* The states in `places` (batch x hidden) as batch x time x hidden. */
static int join(struct unrolled *u, int *places)
{
	int inputs[NODE_MAX_INPUTS], count = 0;
	struct attributes a;

	operator_default_attributes(OP_CONCAT, &a);
	a.axis = 1;
	for (int64_t t = 0; t < u->l->steps; t++) {
		if (count == NODE_MAX_INPUTS) {
			inputs[0] = append(u, OP_CONCAT, inputs, count, &a);
			count = 1;
		}
		inputs[count] = reshape(u, places[t], 3, 1, u->l->hidden);
		if (inputs[count++] == VALUE_NONE || inputs[0] == VALUE_NONE)
			return VALUE_NONE;
	}
	return count == 1 ? inputs[0] : append(u, OP_CONCAT, inputs, count, &a);
}

int import_unrolled(struct importer *im, const struct file_node *node,
		    const struct recurrent_layer *l, int direction, int *last, int *cell)
{
	bool reverse = l->reverse || direction == 1;
	struct unrolled u = {
		.im = im, .node = node, .l = l, .state = VALUE_NONE, .cell = VALUE_NONE};
	int places[STEPS_MAX];

	if (l->steps > STEPS_MAX) {
		import_refuse(im, node,
			      "with an initial state, or a last cell state that is used, at most "
			      "%d steps are supported, but its sequence has %lld; give a shorter "
			      "one with --shape, or export it without",
			      STEPS_MAX, (long long)l->steps);
		return VALUE_NONE;
	}
	if (!prepare(&u, direction) ||
	    (l->first[0] && (u.state = first_state(&u, direction, 5)) == VALUE_NONE) ||
	    (l->first[1] && (u.cell = first_state(&u, direction, 6)) == VALUE_NONE))
		return VALUE_NONE;
	for (int64_t t = 0; t < l->steps; t++) {
		int64_t place = reverse ? l->steps - 1 - t : t;

		step(&u, place);
		if (u.state == VALUE_NONE)
			return VALUE_NONE;
		places[place] = u.state;
	}
	*last = u.state;
	*cell = u.cell;
	return l->all ? join(&u, places) : VALUE_NONE;
}
