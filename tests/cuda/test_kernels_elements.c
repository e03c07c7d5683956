/* Kernels of one thread an element: functions, broadcasting, updates, dropout, Gather. */
#include "adapters/native/dropout.h"
#include "tests/cuda/kernel_case.h"

/* No multiple of anything, more than a grid of two blocks. */
static const long long N = 1003;

static const struct {
	enum op op;
	int code;
	struct attributes a;
} functions[] = {
	{OP_RELU, FUNCTION_RELU, {.alpha = 0}},
	{OP_TANH, FUNCTION_TANH, {.alpha = 0}},
	{OP_SIGMOID, FUNCTION_SIGMOID, {.alpha = 0}},
	{OP_HARD_SIGMOID, FUNCTION_HARD_SIGMOID, {.alpha = 0.25, .beta = 0.5}},
	{OP_HARD_SWISH, FUNCTION_HARD_SWISH, {.alpha = 0}},
	{OP_CLIP, FUNCTION_CLIP, {.min = -0.5, .max = 1.25}},
	{OP_ELU, FUNCTION_ELU, {.alpha = 1.5}},
	{OP_LEAKY_RELU, FUNCTION_LEAKY_RELU, {.alpha = 0.125}},
	{OP_EXP, FUNCTION_EXP, {.alpha = 0}},
	{OP_SQRT, FUNCTION_SQRT, {.alpha = 0}},
	{OP_ERF, FUNCTION_ERF, {.alpha = 0}},
	{OP_POW, FUNCTION_POW, {.alpha = 1.5, .exponent = 1.5}},
	{OP_LOG, FUNCTION_LOG, {.alpha = 0}},
	{OP_GELU, FUNCTION_GELU, {.alpha = 0}},
	{OP_GELU, FUNCTION_GELU_TANH, {.approximate = 1}},
	{OP_NEG, FUNCTION_NEG, {.alpha = 0}},
};

/* Runs function k and its gradient in place on elements from `skip` on: a start that is no multiple
 * of 16 bytes. */
static void try_function(struct kernel_device *d, size_t k, enum dtype type, long long skip)
{
	const struct elementwise *e = operator_row(functions[k].op)->elementwise;
	const struct attributes *a = &functions[k].a;
	bool clips = functions[k].op == OP_CLIP;
	struct function f = {functions[k].code, (float)(clips ? a->min : a->alpha),
			     (float)(clips ? a->max : a->beta)};
	double *x = normal_numbers(N, type, 1, 0, 2), *dy = normal_numbers(N, type, 2, 0, 1);
	double *y = normal_numbers(N, type, 1, 0, 2), *in = e->slope_of_output ? y : x;
	long long n = N - skip;
	CUdeviceptr values, slopes, read;

	x[skip] = 0;
	for (int i = 0; i < N; i++) {
		x[i] = e->positive ? in_type(fabs(x[i]) + 0.25, type) : x[i];
		y[i] = i < skip ? x[i] : e->value(a, x[i]);
	}
	values = device_array(d, type, N, x) + (size_t)skip * dtype_bytes(type);
	LAUNCH(d, "function", type, 2, 64, &values, &values, &n, &f);
	assert_close(test_text("function %zu", k),
		     read_array(d, values - (size_t)skip * dtype_bytes(type), type, N), y, N,
		     type_bound(type));
	if (f.code == FUNCTION_NEG)
		return;
	for (int i = 0; i < N; i++)
		y[i] = in_type(y[i], type);
	slopes = device_array(d, type, N, dy) + (size_t)skip * dtype_bytes(type);
	read = device_array(d, type, N, in) + (size_t)skip * dtype_bytes(type);
	LAUNCH(d, "function_grad", type, 2, 64, &slopes, &slopes, &read, &n, &f);
	for (long long i = skip; i < N; i++)
		dy[i] *= e->slope(a, in[i]);
	assert_close(test_text("slope %zu", k),
		     read_array(d, slopes - (size_t)skip * dtype_bytes(type), type, N), dy, N,
		     type_bound(type));
}

KERNEL_TEST(test_functions)
{
	for (size_t k = 0; k < COUNT(functions); k++) {
		for (size_t t = 0; t < COUNT(kernel_types); t++) {
			try_function(d, k, kernel_types[t], 0);
			try_function(d, k, kernel_types[t], 3);
			kernel_device_forget(d);
		}
	}
}

