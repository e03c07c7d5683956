/* LSTM, GRU, RNN and their gradients. */
#include "graph/operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/operators/vector_f64_internal.h"

#define RELU 0

static const char *const activations[] = {"Relu", "Tanh", NULL};
static const char *const directions[] = {"forward", "reverse", NULL};

#define SEQUENCE                                                                                   \
	{                                                                                          \
		ATTRIBUTE("sequence", BOOL, sequence, false)                                       \
	}
#define DIRECTION                                                                                  \
	{                                                                                          \
		ATTRIBUTE("direction", WORD, reverse, 0), .words = directions                      \
	}

static const struct attribute_row lstm_attributes[] = {SEQUENCE, DIRECTION, {.name = NULL}};
static const struct attribute_row rnn_attributes[] = {
	SEQUENCE,
	DIRECTION,
	{ATTRIBUTE("activation", WORD, activation, RELU), .words = activations},
	{.name = NULL},
};
static const struct attribute_row gru_attributes[] = {
	SEQUENCE,
	DIRECTION,
	{ATTRIBUTE("linear_before_reset", BOOL, linear_before_reset, false)},
	{.name = NULL},
};

static int64_t gates_of(enum op op)
{
	return op == OP_LSTM ? 4 : op == OP_GRU ? 3 : 1;
}

/* x: batch x time x features; w: gates*H x features; r: gates*H x H; b: gates*H, or 4*H of a GRU
 * with linear_before_reset -> batch x H, or batch x time x H */
static enum prony_status recurrent_infer(struct graph *graph, struct node *node, struct error *err)
{
	static const int ranks[] = {3, 2, 2, 1};
	const struct attributes *a = &node->attributes;
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *r = node_input_shape(graph, node, 2);
	struct shape y;
	int64_t rows, biases;

	for (int i = 0; i < 4; i++) {
		enum prony_status status = node_need_rank(graph, node, i, ranks[i], err);

		if (status != PRONY_OK)
			return status;
	}
	y.rank = a->sequence ? 3 : 2;
	y.dims[0] = x->dims[0];
	y.dims[1] = x->dims[1];
	y.dims[y.rank - 1] = r->dims[1];
	rows = saturating_multiply(gates_of(node->op), r->dims[1]);
	biases = a->linear_before_reset ? saturating_add(rows, r->dims[1]) : rows;
	if (r->dims[0] != rows || node_input_shape(graph, node, 1)->dims[0] != rows ||
	    node_input_shape(graph, node, 3)->dims[0] != biases)
		return node_error(node, err,
				  "w and r must have %lld rows and b %lld for %lld hidden units",
				  (long long)rows, (long long)biases, (long long)r->dims[1]);
	if (node_input_shape(graph, node, 1)->dims[1] != x->dims[2])
		return node_error(node, err, "w is for %lld features, but the input has %lld",
				  (long long)node_input_shape(graph, node, 1)->dims[1],
				  (long long)x->dims[2]);
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static int64_t recurrent_macs(const struct graph *graph, const struct node *node)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	int64_t steps = saturating_multiply(x->dims[0], x->dims[1]);

	return saturating_multiply(
		steps, saturating_add(shape_elements(node_input_shape(graph, node, 1)),
				      shape_elements(node_input_shape(graph, node, 2))));
}

/* Twice the macs of the forward pass; less if the gradient of x is not needed. */
static int64_t recurrent_grad_macs(const struct graph *graph, const struct node *node)
{
	const struct node *forward = &graph->nodes[node->differentiates];

	return saturating_multiply(2, recurrent_macs(graph, forward));
}

/* Sums for an element: those of all steps lead to the last state. */
static int64_t recurrent_terms(const struct graph *graph, const struct node *node, int output)
{
	(void)output;
	return recurrent_macs(graph, node) / (node_input_shape(graph, node, 0)->dims[0] *
					      node_input_shape(graph, node, 2)->dims[1]);
}

