/* The native executor's own loops and its memory plan. Needs no library. */
#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/broadcast_reduce.h"
#include "adapters/native/cpu/kernels/loops.h"
#include "adapters/native/program.h"
#include "unit_test.h"

#define ELEMENTS 1003 /* not a multiple of any vector length */

static float w[ELEMENTS], v[ELEMENTS], g[ELEMENTS], before[ELEMENTS];

static void fill(float *x, struct random *random)
{
	for (size_t i = 0; i < ELEMENTS; i++)
		x[i] = (float)random_normal(random);
}

static void assert_near(double have, double want)
{
	if (!(fabs(have - want) <= 2e-6 * (1 + fabs(want))))
		fail_msg("%.9g, not %.9g", have, want);
}

TEST(updates_follow_their_formulas)
{
	const struct kernels *kernels = kernels_pick();
	struct update_rule rule = {0.1f, 0.9f,	0.01f, 0.8f, 1e-3f,    0.9f, 0.99f,
				   0.1f, 0.01f, 2,     3,    ELEMENTS, 0.5f};
	float old_v[ELEMENTS], both[2 * ELEMENTS];
	struct random random;

	random_init(&random, 1);
	fill(before, &random), fill(g, &random), fill(v, &random);
	for (size_t i = 0; i < ELEMENTS; i++)
		v[i] = fabsf(v[i]);
	memcpy(old_v, v, sizeof(v));
	memcpy(w, before, sizeof(w));
	kernels->sgd(w, NULL, g, &rule, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_near((double)w[i], before[i] - 0.1 * (0.5 * g[i] + 0.01 * before[i]));
	memcpy(w, before, sizeof(w));
	kernels->momentum(w, v, g, &rule, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++) {
		double moment = 0.9 * old_v[i] + 0.5 * g[i] + 0.01 * before[i];

		assert_near((double)v[i], moment);
		assert_near((double)w[i], before[i] - 0.1 * moment);
	}
	memcpy(w, before, sizeof(w));
	memcpy(v, old_v, sizeof(v));
	kernels->rmsprop(w, v, g, &rule, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++) {
		double gradient = 0.5 * g[i] + 0.01 * before[i];
		double square = 0.8 * old_v[i] + 0.2 * gradient * gradient;

		assert_near((double)v[i], square);
		assert_near((double)w[i], before[i] - 0.1 * gradient / (sqrt(square) + 1e-3));
	}
	memcpy(w, before, sizeof(w));
	memcpy(both, old_v, sizeof(old_v));
	memcpy(both + ELEMENTS, old_v, sizeof(old_v));
	kernels->adamw(w, both, g, &rule, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++) {
		double gradient = 0.5 * g[i], moment = 0.9 * old_v[i] + 0.1 * gradient;
		double square = 0.99 * old_v[i] + 0.01 * gradient * gradient;

		assert_near((double)both[i], moment);
		assert_near((double)both[ELEMENTS + i], square);
		assert_near((double)w[i],
			    0.999 * before[i] - 0.1 * 2 * moment / (sqrt(3 * square) + 1e-3));
	}
}

/* In place, like the executor's calls. */
TEST(elementwise_loops_work_in_place)
{
	const struct kernels *kernels = kernels_pick();
	struct random random;

	random_init(&random, 2);
	fill(before, &random), fill(g, &random);
	memcpy(w, before, sizeof(w));
	kernels->relu[0](w, w, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_true(w[i] == (before[i] > 0 ? before[i] : 0));
	memcpy(v, g, sizeof(v));
	kernels->relu_grad[0](v, v, w, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_true(v[i] == (before[i] > 0 ? g[i] : 0));
}

TEST(bf16_rounds_to_nearest_even)
{
	static const struct {
		float from;
		uint16_t to;
	} cases[] = {
		{1, 0x3f80},
		{-2.5f, 0xc020},
		{0x1.01p0f, 0x3f80},	   /* half way, down to even */
		{0x1.03p0f, 0x3f82},	   /* half way, up to even */
		{0x1.010002p0f, 0x3f81},   /* more than half */
		{0x1.fffffep127f, 0x7f80}, /* beyond the largest */
		{-0.0f, 0x8000},
		{INFINITY, 0x7f80},
		{0x1p-149f, 0},
		{0x1.8p-133f, 0x0002},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(bf16_from_float(cases[i].from), cases[i].to);
	assert_true(isnan(bf16_to_float(bf16_from_float(NAN))));
	/* bf16 values do not change. */
	for (uint32_t i = 0; i < 0x7f80; i++)
		assert_int_equal(bf16_from_float(bf16_to_float((uint16_t)i)), i);
}

/* Each bf16 loop is the fp32 loop on the same numbers, rounded. */
TEST(bf16_loops_round_what_fp32_computes)
{
	static uint16_t a[ELEMENTS], b[ELEMENTS], out[ELEMENTS];
	static uint8_t mask[2][ELEMENTS];
	const struct kernels *kernels = kernels_pick();
	const struct dropout_draw draw = dropout_draw_make(1, 2, 3, 0.3);
	struct random random;

	random_init(&random, 3);
	fill(w, &random), fill(g, &random);
	for (size_t i = 0; i < ELEMENTS; i++) {
		w[i] = bf16_to_float(a[i] = bf16_from_float(w[i]));
		g[i] = bf16_to_float(b[i] = bf16_from_float(g[i]));
	}
	kernels->relu[1](out, a, ELEMENTS);
	kernels->relu[0](v, w, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_int_equal(out[i], bf16_from_float(v[i]));
	kernels->relu_grad[1](out, b, a, ELEMENTS);
	kernels->relu_grad[0](v, g, w, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_int_equal(out[i], bf16_from_float(v[i]));
	kernels->dropout[1](out, mask[0], a, &draw, 5, ELEMENTS);
	kernels->dropout[0](v, mask[1], w, &draw, 5, ELEMENTS);
	assert_memory_equal(mask[0], mask[1], ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_int_equal(out[i], bf16_from_float(v[i]));
	kernels->dropout_grad[1](out, b, mask[0], draw.scale, ELEMENTS);
	kernels->dropout_grad[0](v, g, mask[0], draw.scale, ELEMENTS);
	for (size_t i = 0; i < ELEMENTS; i++)
		assert_int_equal(out[i], bf16_from_float(v[i]));
}

/* Rows of `a` with one repeated `b`, and sums of columns, in both types. */
TEST(strided_loops_do_both_types)
{
	enum { ROWS = 17, COLUMNS = 59 };
	static uint16_t a[ROWS * COLUMNS], b[COLUMNS], out[ROWS * COLUMNS];
	struct broadcast_walk walk = {.rank = 2,
				      .dims = {ROWS, COLUMNS},
				      .out = {COLUMNS, 1},
				      .a = {COLUMNS, 1},
				      .b = {0, 1}};
	struct reduce_sum sum = {.factor = 0.5f,
				 .rank = 2,
				 .kept = 1,
				 .dims = {COLUMNS, ROWS},
				 .out = {1},
				 .a = {1, COLUMNS}};
	float sums[2][COLUMNS];
	struct random random;

	random_init(&random, 4);
	fill(w, &random), fill(g, &random);
	for (size_t i = 0; i < ROWS * COLUMNS; i++)
		w[i] = bf16_to_float(a[i] = bf16_from_float(w[i]));
	for (size_t i = 0; i < COLUMNS; i++)
		g[i] = bf16_to_float(b[i] = bf16_from_float(g[i]));
	for (int op = BROADCAST_ADD; op <= BROADCAST_DIV; op++) {
		walk.op = (enum broadcast_op)op;
		walk.bf16 = true;
		broadcast_walk_run(&walk, out, a, b, 0, ROWS);
		walk.bf16 = false;
		broadcast_walk_run(&walk, v, w, g, 0, ROWS);
		for (size_t i = 0; i < ROWS * COLUMNS; i++)
			assert_int_equal(out[i], bf16_from_float(v[i]));
	}
	sum.bf16 = true;
	reduce_sum_run(&sum, sums[0], a, 0, COLUMNS);
	sum.bf16 = false;
	reduce_sum_run(&sum, sums[1], w, 0, COLUMNS);
	assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
}

static double exact_loss(const float *logits, size_t classes, size_t label)
{
	double sum = 0;

	for (size_t i = 0; i < classes; i++)
		sum += exp((double)logits[i] - (double)logits[label]);
	return log(sum);
}

TEST(the_loss_is_accurate)
{
	enum { ROWS = 17, CLASSES = 59 };
	const struct kernels *kernels = kernels_pick();
	static float logits[ROWS * CLASSES], gradient[ROWS * CLASSES];
	int32_t labels[ROWS];
	double want = 0, have;
	struct random random;

	random_init(&random, 3);
	for (size_t i = 0; i < ROWS * CLASSES; i++)
		logits[i] = (float)(30 * random_normal(&random)); /* some exponents underflow */
	for (size_t row = 0; row < ROWS; row++) {
		labels[row] = (int32_t)random_below(&random, CLASSES);
		want += exact_loss(logits + row * CLASSES, CLASSES, (size_t)labels[row]);
	}
	have = kernels->cross_entropy(gradient, logits, labels, 0.5f, ROWS, CLASSES);
	assert_true(fabs(have - want) <= 1e-6 * want);
	for (size_t row = 0; row < ROWS; row++) {
		for (size_t i = 0; i < CLASSES; i++) {
			double p = exp(-exact_loss(logits + row * CLASSES, CLASSES, i));

			assert_near((double)gradient[row * CLASSES + i],
				    0.5 * (p - ((size_t)labels[row] == i)));
		}
	}
	logits[5] = NAN;
	assert_true(isnan(kernels->cross_entropy(gradient, logits, labels, 1, ROWS, CLASSES)));
}

static size_t kept(const uint8_t *mask, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += mask[i];
	return sum;
}

TEST(masks_depend_on_seed_step_and_node_only)
{
	enum { N = 100000 };
	const struct kernels *kernels = kernels_pick();
	static float x[N], y[N];
	static uint8_t masks[2][N];
	struct dropout_draw first = dropout_draw_make(1, 2, 3, 0.2);
	const struct dropout_draw others[] = {dropout_draw_make(9, 2, 3, 0.2),
					      dropout_draw_make(1, 9, 3, 0.2),
					      dropout_draw_make(1, 2, 9, 0.2)};
	size_t count;

	for (size_t i = 0; i < N; i++)
		x[i] = 1;
	kernels->dropout[0](y, masks[0], x, &first, 0, N);
	count = kept(masks[0], N);
	assert_in_range(count, N * 0.8 - 5 * 127, N * 0.8 + 5 * 127); /* standard deviation 126.5 */
	for (size_t i = 0; i < N; i++)
		assert_near((double)y[i], masks[0][i] ? 1.25 : 0);
	/* The mask is the same when split over threads. */
	kernels->dropout[0](y, masks[1], x, &first, 0, 777);
	kernels->dropout[0](y + 777, masks[1] + 777, x + 777, &first, 777, N - 777);
	assert_memory_equal(masks[0], masks[1], N);
	for (size_t k = 0; k < 3; k++) {
		size_t agree = 0;

		kernels->dropout[0](y, masks[1], x, &others[k], 0, N);
		for (size_t i = 0; i < N; i++)
			agree += masks[0][i] == masks[1][i];
		/* Independent masks agree in 0.8^2 + 0.2^2 of the elements. */
		assert_in_range(agree, N * 0.68 - 5 * 148, N * 0.68 + 5 * 148);
	}
}

TEST(plans_reuse_and_never_overlap)
{
	enum { N = 300 };
	static struct buffer buffers[N];
	struct buffer chain[] = {
		{1000, 0, 0, 1}, {1000, 0, 1, 2}, {1000, 0, 2, 3}, {1000, 0, 3, 4}};
	struct random random;
	SCOPED(arena) arena;
	size_t total, sum = 0;

	arena_init(&arena, 0);
	assert_int_equal(memory_plan(chain, 4, &arena), 2048);
	random_init(&random, 5);
	for (size_t i = 0; i < N; i++) {
		buffers[i].bytes = 1 + (size_t)random_below(&random, 5000);
		buffers[i].first = (int)random_below(&random, 100);
		buffers[i].last = buffers[i].first + (int)random_below(&random, 20);
		sum += buffers[i].bytes;
	}
	total = memory_plan(buffers, N, &arena);
	assert_true(total < sum / 3);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(buffers[i].offset % 64, 0);
		assert_true(buffers[i].offset + buffers[i].bytes <= total);
		for (size_t k = 0; k < i; k++)
			assert_true(buffers[i].last < buffers[k].first ||
				    buffers[k].last < buffers[i].first ||
				    buffers[i].offset + buffers[i].bytes <= buffers[k].offset ||
				    buffers[k].offset + buffers[k].bytes <= buffers[i].offset);
	}
}
