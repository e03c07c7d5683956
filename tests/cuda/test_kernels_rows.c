/* Kernels that combine many elements: losses, softmax, sums. */
#include "tests/cuda/kernel_case.h"

/* The largest number of a line, and the sum of exp(x - largest). */
static double sum_exp(const double *x, int count, int stride, double *largest)
{
	double sum = 0;

	*largest = x[0];
	for (int i = 1; i < count; i++)
		*largest = fmax(*largest, x[i * stride]);
	for (int i = 0; i < count; i++)
		sum += exp(x[i * stride] - *largest);
	return sum;
}

/* Softmax cross entropy of row-major logits; labels below 0 are ignored. Replaces the logits by
 * their gradient times scale. */
static double exact_cross_entropy(double *logits, const double *labels, int rows, int classes,
				  double scale)
{
	double loss = 0, valid = 0;

	for (int row = 0; row < rows; row++)
		valid += labels[row] >= 0;
	for (int row = 0; row < rows; row++) {
		double *x = logits + row * classes;
		double largest, sum = sum_exp(x, classes, 1, &largest);
		int label = (int)labels[row];

		loss += label < 0 ? 0 : (log(sum) + largest - x[label]) / valid;
		for (int i = 0; i < classes; i++)
			x[i] = label < 0
				       ? 0
				       : (exp(x[i] - largest) / sum - (i == label)) * scale / valid;
	}
	return loss;
}

/* exponent: of the loss scale; 0: none. */
static void try_cross_entropy(struct kernel_device *d, enum dtype type, int rows, int classes,
			      unsigned threads, int exponent)
{
	int64_t n = (int64_t)rows * classes;
	double *x = normal_numbers(n, type, 1, 0, 3), labels[8], words[4] = {exponent}, loss;
	CUdeviceptr logits = device_array(d, type, n, x), dlogits = device_array(d, type, n, NULL);
	CUdeviceptr parts = device_array(d, DTYPE_F64, rows, NULL), targets;
	CUdeviceptr sum = device_array(d, DTYPE_F64, 1, NULL);
	CUdeviceptr scale = exponent ? device_array(d, DTYPE_I32, 4, words) : 0;
	long long count = rows;

	for (int i = 0; i < rows; i++)
		labels[i] = i == 1 ? -1 : i * 37 % classes;
	targets = device_array(d, DTYPE_I32, rows, labels);
	LAUNCH(d, "cross_entropy", type, 3, threads, &dlogits, &parts, &logits, &targets, &scale,
	       &count, &classes);
	LAUNCH(d, "sum_loss", DTYPE_COUNT, 1, 256, &sum, &parts, &count, &targets);
	loss = exact_cross_entropy(x, labels, rows, classes, exponent ? ldexp(1024, exponent) : 1);
	assert_close("dlogits", read_array(d, dlogits, type, n), x, n, type_bound(type));
	assert_close("loss", read_array(d, sum, DTYPE_F64, 1), &loss, 1, 1e-6);
}

KERNEL_TEST(test_cross_entropy)
{
	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		try_cross_entropy(d, kernel_types[t], 7, 10, 32, 0);
		try_cross_entropy(d, kernel_types[t], 5, 1001, 256, -3);
		try_cross_entropy(d, kernel_types[t], 3, 1, 64, 0);
	}
}

KERNEL_TEST(test_half_squares)
{
	long long n = 4099, count = 5;
	int parts_count = 5;

	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		double *x = normal_numbers(n, kernel_types[t], 1, 0, 1), wanted = 0;
		CUdeviceptr in = device_array(d, kernel_types[t], n, x), none = 0;
		CUdeviceptr parts = device_array(d, DTYPE_F64, count, NULL);
		CUdeviceptr sum = device_array(d, DTYPE_F64, 1, NULL);

		LAUNCH(d, "half_squares", kernel_types[t], 2, 128, &parts, &in, &n, &parts_count);
		LAUNCH(d, "sum_loss", DTYPE_COUNT, 1, 32, &sum, &parts, &count, &none);
		for (int i = 0; i < n; i++)
			wanted += x[i] * x[i] / 2;
		assert_close("loss", read_array(d, sum, DTYPE_F64, 1), &wanted, 1, 1e-13);
	}
}

/* Softmax in place along the middle of 4 x size x inner, and its gradient. */
static void try_softmax(struct kernel_device *d, enum dtype type, int size, long long inner,
			unsigned threads)
{
	long long lines = 4 * inner, n = lines * size;
	double *x = normal_numbers(n, type, 1, 0, 3), *dy = normal_numbers(n, type, 2, 0, 1);
	int step = (int)inner;
	CUdeviceptr y, dx = device_array(d, type, n, dy), read;

	if (size > 1)
		x[0] = -60000; /* as a mask makes them */
	y = device_array(d, type, n, x);
	for (int line = 0; line < lines; line++) {
		double *at = x + line / step * size * step + line % step;
		double largest, sum = sum_exp(at, size, step, &largest);

		for (int i = 0; i < size; i++)
			at[i * step] = exp(at[i * step] - largest) / sum;
	}
	LAUNCH(d, "softmax", type, 3, threads, &y, &y, &lines, &size, &inner);
	assert_close("softmax", read_array(d, y, type, n), x, n, type_bound(type));
	for (int i = 0; i < n; i++)
		x[i] = in_type(x[i], type);
	read = device_array(d, type, n, x);
	LAUNCH(d, "softmax_grad", type, 3, threads, &dx, &dx, &read, &lines, &size, &inner);
	for (int line = 0; line < lines; line++) {
		int start = line / step * size * step + line % step;
		double sum = 0;

		for (int i = 0; i < size; i++)
			sum += dy[start + i * step] * x[start + i * step];
		for (int i = 0; i < size; i++)
			dy[start + i * step] = x[start + i * step] * (dy[start + i * step] - sum);
	}
	assert_close("softmax_grad", read_array(d, dx, type, n), dy, n, type_bound(type));
}