static double combined(int code, double a, double b, bool relu)
{
	double y = code == BROADCAST_ADD   ? a + b
		   : code == BROADCAST_SUB ? a - b
		   : code == BROADCAST_MUL ? a * b
					   : a / b;

	return relu && y < 0 ? 0 : y;
}

/* In place; the product is masked, as by the gradient of a Relu. */
KERNEL_TEST(test_binary)
{
	for (int code = BROADCAST_ADD; code <= BROADCAST_DIV; code++) {
		for (size_t t = 0; t < COUNT(kernel_types); t++) {
			enum dtype type = kernel_types[t];
			double *a = normal_numbers(N, type, 1, 0, 1), mask[1003];
			double *b = normal_numbers(N, type, 2, 3, 0.5);
			CUdeviceptr y = device_array(d, type, N, a), read = 0;
			CUdeviceptr second = device_array(d, type, N, b);
			int relu = code != BROADCAST_SUB;

			for (int i = 0; i < N; i++)
				mask[i] = code != BROADCAST_MUL || i % 3;
			if (code == BROADCAST_MUL)
				read = device_array(d, type, N, mask);
			LAUNCH(d, "binary", type, 2, 64, &y, &y, &second, &read, (void *)&N, &code,
			       &relu);
			for (int i = 0; i < N; i++)
				a[i] = mask[i] * combined(code, a[i], b[i], relu);
			assert_close("binary", read_array(d, y, type, N), a, N, type_bound(type));
		}
	}
}

/* y of 5 x 6 x 7: a has it in another order of dimensions, b is repeated along the middle one. */
KERNEL_TEST(test_broadcast)
{
	enum { A = 5, B = 6, C = 7 };
	long long all = A * B * C;
	struct cuda_broadcast w = {.relu = 1,
				   .factor = 0.75f,
				   .a = {3, {A, B, C}, {1, A, A * B}},
				   .b = {3, {A, B, C}, {C, 0, 1}}};

	for (w.code = BROADCAST_ADD; w.code <= BROADCAST_SCALE; w.code++) {
		for (size_t t = 0; t < COUNT(kernel_types); t++) {
			enum dtype type = kernel_types[t];
			double *a = normal_numbers(all, type, 1, 0, 1), wanted[A * B * C];
			double *b = normal_numbers(A * C, type, 2, 3, 0.5);
			CUdeviceptr y = device_array(d, type, all, NULL), second = 0;
			CUdeviceptr first = device_array(d, type, all, a);

			if (w.code != BROADCAST_SCALE)
				second = device_array(d, type, A * C, b);
			LAUNCH(d, "broadcast", type, 2, 32, &y, &first, &second, &all, &w);
			for (int i = 0; i < all; i++) {
				int row = i / (B * C), middle = i / C % B, column = i % C;
				double c = a[row + A * middle + A * B * column];

				wanted[i] = second ? combined(w.code, c, b[row * C + column], true)
						   : fmax(0, 0.75 * c);
			}
			assert_close("broadcast", read_array(d, y, type, all), wanted, all,
				     type_bound(type));
		}
	}
}

static const long long parameters = 1004;

static void exact_update(int kind, double *w, double *v, double g,
			 const struct cuda_update_rule *rule)
{
	double rate = (double)rule->learning_rate, rho = (double)rule->rho;

	g += (double)rule->weight_decay * *w;
	if (kind == 1)
		g = *v = (double)rule->momentum * *v + g;
	if (kind == 2) {
		*v = rho * *v + (1 - rho) * g * g;
		g /= sqrt(*v) + (double)rule->epsilon;
	}
	*w -= rate * g;
}

