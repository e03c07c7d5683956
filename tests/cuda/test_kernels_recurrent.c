/* Kernels of recurrent layers against the operators' float64 kernels; the test does the products
 * in between. */
#include "tests/cuda/kernel_case.h"

enum { BATCH = 3, STEPS = 4, FEATURES = 2, HIDDEN = 11 };

/* A layer; width: of all gates. Weights and biases as ONNX has them. */
struct layer {
	bool lstm;
	enum dtype type;
	int64_t width;
	double *x, *w, *r, *b, *dy;
	CUdeviceptr sums, cells, before, last, bias, da, dh, dc, dev_dy;
};

/* The reference: the last state, and the gradients of x, w, r and b. */
struct answers {
	double *y, *gradients[4];
};

static void compute_reference(const struct layer *l, struct answers *out)
{
	const struct shape shapes[] = {
		{3, {BATCH, STEPS, FEATURES}}, {2, {l->width, FEATURES}},
		{2, {l->width, HIDDEN}},       {1, {l->width}},
		{2, {BATCH, HIDDEN}},
	};
	double *inputs[] = {l->x, l->w, l->r, l->b};
	struct lone_node lone;

	lone_node_start(&lone, l->lstm ? OP_LSTM : OP_RNN);
	for (int i = 0; i < 4; i++)
		lone_input(&lone, &shapes[i], inputs[i]);
	out->y = lone_output(&lone, &shapes[4]);
	lone_compute(&lone);
	lone_node_start(&lone, l->lstm ? OP_LSTM_GRAD : OP_RNN_GRAD);
	lone_input(&lone, &shapes[4], l->dy);
	for (int i = 0; i < 4; i++)
		lone_input(&lone, &shapes[i], inputs[i]);
	for (int i = 0; i < 4; i++)
		out->gradients[i] = lone_output(&lone, &shapes[i]);
	lone_compute(&lone);
}

static struct layer make_layer(struct kernel_device *d, bool lstm, enum dtype type)
{
	int64_t width = (lstm ? 4 : 1) * HIDDEN, plane = BATCH * HIDDEN;
	struct layer l = {
		.lstm = lstm,
		.type = type,
		.width = width,
		.x = normal_numbers(BATCH * STEPS * FEATURES, type, 1, 0, 1),
		.w = normal_numbers(width * FEATURES, type, 2, 0, 0.5),
		.r = normal_numbers(width * HIDDEN, type, 3, 0, 0.3),
		.b = normal_numbers(width, DTYPE_F32, 4, 0, 0.5),
		.dy = normal_numbers(plane, type, 5, 0, 1),
		.sums = device_array(d, DTYPE_F32, BATCH * STEPS * width, NULL),
		.cells = device_array(d, DTYPE_F32, STEPS * plane, NULL),
		.before = device_array(d, type, STEPS * plane, NULL),
		.last = device_array(d, type, plane, NULL),
		.da = device_array(d, type, BATCH * STEPS * width, NULL),
		.dh = device_array(d, DTYPE_F32, plane, NULL),
		.dc = device_array(d, DTYPE_F32, plane, NULL),
	};

	l.bias = device_array(d, DTYPE_F32, width, l.b);
	l.dev_dy = device_array(d, type, plane, l.dy);
	return l;
}

static void write_floats(struct kernel_device *d, CUdeviceptr to, const double *numbers,
			 int64_t count)
{
	CUdeviceptr from = device_array(d, DTYPE_F32, count, numbers);

	d->cu.MemcpyDtoDAsync(to, from, (size_t)count * sizeof(float), d->stream);
}

/* Writes the sums of the step: w x + r h. Those of earlier steps are the gates now. */
static void multiply_forward(struct kernel_device *d, const struct layer *l, int step)
{
	double *before = read_array(d, l->before, l->type, BATCH * STEPS * HIDDEN);
	double *sums = read_array(d, l->sums, DTYPE_F32, BATCH * STEPS * l->width);

	for (int64_t i = 0; i < BATCH * l->width; i++) {
		int64_t row = i / l->width * STEPS + step, g = i % l->width;
		double sum = 0;

		for (int64_t k = 0; k < FEATURES; k++)
			sum += l->w[g * FEATURES + k] * l->x[row * FEATURES + k];
		for (int64_t k = 0; step > 0 && k < HIDDEN; k++)
			sum += l->r[g * HIDDEN + k] * before[row * HIDDEN + k];
		sums[row * l->width + g] = sum;
	}
	write_floats(d, l->sums, sums, BATCH * STEPS * l->width);
}

