/* Attention and its gradients as graphs of cuDNN, on its fake, against sums in float64; mistakes in
 * what the graph is told are seen. */
#include <math.h>

#include "tests/cuda/kernel_case.h"

#include "adapters/native/cuda/attention_plan.h"

enum { SAMPLES = 2, HEADS = 3, QUERIES = 5, KEYS = 7, WIDTH = 8 };

#define ROWS (SAMPLES * HEADS * QUERIES)
#define SCALE 0.4F

static int64_t rows_of(int i)
{
	bool of_keys =
		i == ATTENTION_K || i == ATTENTION_V || i == ATTENTION_DK || i == ATTENTION_DV;

	return of_keys ? KEYS : QUERIES;
}

/* The place of feature c of row t in array i, whose heads lie side by side. */
static int64_t place(int i, int64_t n, int64_t h, int64_t t, int64_t c)
{
	return ((n * rows_of(i) + t) * HEADS + h) * WIDTH + c;
}

static struct attention_problem problem_of(enum dtype type, bool causal, bool gradient)
{
	struct attention_problem p;

	memset(&p, 0, sizeof(p));
	p.samples = SAMPLES;
	p.heads = HEADS;
	p.queries = QUERIES;
	p.keys = KEYS;
	p.width = WIDTH;
	p.type = type;
	p.causal = causal;
	p.gradient = gradient;
	p.stats = true;
	for (int i = 0; i < ATTENTION_TENSORS; i++) {
		const int64_t strides[] = {rows_of(i) * HEADS * WIDTH, WIDTH, HEADS * WIDTH, 1};

		memcpy(p.strides[i], strides, sizeof(strides));
	}
	return p;
}

/* One head of a sample, from the definition. */
static void head(double *arrays[ATTENTION_TENSORS], int64_t n, int64_t h, bool causal)
{
	double share[QUERIES][KEYS], d[QUERIES][KEYS];

#define AT(i, t, c) arrays[i][place(i, n, h, t, c)]
	for (int64_t t = 0; t < QUERIES; t++) {
		double sum = 0, mean = 0;

		for (int64_t s = 0; s < KEYS; s++) {
			double score = 0;

			d[t][s] = 0;
			for (int64_t c = 0; c < WIDTH; c++) {
				score += AT(ATTENTION_Q, t, c) * AT(ATTENTION_K, s, c);
				d[t][s] += AT(ATTENTION_DY, t, c) * AT(ATTENTION_V, s, c);
			}
			share[t][s] = causal && s > t ? 0 : exp((double)SCALE * score);
			sum += share[t][s];
		}
		for (int64_t s = 0; s < KEYS; s++) {
			share[t][s] /= sum;
			mean += share[t][s] * d[t][s];
		}
		for (int64_t s = 0; s < KEYS; s++)
			d[t][s] = share[t][s] * (d[t][s] - mean) * (double)SCALE;
	}
	for (int64_t t = 0; t < QUERIES; t++) {
		for (int64_t s = 0; s < KEYS; s++) {
			for (int64_t c = 0; c < WIDTH; c++) {
				AT(ATTENTION_Y, t, c) += share[t][s] * AT(ATTENTION_V, s, c);
				AT(ATTENTION_DQ, t, c) += d[t][s] * AT(ATTENTION_K, s, c);
				AT(ATTENTION_DK, s, c) += d[t][s] * AT(ATTENTION_Q, t, c);
				AT(ATTENTION_DV, s, c) += share[t][s] * AT(ATTENTION_DY, t, c);
			}
		}
	}
#undef AT
}

/* What is told wrongly. */
enum mistake { NONE, NO_MASK, STRIDES, OTHER_SCALE, SUMS_LEFT, MISTAKES };

struct case_of_attention {
	struct cudnn cudnn;
	cudnn_handle handle;
	void *data[ATTENTION_ARRAYS];
	double *wanted[ATTENTION_TENSORS];
	enum dtype type;
};