static enum prony_status recurrent_backward(struct graph *graph, const struct node *node,
					    struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1],
			      node->inputs[2], node->inputs[3]};

	return backward_node(graph, node, operator_row(node->op)->gradient, inputs, 5, 0, 4, err);
}

/* Shared by all recurrent layers: the sums of each step a = b + w x + r h, a cell that computes the
 * next h from them, and backpropagation through time. The layers differ in the cell only. */
struct recurrent {
	enum op op; /* of the forward node */
	const struct attributes *attributes;
	int64_t batch, steps, features, hidden;
	int64_t rows;  /* of w and r */
	int64_t width; /* numbers kept of a sample in `sums` */
	const double *x, *w, *r, *b;
	double *sums;	/* steps x batch x width: the sums, later the cell's activations */
	double *states; /* steps+1 x batch x hidden: h; starts with 0 */
	double *cells;	/* the same for c of LSTM */
	double *dw, *dr, *db, *dx;
	const struct kernel_call *call;
};

/* Sets up from the inputs x, w, r, b, which start at input `first`. */
static struct recurrent recurrent_init(const struct kernel_call *call, int first)
{
	const struct node *node = call->node;
	enum op op = node->op == OP_LSTM_GRAD  ? OP_LSTM
		     : node->op == OP_GRU_GRAD ? OP_GRU
		     : node->op == OP_RNN_GRAD ? OP_RNN
					       : node->op;
	const struct shape *x = kernel_input_shape(call, first);
	int64_t hidden = kernel_input_shape(call, first + 2)->dims[1];
	struct recurrent l = {
		.call = call,
		.op = op,
		.attributes = &node->attributes,
		.batch = x->dims[0],
		.steps = x->dims[1],
		.features = x->dims[2],
		.hidden = hidden,
		.rows = gates_of(op) * hidden,
		.width = (op == OP_GRU ? 4 : gates_of(op)) * hidden,
		.x = kernel_input(call, first),
		.w = kernel_input(call, first + 1),
		.r = kernel_input(call, first + 2),
		.b = kernel_input(call, first + 3),
	};
	size_t states = (size_t)((l.steps + 1) * l.batch * l.hidden);

	l.sums = memory_alloc((size_t)(l.steps * l.batch * l.width) * sizeof(double));
	l.states = memory_alloc(states * sizeof(double));
	l.cells = memory_alloc(states * sizeof(double));
	memset(l.states, 0, (size_t)(l.batch * l.hidden) * sizeof(double));
	memset(l.cells, 0, (size_t)(l.batch * l.hidden) * sizeof(double));
	return l;
}

static void recurrent_release(struct recurrent *l)
{
	free(l->sums);
	free(l->states);
	free(l->cells);
}

/* The place of a step in time. */
static int64_t time_of(const struct recurrent *l, int64_t step)
{
	return l->attributes->reverse ? l->steps - 1 - step : step;
}

/* a: ONNX's gates i, o, f, c; they are replaced by their activations. */
static void lstm_cell(double *a, const double *c_before, double *c, double *h, int64_t hidden)
{
	for (int64_t k = 0; k < hidden; k++) {
		for (int gate = 0; gate < 3; gate++)
			a[gate * hidden + k] = 1 / (1 + exp(-a[gate * hidden + k]));
		a[3 * hidden + k] = tanh(a[3 * hidden + k]);
		c[k] = a[2 * hidden + k] * c_before[k] + a[k] * a[3 * hidden + k];
		h[k] = a[hidden + k] * tanh(c[k]);
	}
}

static void rnn_cell(double *a, double *h, int64_t hidden, bool relu)
{
	for (int64_t k = 0; k < hidden; k++)
		h[k] = !relu ? (a[k] = tanh(a[k])) : a[k] < 0 ? 0 : a[k];
}