KERNEL_TEST(test_updates)
{
	static const char *const names[] = {"update_sgd", "update_momentum", "update_rmsprop"};
	struct cuda_update_rule rule = {.learning_rate = 0.1f,
					.momentum = 0.9f,
					.weight_decay = 0.01f,
					.rho = 0.95f,
					.epsilon = 1e-3f};

	for (int kind = 0; kind < 3; kind++) {
		enum dtype type = kernel_types[kind];
		double *w = normal_numbers(parameters, DTYPE_F32, 1, 0, 1);
		double *v = normal_numbers(parameters, DTYPE_F32, 2, 1, 0.1);
		double *g = normal_numbers(parameters, DTYPE_F32, 3, 0, 1);
		CUdeviceptr weights = device_array(d, DTYPE_F32, parameters, w), none = 0;
		CUdeviceptr values = kind ? device_array(d, DTYPE_F32, parameters, v) : 0;
		CUdeviceptr gradients = device_array(d, DTYPE_F32, parameters, g);
		CUdeviceptr copies = kind ? device_array(d, type, parameters, NULL) : 0;
		double factor = kind == 1 ? 0.25 : 1; /* of clipped gradients */
		CUdeviceptr clip = kind == 1 ? device_array(d, DTYPE_F32, 1, &factor) : 0;

		for (int step = 0; step < 3; step++) {
			LAUNCH(d, names[kind], type, 2, 64, &weights, &values, &copies, &gradients,
			       &none, &clip, (void *)&parameters, &rule);
			for (int i = 0; i < parameters; i++)
				exact_update(kind, &w[i], &v[i], factor * g[i], &rule);
		}
		assert_close(names[kind], read_array(d, weights, DTYPE_F32, parameters), w,
			     parameters, 2e-6);
		if (values)
			assert_close(names[kind], read_array(d, values, DTYPE_F32, parameters), v,
				     parameters, 2e-6);
		if (copies)
			assert_close("copies", read_array(d, copies, type, parameters), w,
				     parameters, type_bound(type));
	}
}

/* Gradients above the norm and below it. */
KERNEL_TEST(test_clip_factor)
{
	double *g = normal_numbers(parameters, DTYPE_F32, 3, 0, 1), squares = 0;
	const double scale[4] = {0, 0, 0, 0x3e800000}; /* inverse: 0.25 */
	CUdeviceptr gradients = device_array(d, DTYPE_F32, parameters, g), none = 0;
	CUdeviceptr scaled = device_array(d, DTYPE_I32, 4, scale);
	CUdeviceptr sums = device_array(d, DTYPE_F32, 3, NULL);
	CUdeviceptr clip = device_array(d, DTYPE_F32, 1, NULL);
	int parts = 3;

	for (int i = 0; i < parameters; i++)
		squares += g[i] * g[i];
	for (int i = 0; i < 3; i++) {
		double norm = i == 1 ? sqrt(squares) / 4 : sqrt(squares);
		float most = i == 2 ? 2 * (float)norm : 0.3F * (float)norm;
		double wanted = i == 2 ? 1 : 0.3F * norm / (norm + 1e-6);

		LAUNCH(d, "square_parts", DTYPE_COUNT, 2, 64, &sums, &gradients,
		       i == 1 ? &scaled : &none, (void *)&parameters, &parts);
		LAUNCH(d, "clip_factor", DTYPE_COUNT, 1, 64, &clip, &sums, &parts, &most);
		assert_close("factor", read_array(d, clip, DTYPE_F32, 1), &wanted, 1, 1e-6);
	}
}

KERNEL_TEST(test_adamw)
{
	struct cuda_update_rule rule = {.learning_rate = 0.1f,
					.weight_decay = 0.01f,
					.epsilon = 1e-3f,
					.beta1 = 0.9f,
					.beta2 = 0.99f,
					.rest1 = 0.1f,
					.rest2 = 0.01f};
	const double betas[] = {0.9, 0.99}, zero[3] = {0};
	long long decayed = 500;
	double *w = normal_numbers(parameters, DTYPE_F32, 1, 0, 1);
	double *g = normal_numbers(parameters, DTYPE_F32, 3, 0, 1);
	double *m = test_keep(calloc(2 * (size_t)parameters, sizeof(*m))), *s = m + parameters;
	CUdeviceptr weights = device_array(d, DTYPE_F32, parameters, w), none = 0;
	CUdeviceptr values = device_array(d, DTYPE_F32, 2 * parameters, m);
	CUdeviceptr gradients = device_array(d, DTYPE_F32, parameters, g);
	CUdeviceptr copies = device_array(d, DTYPE_BF16, parameters, NULL);
	CUdeviceptr step = device_array(d, DTYPE_I32, 3, zero);

	for (int t = 1; t <= 3; t++) {
		LAUNCH(d, "advance_adamw", DTYPE_COUNT, 1, 64, &step, &none, (void *)&betas[0],
		       (void *)&betas[1]);
		LAUNCH(d, "update_adamw", DTYPE_BF16, 2, 64, &weights, &values, &copies, &gradients,
		       &none, &none, &step, (void *)&parameters, &decayed, &rule);
		for (int i = 0; i < parameters; i++) {
			m[i] = 0.9 * m[i] + 0.1 * g[i];
			s[i] = 0.99 * s[i] + 0.01 * g[i] * g[i];
			w[i] -= 0.1 * ((i < decayed ? 0.01 * w[i] : 0) +
				       m[i] / (1 - pow(0.9, t)) /
					       (sqrt(s[i] / (1 - pow(0.99, t))) + 1e-3));
		}
	}
	assert_close("weights", read_array(d, weights, DTYPE_F32, parameters), w, parameters, 2e-6);
	assert_close("moments", read_array(d, values, DTYPE_F32, 2 * parameters), m, 2 * parameters,
		     2e-6);
	assert_close("copies", read_array(d, copies, DTYPE_BF16, parameters), w, parameters,
		     type_bound(DTYPE_BF16));
}