static void *pointer(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

static void run(struct kernel_device *d, struct case_of_attention *c,
		struct attention_problem problem, float scale)
{
	struct cudnn_plan plan;
	struct error err = ERROR_INIT;
	void *data[ATTENTION_ARRAYS];

	memcpy(data, c->data, sizeof(data));
	for (int i = ATTENTION_DY; !problem.gradient && i <= ATTENTION_DQ_SUMS; i++)
		data[i] = i == ATTENTION_STATS ? data[i] : NULL;
	if (problem.ratio == 0)
		data[ATTENTION_SEED] = data[ATTENTION_OFFSET] = NULL;
	check(attention_plan_make(&c->cudnn, c->handle, NULL, &problem, "attention", &plan, &err),
	      &err);
	check(attention_plan_run(&c->cudnn, c->handle, &problem, &plan, scale, data,
				 pointer(device_array(d, DTYPE_F32, plan.workspace / 4, NULL)),
				 "attention", &err),
	      &err);
	assert_int_equal(d->cu.StreamSynchronize(d->stream), 0);
	cudnn_plan_release(&c->cudnn, &plan);
}

/* The largest error of the results, relative to each array's root mean square. */
static double worst(struct kernel_device *d, const struct case_of_attention *c)
{
	static const int results[] = {ATTENTION_Y, ATTENTION_DQ, ATTENTION_DK, ATTENTION_DV};
	double most = 0;

	for (size_t k = 0; k < COUNT(results); k++) {
		int i = results[k];
		int64_t count = SAMPLES * HEADS * WIDTH * rows_of(i);
		double squares = 0, error = 0,
		       *found = read_array(d, (CUdeviceptr)(uintptr_t)c->data[i], c->type, count);

		for (int64_t j = 0; j < count; j++) {
			squares += c->wanted[i][j] * c->wanted[i][j];
			error = fmax(error, fabs(found[j] - c->wanted[i][j]));
		}
		most = fmax(most, error / sqrt(squares / (double)count));
	}
	return most;
}

/* Arrays of random numbers; `left`: what the scratch holds. */
static void open_case(struct kernel_device *d, struct case_of_attention *c, enum dtype type,
		      double left)
{
	const double words[] = {77, 0, 0, 0};
	struct error err = ERROR_INIT;

	*c = (struct case_of_attention){.type = type};
	check(cudnn_load(&c->cudnn, NULL, &err), &err);
	assert_int_equal(c->cudnn.Create(&c->handle), 0);
	assert_int_equal(c->cudnn.SetStream(c->handle, d->stream), 0);
	for (int i = 0; i < ATTENTION_TENSORS; i++) {
		int64_t count = SAMPLES * HEADS * WIDTH * rows_of(i);
		bool given = i <= ATTENTION_V || i == ATTENTION_DY;

		c->wanted[i] = normal_numbers(count, type, (uint64_t)i + 1, 0, given ? 1 : 0);
		c->data[i] = pointer(device_array(d, type, count, given ? c->wanted[i] : NULL));
	}
	for (int i = ATTENTION_STATS; i <= ATTENTION_DQ_SUMS; i++) {
		int64_t count = i == ATTENTION_DQ_SUMS ? ROWS * WIDTH : ROWS;

		c->data[i] = pointer(device_array(d, DTYPE_F32, count,
						  normal_numbers(count, DTYPE_F32, 9, left, 0)));
	}
	c->data[ATTENTION_SEED] = pointer(device_array(d, DTYPE_I32, 2, words));
	c->data[ATTENTION_OFFSET] = pointer(device_array(d, DTYPE_I32, 2, words + 2));
}

static double error_with(struct kernel_device *d, enum dtype type, bool causal,
			 enum mistake mistake)
{
	struct case_of_attention c;
	struct attention_problem forward = problem_of(type, causal && mistake != NO_MASK, false);
	struct attention_problem backward = problem_of(type, causal && mistake != NO_MASK, true);
	float scale = mistake == OTHER_SCALE ? 1.1F * SCALE : SCALE;
	double error;

	open_case(d, &c, type, mistake == SUMS_LEFT ? 1 : 0);
	for (int64_t n = 0; n < SAMPLES * HEADS; n++)
		head(c.wanted, n / HEADS, n % HEADS, causal);
	if (mistake == STRIDES) { /* tokens of a head as if they were adjacent */
		forward.strides[ATTENTION_K][1] = KEYS * WIDTH;
		forward.strides[ATTENTION_K][2] = WIDTH;
	}
	run(d, &c, forward, scale);
	run(d, &c, backward, scale);
	error = worst(d, &c);
	c.cudnn.Destroy(c.handle);
	kernel_device_forget(d);
	return error;
}

/* The sum of the products of two arrays. */
static double dot(struct kernel_device *d, const struct case_of_attention *c, int i, int j)
{
	int64_t count = SAMPLES * HEADS * WIDTH * rows_of(i);
	double sum = 0, *a = read_array(d, (CUdeviceptr)(uintptr_t)c->data[i], c->type, count);
	double *b = read_array(d, (CUdeviceptr)(uintptr_t)c->data[j], c->type, count);

	for (int64_t k = 0; k < count; k++)
		sum += a[k] * b[k];
	return sum;
}

/* y is linear in v, scores are in q and in k. So y dy = v dv and q dq = k dk with any mask that is
 * the same in both passes; and dq is the slope of y dy. */
KERNEL_TEST(dropout_has_one_mask)
{
	const double step = 0.02;
	int64_t count = SAMPLES * HEADS * WIDTH * QUERIES;
	struct case_of_attention c;
	struct attention_problem forward = problem_of(DTYPE_F16, true, false);
	struct attention_problem backward = problem_of(DTYPE_F16, true, true);
	double *q, *dq, sides[2], slope;

	forward.ratio = backward.ratio = 0.4;
	open_case(d, &c, DTYPE_F16, 0);
	run(d, &c, forward, SCALE);
	run(d, &c, backward, SCALE);
	assert_true(fabs(dot(d, &c, ATTENTION_Y, ATTENTION_DY) -
			 dot(d, &c, ATTENTION_V, ATTENTION_DV)) < 0.05);
	assert_true(fabs(dot(d, &c, ATTENTION_Q, ATTENTION_DQ) -
			 dot(d, &c, ATTENTION_K, ATTENTION_DK)) < 0.05);
	slope = dot(d, &c, ATTENTION_DQ, ATTENTION_DQ);
	dq = read_array(d, (CUdeviceptr)(uintptr_t)c.data[ATTENTION_DQ], DTYPE_F16, count);
	for (int side = 0; side < 2; side++) {
		q = normal_numbers(count, DTYPE_F16, ATTENTION_Q + 1, 0, 1);
		for (int64_t i = 0; i < count; i++)
			q[i] = in_type(q[i] + (side ? step : -step) * dq[i], DTYPE_F16);
		c.data[ATTENTION_Q] = pointer(device_array(d, DTYPE_F16, count, q));
		run(d, &c, forward, SCALE);
		sides[side] = dot(d, &c, ATTENTION_Y, ATTENTION_DY);
	}
	assert_true(fabs((sides[1] - sides[0]) / (2 * step) - slope) < 0.05 * slope);
	/* Another mask in the gradient is seen. */
	backward.ratio = 0;
	run(d, &c, backward, SCALE);
	assert_true(fabs(dot(d, &c, ATTENTION_Y, ATTENTION_DY) -
			 dot(d, &c, ATTENTION_V, ATTENTION_DV)) > 0.5);
	/* The weights of a query still sum to 1 on average. */
	count = SAMPLES * HEADS * WIDTH * KEYS;
	c.data[ATTENTION_V] = pointer(
		device_array(d, DTYPE_F16, count, normal_numbers(count, DTYPE_F16, 1, 1, 0)));
	run(d, &c, forward, SCALE);
	q = read_array(d, (CUdeviceptr)(uintptr_t)c.data[ATTENTION_Y], DTYPE_F16, ROWS * WIDTH);
	slope = 0;
	for (int i = 0; i < ROWS * WIDTH; i++)
		slope += q[i] / (ROWS * WIDTH);
	assert_true(fabs(slope - 1) < 0.2);
	c.cudnn.Destroy(c.handle);
}

KERNEL_TEST(attention_is_right)
{
	for (int causal = 0; causal < 2; causal++) {
		assert_true(error_with(d, DTYPE_F16, causal, NONE) < 0.01);
		assert_true(error_with(d, DTYPE_BF16, causal, NONE) < 0.08);
	}
}

KERNEL_TEST(mistakes_are_seen)
{
	for (enum mistake mistake = NO_MASK; mistake < MISTAKES; mistake++)
		assert_true(error_with(d, DTYPE_F16, true, mistake) > 0.1);
}

/* What cuDNN's engines do not take. */
KERNEL_TEST(others_are_refused)
{
	struct cudnn cudnn;
	struct error err = ERROR_INIT;
	cudnn_handle handle;

	check(cudnn_load(&cudnn, NULL, &err), &err);
	assert_int_equal(cudnn.Create(&handle), 0);
	for (int i = 0; i < 2; i++) {
		struct attention_problem p =
			problem_of(i == 0 ? DTYPE_F32 : DTYPE_F16, true, false);
		struct cudnn_plan plan;

		p.width = i == 0 ? WIDTH : WIDTH - 1;
		assert_int_equal(
			attention_plan_make(&cudnn, handle, NULL, &p, "attention", &plan, &err),
			PRONY_UNSUPPORTED);
		error_clear(&err);
	}
	cudnn.Destroy(handle);
	(void)d;
}