/* a: ONNX's gates z, r, h, and the products of h's recurrent weights, with which a[2] has not been
 * added up yet. They are replaced by their activations, but the products. */
static void gru_cell(const struct recurrent *l, double *a, const double *before, double *h)
{
	int64_t hidden = l->hidden;
	bool linear = l->attributes->linear_before_reset;
	double *z = a, *r = a + hidden, *c = r + hidden, *u = c + hidden;
	const double *weights = l->r + 2 * hidden * hidden;

	for (int64_t k = 0; k < 2 * hidden; k++)
		a[k] = 1 / (1 + exp(-a[k]));
	for (int64_t k = 0; k < hidden; k++) {
		u[k] = linear ? l->b[3 * hidden + k] : 0;
		for (int64_t j = 0; j < hidden; j++)
			u[k] += weights[k * hidden + j] * before[j] * (linear ? 1 : r[j]);
		c[k] = tanh(c[k] + u[k] * (linear ? r[k] : 1));
		h[k] = (1 - z[k]) * c[k] + z[k] * before[k];
	}
}

static void forward(struct recurrent *l)
{
	int64_t plane = l->batch * l->hidden;
	/* The last gate of a GRU depends on another one. */
	int64_t at_once = l->op == OP_GRU ? 2 * l->hidden : l->rows;

	for (int64_t t = 0; t < l->steps; t++) {
		for (int64_t n = 0; n < l->batch; n++) {
			const double *x = l->x + (n * l->steps + time_of(l, t)) * l->features;
			int64_t at = t * plane + n * l->hidden;
			double *a = l->sums + (t * l->batch + n) * l->width;
			const double *before = l->states + at;
			double *h = l->states + at + plane;

			for (int64_t g = 0; g < l->rows; g++)
				a[g] = l->b[g] + dot(l->w + g * l->features, x, l->features);
			for (int64_t g = 0; g < at_once; g++)
				a[g] += dot(l->r + g * l->hidden, before, l->hidden);
			if (l->op == OP_LSTM)
				lstm_cell(a, l->cells + at, l->cells + at + plane, h, l->hidden);
			else if (l->op == OP_GRU)
				gru_cell(l, a, before, h);
			else
				rnn_cell(a, h, l->hidden, l->attributes->activation == RELU);
		}
	}
}

/*
 * For one step and sample: turns dh and dc into da (in place of a) and the dc of the previous step.
 */
static void lstm_cell_grad(double *a, const double *c_before, const double *c, const double *dh,
			   double *dc, int64_t hidden)
{
	for (int64_t k = 0; k < hidden; k++) {
		double *i = a + k, *o = i + hidden, *f = o + hidden, *g = f + hidden;
		double squashed = tanh(c[k]);
		double d = dc[k] + dh[k] * *o * (1 - squashed * squashed);
		double di = d * *g, df = d * c_before[k], dg = d * *i;

		dc[k] = d * *f;
		*o = dh[k] * squashed * *o * (1 - *o);
		*i = di * *i * (1 - *i);
		*f = df * *f * (1 - *f);
		*g = dg * (1 - *g * *g);
	}
}

/* As for ReLU (elementwise.c); `close` is 0 without hooks. */
static void relu_cell_grad(double *a, const double *dh, int64_t hidden, double close,
			   const struct kernel_call *call)
{
	for (int64_t k = 0; k < hidden; k++) {
		bool passes = a[k] > 0;

		if (a[k] != 0 && fabs(a[k]) < close)
			passes ^= call->hooks->turn(call);
		a[k] = passes ? dh[k] : 0;
	}
}

/* Given da of all rows, adds its share to the gradients of x, w and b. */
static void spread_input(struct recurrent *l, const double *da, int64_t sample, int64_t step)
{
	int64_t at = (sample * l->steps + time_of(l, step)) * l->features;

	for (int64_t g = 0; g < l->rows; g++) {
		if (da[g] == 0)
			continue;
		if (l->dw)
			add_scaled(l->dw + g * l->features, l->x + at, da[g], l->features);
		if (l->db)
			l->db[g] += da[g];
		if (l->dx)
			add_scaled(l->dx + at, l->w + g * l->features, da[g], l->features);
	}
}