static void run_forward(struct kernel_device *d, struct layer *l, bool training)
{
	for (int step = 0; step < STEPS; step++) {
		struct recurrent_arguments a = {BATCH, STEPS, HIDDEN, step, training};

		multiply_forward(d, l, step);
		if (l->lstm)
			LAUNCH(d, "lstm_cell", l->type, 2, 32, &l->sums, &l->cells, &l->before,
			       &l->last, &l->bias, &a);
		else
			LAUNCH(d, "rnn_cell", DTYPE_COUNT, 2, 32, &l->sums, &l->before, &l->last,
			       &l->bias, &a);
	}
}

/* Writes dh: da of the step times r. */
static void multiply_backward(struct kernel_device *d, const struct layer *l, int step)
{
	double *da = read_array(d, l->da, l->type, BATCH * STEPS * l->width);
	double dh[BATCH * HIDDEN] = {0};

	for (int64_t i = 0; i < BATCH * HIDDEN; i++) {
		for (int64_t g = 0; g < l->width; g++)
			dh[i] += da[(i / HIDDEN * STEPS + step) * l->width + g] *
				 l->r[g * HIDDEN + i % HIDDEN];
	}
	write_floats(d, l->dh, dh, BATCH * HIDDEN);
}

static void run_backward(struct kernel_device *d, struct layer *l)
{
	for (int step = STEPS - 1; step >= 0; step--) {
		struct recurrent_arguments a = {BATCH, STEPS, HIDDEN, step, true};

		if (l->lstm)
			LAUNCH(d, "lstm_cell_grad", l->type, 2, 32, &l->da, &l->dc, &l->dh,
			       &l->dev_dy, &l->sums, &l->cells, &a);
		else
			LAUNCH(d, "rnn_cell_grad", DTYPE_COUNT, 2, 32, &l->da, &l->dh, &l->dev_dy,
			       &l->sums, &l->bias, &a);
		multiply_backward(d, l, step);
	}
}

/* The gradients of r and b from da and the states before each step. */
static void check_gradients(struct kernel_device *d, const struct layer *l,
			    const struct answers *wanted, double bound)
{
	double *da = read_array(d, l->da, l->type, BATCH * STEPS * l->width);
	double *before = read_array(d, l->before, l->type, BATCH * STEPS * HIDDEN);
	double *dr = test_keep(calloc((size_t)(l->width * HIDDEN), sizeof(*dr)));
	double *db = test_keep(calloc((size_t)l->width, sizeof(*db)));

	for (int64_t i = 0; i < BATCH * STEPS * l->width; i++) {
		db[i % l->width] += da[i];
		for (int64_t k = 0; k < HIDDEN; k++)
			dr[i % l->width * HIDDEN + k] += da[i] * before[i / l->width * HIDDEN + k];
	}
	assert_close("dr", dr, wanted->gradients[2], l->width * HIDDEN, bound);
	assert_close("db", db, wanted->gradients[3], l->width, bound);
}

static void check_layer(struct kernel_device *d, bool lstm, enum dtype type)
{
	struct layer l = make_layer(d, lstm, type);
	struct answers wanted;
	double bound = 4 * type_bound(type);

	compute_reference(&l, &wanted);
	run_forward(d, &l, true);
	assert_close("y", read_array(d, l.last, type, BATCH * HIDDEN), wanted.y, BATCH * HIDDEN,
		     bound);
	run_backward(d, &l);
	check_gradients(d, &l, &wanted, bound);
	/* Without training there is one place for the cells. */
	l.cells = device_array(d, DTYPE_F32, BATCH * HIDDEN, NULL);
	run_forward(d, &l, false);
	assert_close("y", read_array(d, l.last, type, BATCH * HIDDEN), wanted.y, BATCH * HIDDEN,
		     bound);
}

KERNEL_TEST(test_rnn)
{
	check_layer(d, false, DTYPE_F32);
}

KERNEL_TEST(test_lstm)
{
	for (size_t i = 0; i < COUNT(kernel_types); i++) {
		check_layer(d, true, kernel_types[i]);
		kernel_device_forget(d);
	}
}