/* A step with fp16's loss scale, with this gradient times the scale. Returns the weight. */
static double scaled_step(struct kernel_device *d, CUdeviceptr weights, CUdeviceptr scale,
			  double gradient)
{
	struct cuda_update_rule rule = {.learning_rate = 0.5f};
	double *g = normal_numbers(parameters, DTYPE_F32, 1, 0, 1);
	CUdeviceptr gradients, found = device_array(d, DTYPE_I32, 3, NULL), none = 0;
	int parts = 3;

	g[700] = gradient;
	gradients = device_array(d, DTYPE_F32, parameters, g);
	LAUNCH(d, "find_overflow", DTYPE_COUNT, 2, 64, &found, &gradients, (void *)&parameters,
	       &parts);
	LAUNCH(d, "step_loss_scale", DTYPE_COUNT, 1, 64, &scale, &found, &parts);
	LAUNCH(d, "update_sgd", DTYPE_F32, 2, 64, &weights, &none, &none, &gradients, &scale, &none,
	       (void *)&parameters, &rule);
	return read_array(d, weights, DTYPE_F32, parameters)[700];
}

static void expect_scale(struct kernel_device *d, CUdeviceptr scale, int exponent, int good)
{
	const double *words = read_array(d, scale, DTYPE_I32, 2);

	assert_int_equal((int)words[0], exponent);
	assert_int_equal((int)words[1], good);
}

KERNEL_TEST(test_loss_scale_skips_backs_off_and_grows)
{
	const double zero[4] = {0}, before[4] = {-1, LOSS_SCALE_GROWTH_STEPS - 1};
	double *start = test_keep(calloc((size_t)parameters, sizeof(*start)));
	CUdeviceptr weights = device_array(d, DTYPE_F32, parameters, start);
	CUdeviceptr scale = device_array(d, DTYPE_I32, 4, zero), grown;

	assert_true(scaled_step(d, weights, scale, 1024) == -0.5);
	expect_scale(d, scale, 0, 1);
	assert_true(scaled_step(d, weights, scale, (double)NAN) == -0.5);
	expect_scale(d, scale, -1, 0);
	assert_true(scaled_step(d, weights, scale, -(double)INFINITY) == -0.5);
	expect_scale(d, scale, -2, 0);
	assert_true(scaled_step(d, weights, scale, 256) == -1);
	expect_scale(d, scale, -2, 1);
	grown = device_array(d, DTYPE_I32, 4, before);
	assert_true(scaled_step(d, weights, grown, 512) == -1.5);
	expect_scale(d, grown, 0, 0);
}

KERNEL_TEST(test_unscale)
{
	const double words[4] = {1};
	double *g = normal_numbers(parameters, DTYPE_F32, 1, 0, 1);
	CUdeviceptr gradients = device_array(d, DTYPE_F32, parameters, g);
	CUdeviceptr scale = device_array(d, DTYPE_I32, 4, words);

	LAUNCH(d, "unscale", DTYPE_COUNT, 2, 64, &gradients, &scale, (void *)&parameters);
	for (int i = 0; i < parameters; i++)
		g[i] /= 2048;
	assert_close("unscale", read_array(d, gradients, DTYPE_F32, parameters), g, parameters, 0);
}

/* The generator of dropout.c and of the CPU's loops, for an element below 2^32. */
static bool kept(const struct dropout_draw *draw, uint32_t i)
{
	uint32_t h = i * 0x9e3779b9u ^ draw->key[0];

	h ^= h >> 16;
	h *= 0x7feb352du;
	h ^= (h >> 15) ^ draw->key[1];
	h *= 0x846ca68bu;
	return (h ^ h >> 16) >= draw->threshold;
}