/* Given da of `rows` rows from `first` on, adds its share to the gradients of r and of the state
 * that r was multiplied with. */
static void spread_state(struct recurrent *l, const double *da, int64_t first, int64_t rows,
			 const double *state, double *dstate)
{
	for (int64_t g = first; g < first + rows; g++, da++) {
		if (*da == 0)
			continue;
		add_scaled(dstate, l->r + g * l->hidden, *da, l->hidden);
		if (l->dr)
			add_scaled(l->dr + g * l->hidden, state, *da, l->hidden);
	}
}

/* For one step and sample: turns dh into da (in place of a) and the dh of the previous step, and
 * adds the share of r. `room`: 2 * hidden numbers. */
static void gru_cell_grad(struct recurrent *l, double *a, const double *before, double *dh,
			  double *room)
{
	int64_t hidden = l->hidden;
	bool linear = l->attributes->linear_before_reset;
	double *z = a, *r = a + hidden, *c = r + hidden, *u = c + hidden;
	double *state = room, *dstate = room + hidden;

	for (int64_t k = 0; k < hidden; k++) {
		double dz = dh[k] * (before[k] - c[k]), dc = dh[k] * (1 - z[k]);

		c[k] = dc * (1 - c[k] * c[k]);
		dh[k] *= z[k];
		z[k] = dz * z[k] * (1 - z[k]);
		dstate[k] = 0;
		state[k] = before[k] * (linear ? 1 : r[k]);
		/* u: its own gradient is c's times r, that of r is c's times u. */
		u[k] *= c[k];
	}
	for (int64_t k = 0; linear && k < hidden; k++) {
		double du = c[k] * r[k];

		spread_state(l, &du, 2 * hidden + k, 1, state, dstate);
		if (l->db)
			l->db[3 * hidden + k] += du;
	}
	if (!linear)
		spread_state(l, c, 2 * hidden, hidden, state, dstate);
	for (int64_t k = 0; k < hidden; k++) {
		double dr = linear ? u[k] : dstate[k] * before[k];

		dh[k] += dstate[k] * (linear ? 1 : r[k]);
		r[k] = dr * r[k] * (1 - r[k]);
	}
	spread_state(l, a, 0, 2 * hidden, before, dh);
}

/* For one step and sample: turns dh and dc into those of the previous step. */
static void step_grad(struct recurrent *l, int64_t n, int64_t t, double close, double *dh,
		      double *dc, double *room)
{
	int64_t plane = l->batch * l->hidden, at = t * plane + n * l->hidden;
	double *a = l->sums + (t * l->batch + n) * l->width;
	const double *before = l->states + at;

	if (l->op == OP_GRU) {
		gru_cell_grad(l, a, before, dh, room);
	} else {
		if (l->op == OP_LSTM)
			lstm_cell_grad(a, l->cells + at, l->cells + at + plane, dh, dc, l->hidden);
		else if (l->attributes->activation == RELU)
			relu_cell_grad(a, dh, l->hidden, close, l->call);
		else
			for (int64_t k = 0; k < l->hidden; k++)
				a[k] = dh[k] * (1 - a[k] * a[k]);
		memset(dh, 0, (size_t)l->hidden * sizeof(*dh));
		spread_state(l, a, 0, l->rows, before, dh);
	}
	spread_input(l, a, n, t);
}

