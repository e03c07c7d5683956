/* LSTM, RNN and their gradients. */
#include "graph/operators/operator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/operators/vector_f64_internal.h"

/* x: batch x time x features; w: gates*H x features; r: gates*H x H; b: gates*H -> batch x H */
static enum prony_status recurrent_infer(struct graph *graph, struct node *node, int64_t gates,
					 struct error *err)
{
	static const int ranks[] = {3, 2, 2, 1};
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *r = node_input_shape(graph, node, 2);
	struct shape y = {.rank = 2};
	int64_t rows;

	for (int i = 0; i < 4; i++) {
		enum prony_status status = node_need_rank(graph, node, i, ranks[i], err);

		if (status != PRONY_OK)
			return status;
	}
	y.dims[0] = x->dims[0];
	y.dims[1] = r->dims[1];
	rows = saturating_multiply(gates, r->dims[1]);
	if (r->dims[0] != rows || node_input_shape(graph, node, 1)->dims[0] != rows ||
	    node_input_shape(graph, node, 3)->dims[0] != rows)
		return node_error(node, err, "w, r and b must have %lld rows for %lld hidden units",
				  (long long)rows, (long long)r->dims[1]);
	if (node_input_shape(graph, node, 1)->dims[1] != x->dims[2])
		return node_error(node, err, "w is for %lld features, but the input has %lld",
				  (long long)node_input_shape(graph, node, 1)->dims[1],
				  (long long)x->dims[2]);
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

static enum prony_status lstm_infer(struct graph *graph, struct node *node, struct error *err)
{
	return recurrent_infer(graph, node, 4, err);
}

static enum prony_status rnn_infer(struct graph *graph, struct node *node, struct error *err)
{
	return recurrent_infer(graph, node, 1, err);
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

static enum prony_status recurrent_backward(struct graph *graph, const struct node *node,
					    enum op op, struct error *err)
{
	const int inputs[] = {backward_gradient(graph, node), node->inputs[0], node->inputs[1],
			      node->inputs[2], node->inputs[3]};

	return backward_node(graph, node, op, inputs, 5, 0, 4, err);
}

static enum prony_status lstm_backward(struct graph *graph, const struct node *node,
				       struct error *err)
{
	return recurrent_backward(graph, node, OP_LSTM_GRAD, err);
}

static enum prony_status rnn_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	return recurrent_backward(graph, node, OP_RNN_GRAD, err);
}

/* Shared by both recurrent layers: the sums of each step a = b + w x + r h, a cell that computes
 * the next h from them, and backpropagation through time. The layers differ in the cell only. */
struct recurrent {
	int64_t batch, steps, features, hidden, gates;
	const double *x, *w, *r, *b;
	double *sums;	/* steps x batch x gates*hidden: the sums, later the cell's activations */
	double *states; /* steps+1 x batch x hidden: h; starts with 0 */
	double *cells;	/* the same for c of LSTM */
	double *dw, *dr, *db, *dx;
	const struct kernel_call *call;
};

/* Sets up from the inputs x, w, r, b, which start at input `first`. */
static struct recurrent recurrent_init(const struct kernel_call *call, int first, int64_t gates)
{
	const struct shape *x = kernel_input_shape(call, first);
	struct recurrent l = {
		.call = call,
		.batch = x->dims[0],
		.steps = x->dims[1],
		.features = x->dims[2],
		.hidden = kernel_input_shape(call, first + 2)->dims[1],
		.gates = gates,
		.x = kernel_input(call, first),
		.w = kernel_input(call, first + 1),
		.r = kernel_input(call, first + 2),
		.b = kernel_input(call, first + 3),
	};
	size_t states = (size_t)((l.steps + 1) * l.batch * l.hidden);