KERNEL_TEST(test_dropout_draws_the_masks_of_each_step)
{
	const double zero[2] = {0};
	const uint64_t seed = 0x123456789abcdef0;
	double *x = normal_numbers(N, DTYPE_BF16, 1, 0, 1);
	double *wanted = test_keep(malloc((size_t)N * sizeof(*wanted)));
	CUdeviceptr number = device_array(d, DTYPE_I32, 2, zero);
	CUdeviceptr in = device_array(d, DTYPE_BF16, N, x);
	CUdeviceptr y = device_array(d, DTYPE_BF16, N, NULL);

	for (uint64_t step = 0; step < 3; step++) {
		struct dropout_draw draw = dropout_draw_make(seed, step, 7, 0.25);
		struct cuda_dropout arguments = {(int64_t)seed, 7, draw.threshold, draw.scale};
		int dropped = 0;

		LAUNCH(d, "advance_step", DTYPE_COUNT, 2, 32, &number);
		LAUNCH(d, "dropout", DTYPE_BF16, 2, 64, &y, &in, &number, (void *)&N, &arguments);
		for (uint32_t i = 0; i < N; i++) {
			wanted[i] = kept(&draw, i) ? x[i] * (double)draw.scale : 0;
			dropped += wanted[i] == 0;
		}
		assert_close("dropout", read_array(d, y, DTYPE_BF16, N), wanted, N,
			     type_bound(DTYPE_BF16));
		assert_in_range(dropped, N / 5, 3 * N / 10);
	}
}

enum { ROWS = 11, WIDTH = 5, INDICES = 37 };

/* Indices of a table of ROWS, some of which occur often and some never. */
static CUdeviceptr indices_on(struct kernel_device *d, double *indices)
{
	for (int i = 0; i < INDICES; i++)
		indices[i] = i * i % ROWS;
	return device_array(d, DTYPE_I32, INDICES, indices);
}

KERNEL_TEST(test_gather)
{
	double *table = normal_numbers(ROWS * WIDTH, DTYPE_F32, 1, 0, 1), indices[INDICES];
	double wanted[INDICES * WIDTH];
	CUdeviceptr places = indices_on(d, indices);
	CUdeviceptr rows = device_array(d, DTYPE_F32, ROWS * WIDTH, table);
	int count = INDICES, width = WIDTH;

	for (int i = 0; i < INDICES * WIDTH; i++)
		wanted[i] = table[(int)indices[i / WIDTH] * WIDTH + i % WIDTH];
	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		CUdeviceptr y = device_array(d, kernel_types[t], INDICES * WIDTH, NULL);

		LAUNCH(d, "gather", kernel_types[t], 2, 32, &y, &rows, &places, &count, &width);
		assert_close("gather", read_array(d, y, kernel_types[t], INDICES * WIDTH), wanted,
			     INDICES * WIDTH, type_bound(kernel_types[t]));
	}
}

/* Rows without an index keep what they had. */
KERNEL_TEST(test_gather_grad)
{
	int count = INDICES, width = WIDTH;

	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		double *dy = normal_numbers(INDICES * WIDTH, kernel_types[t], 1, 0, 1);
		double indices[INDICES], wanted[ROWS * WIDTH] = {0};
		CUdeviceptr dtable = device_array(d, DTYPE_F32, ROWS * WIDTH, wanted);
		CUdeviceptr in = device_array(d, kernel_types[t], INDICES * WIDTH, dy);
		CUdeviceptr places = indices_on(d, indices);
		CUdeviceptr links = device_array(d, DTYPE_I32, INDICES, NULL);

		LAUNCH(d, "gather_links", DTYPE_COUNT, 2, 32, &links, &places, &count);
		LAUNCH(d, "gather_grad", kernel_types[t], 2, 32, &dtable, &in, &places, &links,
		       &count, &width);
		for (int i = 0; i < INDICES * WIDTH; i++)
			wanted[(int)indices[i / WIDTH] * WIDTH + i % WIDTH] += dy[i];
		assert_close("gather_grad", read_array(d, dtable, DTYPE_F32, ROWS * WIDTH), wanted,
			     ROWS * WIDTH, 2e-6);
	}
}