/* dy: batch x hidden, of the last state; or batch x steps x hidden */
static void backward(struct recurrent *l, const double *dy)
{
	int64_t plane = l->batch * l->hidden;
	bool relu = l->op == OP_RNN && l->attributes->activation == RELU;
	double *dh = memory_alloc((size_t)(2 * plane + 2 * l->hidden) * sizeof(*dh));
	double *dc = dh + plane;

	memset(dh, 0, (size_t)(2 * plane) * sizeof(*dh));
	if (!l->attributes->sequence)
		memcpy(dh, dy, (size_t)plane * sizeof(*dh));
	for (int64_t t = l->steps - 1; t >= 0; t--) {
		double close = 0;

		if (relu && l->call->hooks)
			close = l->call->close *
				kernel_rms(l->sums + t * l->batch * l->width, l->batch * l->width);
		for (int64_t n = 0; n < l->batch; n++) {
			double *row = dh + n * l->hidden;

			if (l->attributes->sequence)
				add_scaled(row, dy + (n * l->steps + time_of(l, t)) * l->hidden, 1,
					   l->hidden);
			step_grad(l, n, t, close, row, dc + n * l->hidden, dc + plane);
		}
	}
	free(dh);
}

static void recurrent_compute(const struct kernel_call *call)
{
	struct recurrent l = recurrent_init(call, 0);
	int64_t first = l.attributes->sequence ? 0 : l.steps - 1;
	int64_t places = l.steps - first;

	forward(&l);
	for (int64_t t = first; t < l.steps; t++) {
		int64_t place = l.attributes->sequence ? time_of(&l, t) : 0;

		for (int64_t n = 0; n < l.batch; n++)
			memcpy(kernel_output(call, 0) + (n * places + place) * l.hidden,
			       l.states + ((t + 1) * l.batch + n) * l.hidden,
			       (size_t)l.hidden * sizeof(double));
	}
	recurrent_release(&l);
}

static void recurrent_grad_compute(const struct kernel_call *call)
{
	struct recurrent l = recurrent_init(call, 1);

	for (int i = 0; i < 4; i++)
		if (kernel_output(call, i))
			memset(kernel_output(call, i), 0,
			       (size_t)kernel_output_count(call, i) * sizeof(double));
	l.dx = kernel_output(call, 0);
	l.dw = kernel_output(call, 1);
	l.dr = kernel_output(call, 2);
	l.db = kernel_output(call, 3);
	forward(&l);
	backward(&l, kernel_input(call, 0));
	recurrent_release(&l);
}

/* Bytes kept for every step: h, c of an LSTM, and its gates unless they are computed again. */
static int64_t recurrent_kept(const struct graph *graph, const struct node *node, bool all)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *r = node_input_shape(graph, node, 2);
	int64_t numbers =
		saturating_add(all ? r->dims[0] : 0, (node->op == OP_LSTM ? 2 : 1) * r->dims[1]);

	numbers = saturating_multiply(saturating_multiply(x->dims[0], x->dims[1]), numbers);
	return saturating_multiply(numbers, (int64_t)dtype_bytes(DTYPE_F32));
}

#define RECURRENT(name, table)                                                                     \
	const struct operator_row row_##name = {                                                   \
		ARITY(4, 4, 1),                                                                    \
		.attributes = (table),                                                             \
		.infer = recurrent_infer,                                                          \
		.macs = recurrent_macs,                                                            \
		.terms = recurrent_terms,                                                          \
		.gradient = OP_##name##_GRAD,                                                      \
		.backward = recurrent_backward,                                                    \
		.compute = recurrent_compute,                                                      \
		.samples = samples_first,                                                          \
		.kept_bytes = recurrent_kept,                                                      \
		.onnx_export = ONNX_EXPORT_RECURRENT,                                              \
	};                                                                                         \
	const struct operator_row row_##name##_GRAD = {                                            \
		GRADIENT(5, 4, table),                                                             \
		.leaves_out = true,                                                                \
		.macs = recurrent_grad_macs,                                                       \
		.compute = recurrent_grad_compute,                                                 \
	};

RECURRENT(LSTM, lstm_attributes)
RECURRENT(RNN, rnn_attributes)
RECURRENT(GRU, gru_attributes)