KERNEL_TEST(test_softmax)
{
	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		try_softmax(d, kernel_types[t], 77, 1, 64);
		try_softmax(d, kernel_types[t], 13, 3, 32);
		try_softmax(d, kernel_types[t], 1, 2, 32);
	}
}

/* A line whose first elements are minus infinity: no thread's part of the sum is NaN. */
KERNEL_TEST(test_softmax_of_masked_elements)
{
	enum { SIZE = 100, MASKED = 70 };
	double *x = normal_numbers(SIZE, DTYPE_F32, 1, 0, 1), wanted[SIZE] = {0};
	double largest, sum = sum_exp(x + MASKED, SIZE - MASKED, 1, &largest);
	long long lines = 1, inner = 1;
	int size = SIZE;
	CUdeviceptr y;

	for (int i = 0; i < SIZE; i++) {
		if (i >= MASKED)
			wanted[i] = exp(x[i] - largest) / sum;
		else
			x[i] = -(double)INFINITY;
	}
	y = device_array(d, DTYPE_F32, SIZE, x);
	LAUNCH(d, "softmax", DTYPE_F32, 1, 32, &y, &y, &lines, &size, &inner);
	assert_close("softmax", read_array(d, y, DTYPE_F32, SIZE), wanted, SIZE, 2e-6);
}

/* Two rows for each of three heads of two samples, into caches of five. */
KERNEL_TEST(test_scatter)
{
	struct cache_shape s = {6, 3, 2, 5, 4};
	const double places[] = {3, 1};
	CUdeviceptr index = device_array(d, DTYPE_I32, 2, places), none = 0;

	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		double *cache = normal_numbers(120, DTYPE_F32, 1, 0, 1);
		double *rows = normal_numbers(48, kernel_types[t], 2, 0, 1);
		CUdeviceptr whole = device_array(d, DTYPE_F32, 120, cache);
		CUdeviceptr update = device_array(d, kernel_types[t], 48, rows);

		LAUNCH(d, "scatter", kernel_types[t], 1, 32, &whole, &update,
		       t == 2 ? &none : &index, &s);
		for (int head = 0; head < 6; head++) {
			int first = t == 2 ? 0 : (int)places[head / 3];

			memcpy(cache + (head * 5 + first) * 4, rows + head * 8, 8 * sizeof(*rows));
		}
		assert_close("cache", read_array(d, whole, DTYPE_F32, 120), cache, 120, 1e-7);
	}
}

/* Sums 6 x 35 x 4 over its first two dimensions, or over the last, in parts of the terms. */
static void try_sum(struct kernel_device *d, const char *kernel, enum dtype type, bool last,
		    int splits)
{
	enum { A = 6, B = 35, C = 4, ALL = A * B * C };
	double *x = normal_numbers(ALL, type, 1, 0, 1);
	struct cuda_reduction r = {.splits = splits, .factor = 0.5f};
	struct cuda_walk both = {2, {A, B}, {B * C, C}}, inner = {1, {C}, {1}};
	double *wanted = test_keep(calloc((size_t)(ALL * splits), sizeof(*wanted)));
	CUdeviceptr in = device_array(d, type, ALL, x), y;

	r.outputs = last ? both : inner;
	r.terms = last ? inner : both;
	r.output_count = last ? A * B : C;
	r.term_count = ALL / r.output_count;
	y = device_array(d, DTYPE_F32, r.output_count * splits, NULL);
	LAUNCH(d, kernel, type, 2, 32, &y, &in, &r);
	for (int part = 0; part < splits; part++) {
		for (int k = 0; k < r.output_count; k++) {
			for (int i = r.term_count * part / splits;
			     i < r.term_count * (part + 1) / splits; i++)
				wanted[part * r.output_count + k] +=
					0.5 * x[last ? k * C + i : i * C + k];
		}
	}
	assert_close(kernel, read_array(d, y, DTYPE_F32, r.output_count * splits), wanted,
		     r.output_count * splits, 2e-6);
}

KERNEL_TEST(test_sums)
{
	for (size_t t = 0; t < COUNT(kernel_types); t++) {
		for (int last = 0; last < 2; last++) {
			try_sum(d, "reduce_rows", kernel_types[t], last, 1);
			try_sum(d, "reduce_rows", kernel_types[t], last, 4);
			try_sum(d, "reduce_columns", kernel_types[t], last, 1);
			try_sum(d, "reduce_columns", kernel_types[t], last, 3);
		}
	}
}
