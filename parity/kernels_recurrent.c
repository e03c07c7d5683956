#include "parity/kernels_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/*
 * Both recurrent layers: sums of each step a = b + w x + r h, a cell that makes the next h of them,
 * and the way back through time. They differ in the cell only.
 */
struct recurrent {
	int64_t batch, steps, features, hidden, gates;
	const double *x, *w, *r, *b;
	double *sums; /* steps x batch x gates*hidden: the sums, then what the cell makes of them */
	double *states; /* steps+1 x batch x hidden: h; 0 at first */
	double *cells;	/* the same, for LSTM: c */
	double *dw, *dr, *db, *dx;
	struct kinks *kinks; /* backward: see kernels.h; NULL: not asked for */
	double close;	     /* what is too close to zero, relative to the RMS of a step's sums */
};

/* Four partial sums, so that the compiler may use vectors. */
static double dot(const double *restrict a, const double *restrict b, int64_t count)
{
	double sum[4] = {0};
	int64_t i = 0;

	for (; i + 4 <= count; i += 4)
		for (int lane = 0; lane < 4; lane++)
			sum[lane] += a[i + lane] * b[i + lane];
	for (; i < count; i++)
		sum[0] += a[i] * b[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add_scaled(double *restrict to, const double *restrict from, double factor,
		       int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		to[i] += factor * from[i];
}

/* Inputs from `first` on: x, w, r, b. */
static struct recurrent recurrent_init(const struct kernel_call *call, int first, int64_t gates)
{
	const struct shape *x = kernel_input_shape(call, first);
	struct recurrent l = {
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

/* a: gates i, o, f, c of ONNX; they are replaced by their activations. */
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

/* Of one step and sample: turns dh and dc into da (in place of a) and the dc of the step before. */
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

/* As kernel_relu has it; `close` is 0 where nobody asks. */
static void relu_cell_grad(double *a, const double *dh, int64_t hidden, double close,
			   struct kinks *kinks)
{
	for (int64_t k = 0; k < hidden; k++) {
		bool passes = a[k] > 0;

		if (a[k] != 0 && fabs(a[k]) < close)
			passes ^= kernel_turns(kinks);
		a[k] = passes ? dh[k] : 0;
	}
}

/* da is known: adds its share to all gradients, and makes dh of the step before. */
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

/* dh: batch x hidden, of the last state; is overwritten. */
static void backward(struct recurrent *l, double *dh)
{
	int64_t width = l->gates * l->hidden, plane = l->batch * l->hidden;
	double *dc = memory_alloc((size_t)plane * sizeof(*dc));

	memset(dc, 0, (size_t)plane * sizeof(*dc));
	for (int64_t t = l->steps - 1; t >= 0; t--) {
		double close = 0;

		if (l->kinks)
			close = l->close *
				kernel_rms(l->sums + t * l->batch * width, l->batch * width);
		for (int64_t n = 0; n < l->batch; n++) {
			int64_t row = n * l->hidden, at = t * plane + row;
			double *a = l->sums + (t * l->batch + n) * width;

			if (l->gates == 4)
				lstm_cell_grad(a, l->cells + at, l->cells + at + plane, dh + row,
					       dc + row, l->hidden);
			else
				relu_cell_grad(a, dh + row, l->hidden, close, l->kinks);
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
	l.kinks = call->kinks;
	l.close = call->close;
	memcpy(dh, kernel_input(call, 0), bytes);
	forward(&l);
	backward(&l, dh);
	free(dh);
	recurrent_release(&l);
}

void kernel_lstm(const struct kernel_call *call)
{
	run_forward(call, 4);
}

void kernel_lstm_grad(const struct kernel_call *call)
{
	run_backward(call, 4);
}

void kernel_rnn(const struct kernel_call *call)
{
	run_forward(call, 1);
}

void kernel_rnn_grad(const struct kernel_call *call)
{
	run_backward(call, 1);
}