	l.sums = memory_alloc((size_t)(l.steps * l.batch * gates * l.hidden) * sizeof(double));
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

static void relu_cell(double *a, double *h, int64_t hidden)
{
	for (int64_t k = 0; k < hidden; k++)
		h[k] = a[k] < 0 ? 0 : a[k];
}

static void forward(struct recurrent *l)
{
	int64_t width = l->gates * l->hidden, plane = l->batch * l->hidden;

	for (int64_t t = 0; t < l->steps; t++) {
		for (int64_t n = 0; n < l->batch; n++) {
			const double *x = l->x + (n * l->steps + t) * l->features;
			int64_t at = t * plane + n * l->hidden;
			double *a = l->sums + (t * l->batch + n) * width;

			for (int64_t g = 0; g < width; g++)
				a[g] = l->b[g] + dot(l->w + g * l->features, x, l->features) +
				       dot(l->r + g * l->hidden, l->states + at, l->hidden);
			if (l->gates == 4)
				lstm_cell(a, l->cells + at, l->cells + at + plane,
					  l->states + at + plane, l->hidden);
			else
				relu_cell(a, l->states + at + plane, l->hidden);
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

/* Given da, adds its share to all gradients, and computes dh of the previous step. */
static void spread(struct recurrent *l, const double *da, int64_t sample, int64_t step,
		   const double *h_before, double *dh)
{
	int64_t at = (sample * l->steps + step) * l->features;

	memset(dh, 0, (size_t)l->hidden * sizeof(*dh));
	for (int64_t g = 0; g < l->gates * l->hidden; g++) {
		if (da[g] == 0)
			continue;
		add_scaled(dh, l->r + g * l->hidden, da[g], l->hidden);
		if (l->dw)
			add_scaled(l->dw + g * l->features, l->x + at, da[g], l->features);
		if (l->dr)
			add_scaled(l->dr + g * l->hidden, h_before, da[g], l->hidden);
		if (l->db)
			l->db[g] += da[g];
		if (l->dx)
			add_scaled(l->dx + at, l->w + g * l->features, da[g], l->features);
	}
}

/* dh: batch x hidden, for the last state; it is overwritten. */
static void backward(struct recurrent *l, double *dh)
{
	int64_t width = l->gates * l->hidden, plane = l->batch * l->hidden;
	double *dc = memory_alloc((size_t)plane * sizeof(*dc));

	memset(dc, 0, (size_t)plane * sizeof(*dc));
	for (int64_t t = l->steps - 1; t >= 0; t--) {
		double close = 0;

		if (l->call->hooks)
			close = l->call->close *
				kernel_rms(l->sums + t * l->batch * width, l->batch * width);
		for (int64_t n = 0; n < l->batch; n++) {
			int64_t row = n * l->hidden, at = t * plane + row;
			double *a = l->sums + (t * l->batch + n) * width;

			if (l->gates == 4)
				lstm_cell_grad(a, l->cells + at, l->cells + at + plane, dh + row,
					       dc + row, l->hidden);
			else
				relu_cell_grad(a, dh + row, l->hidden, close, l->call);
			spread(l, a, n, t, l->states + at, dh + row);
		}
	}
	free(dc);
}

static void run_forward(const struct kernel_call *call, int64_t gates)
{
	struct recurrent l = recurrent_init(call, 0, gates);
	int64_t plane = l.batch * l.hidden;

	forward(&l);
	memcpy(kernel_output(call, 0), l.states + l.steps * plane, (size_t)plane * sizeof(double));
	recurrent_release(&l);
}

static void run_backward(const struct kernel_call *call, int64_t gates)
{
	struct recurrent l = recurrent_init(call, 1, gates);
	size_t bytes = (size_t)(l.batch * l.hidden) * sizeof(double);
	double *dh = memory_alloc(bytes);

	for (int i = 0; i < 4; i++)
		if (kernel_output(call, i))
			memset(kernel_output(call, i), 0,
			       (size_t)kernel_output_count(call, i) * sizeof(double));
	l.dx = kernel_output(call, 0);
	l.dw = kernel_output(call, 1);
	l.dr = kernel_output(call, 2);
	l.db = kernel_output(call, 3);
	memcpy(dh, kernel_input(call, 0), bytes);
	forward(&l);
	backward(&l, dh);
	free(dh);
	recurrent_release(&l);
}

static void lstm_compute(const struct kernel_call *call)
{
	run_forward(call, 4);
}

static void lstm_grad_compute(const struct kernel_call *call)
{
	run_backward(call, 4);
}

static void rnn_compute(const struct kernel_call *call)
{
	run_forward(call, 1);
}

static void rnn_grad_compute(const struct kernel_call *call)
{
	run_backward(call, 1);
}

/* Bytes kept for every step: h, c of an LSTM, and its gates unless they are computed again. */
static int64_t recurrent_kept(const struct graph *graph, const struct node *node, bool all)
{
	const struct shape *x = node_input_shape(graph, node, 0);
	const struct shape *w = node_input_shape(graph, node, 1);
	const struct shape *h = node_output_shape(graph, node, 0);
	int64_t numbers =
		saturating_add(all ? w->dims[0] : 0, (node->op == OP_LSTM ? 2 : 1) * h->dims[1]);

	numbers = saturating_multiply(saturating_multiply(x->dims[0], x->dims[1]), numbers);
	return saturating_multiply(numbers, (int64_t)dtype_bytes(DTYPE_F32));
}

#define RECURRENT                                                                                  \
	ARITY(4, 4, 1), .attributes = no_attributes, .macs = recurrent_macs,                       \
			.samples = samples_first, .kept_bytes = recurrent_kept,                    \
			.onnx_export = ONNX_EXPORT_RECURRENT

/* clang-format off */
const struct operator_row row_LSTM = {
	RECURRENT, .infer = lstm_infer, .backward = lstm_backward, .compute = lstm_compute,
};

const struct operator_row row_LSTM_GRAD = {
	GRADIENT(5, 4, no_attributes), .leaves_out = true, .macs = recurrent_grad_macs,
	.compute = lstm_grad_compute,
};

const struct operator_row row_RNN = {
	RECURRENT, .infer = rnn_infer, .backward = rnn_backward, .compute = rnn_compute,
};

const struct operator_row row_RNN_GRAD = {
	GRADIENT(5, 4, no_attributes), .leaves_out = true, .macs = recurrent_grad_macs,
	.compute = rnn_grad_compute,
};
/* clang-format on */
