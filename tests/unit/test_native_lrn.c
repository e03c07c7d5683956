/* The native executor's own local response normalisation against a direct computation, on every
 * instruction set of this processor. Needs no library. */
#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/lrn.h"
#include "unit_test.h"

#define SAMPLES 2
#define POSITIONS 5

/* The inputs and the expected outputs, also in bf16 for a bf16 layer. */
struct arrays {
	size_t count;
	float *x, *dy, *y, *dx;
	uint16_t *low_x, *low_dy, *low;
	float *out, *scratch;
};

static size_t element(const struct lrn *lrn, int64_t sample, int64_t position, int64_t c)
{
	return (size_t)(sample * lrn->sample_stride + position * lrn->position_stride +
			c / lrn->block * lrn->block_stride + c % lrn->block);
}

static void arrays_make(struct arrays *a, const struct lrn *lrn, struct random *random)
{
	size_t scratch = lrn_scratch_floats(lrn);

	a->count = (size_t)(SAMPLES * lrn->sample_stride);
	a->x = test_keep(memory_alloc(a->count * sizeof(float)));
	a->dy = test_keep(memory_alloc(a->count * sizeof(float)));
	a->y = test_keep(memory_alloc(a->count * sizeof(float)));
	a->dx = test_keep(memory_alloc(a->count * sizeof(float)));
	a->out = test_keep(memory_alloc(a->count * sizeof(float)));
	a->low_x = test_keep(memory_alloc(a->count * sizeof(uint16_t)));
	a->low_dy = test_keep(memory_alloc(a->count * sizeof(uint16_t)));
	a->low = test_keep(memory_alloc(a->count * sizeof(uint16_t)));
	a->scratch = test_keep(memory_alloc(scratch * sizeof(float)));
	for (size_t i = 0; i < scratch; i++)
		a->scratch[i] = 0;
	for (size_t i = 0; i < a->count; i++) {
		/* Values that bf16 can represent, so that one reference serves both types; small
		 * and large sums. */
		a->low_x[i] = bf16_from_float((float)random_normal(random) *
					      (random_below(random, 3) ? 1 : 60));
		a->low_dy[i] = bf16_from_float((float)random_normal(random));
		a->x[i] = bf16_to_float(a->low_x[i]);
		a->dy[i] = bf16_to_float(a->low_dy[i]);
	}
}

static double sum_around(const struct lrn *lrn, const struct arrays *a, int64_t sample,
			 int64_t position, int64_t c)
{
	double sum = 0;

	for (int64_t k = c - lrn->before; k <= c + lrn->after; k++)
		if (k >= 0 && k < lrn->channels)
			sum += pow((double)a->x[element(lrn, sample, position, k)], 2);
	return (double)lrn->bias + (double)lrn->scale * sum;
}

/* Computes y and dx of one position. */
static void reference(const struct lrn *lrn, struct arrays *a, int64_t sample, int64_t position)
{
	double beta = (double)lrn->beta;

	for (int64_t c = 0; c < lrn->channels; c++) {
		size_t at = element(lrn, sample, position, c);
		double s = sum_around(lrn, a, sample, position, c), sum = 0;

		a->y[at] = (float)((double)a->x[at] * pow(s, -beta));
		for (int64_t j = c - lrn->after; j <= c + lrn->before; j++) {
			double other;
			size_t k;

			if (j < 0 || j >= lrn->channels)
				continue;
			k = element(lrn, sample, position, j);
			other = sum_around(lrn, a, sample, position, j);
			sum += (double)a->dy[k] * (double)a->x[k] * pow(other, -beta - 1);
		}
		a->dx[at] = (float)((double)a->dy[at] * pow(s, -beta) -
				    2 * beta * (double)lrn->scale * (double)a->x[at] * sum);
	}
}

/* Compares each channel of each position. The gaps between positions must be unwritten. */
static void compare(const struct lrn *lrn, const struct arrays *a, const float *want)
{
	for (int64_t i = 0; i < SAMPLES * POSITIONS * lrn->channels; i++) {
		int64_t c = i % lrn->channels, position = i / lrn->channels % POSITIONS;
		size_t at = element(lrn, i / lrn->channels / POSITIONS, position, c);
		double have = (double)(lrn->bf16 ? bf16_to_float(a->low[at]) : a->out[at]);
		double bound = (lrn->bf16 ? 0x1p-8 : 2e-6) * (fabs((double)want[at]) + 1e-3);

		/* A gradient is a difference of terms. */
		if (want == a->dx)
			bound += (lrn->bf16 ? 0x1p-8 : 2e-6) * fabs((double)a->dy[at]);
		if (!(fabs(have - (double)want[at]) <= bound))
			fail_msg("channel %d of %d is %.9g, not %.9g", (int)c, (int)lrn->channels,
				 have, (double)want[at]);
	}
}

static void verify(struct lrn *lrn, struct arrays *a)
{
	const size_t positions = SAMPLES * POSITIONS, part = 3;
	void *out = lrn->bf16 ? (void *)a->low : (void *)a->out;
	const void *x = lrn->bf16 ? (const void *)a->low_x : (const void *)a->x;
	const void *dy = lrn->bf16 ? (const void *)a->low_dy : (const void *)a->dy;

	/* The scratch memory holds the data of the previous calls. */
	lrn_forward(lrn, out, x, a->scratch, 0, part);
	lrn_forward(lrn, out, x, a->scratch, part, positions);
	compare(lrn, a, a->y);
	lrn_backward(lrn, out, x, dy, a->scratch, 0, part);
	lrn_backward(lrn, out, x, dy, a->scratch, part, positions);
	compare(lrn, a, a->dx);
	if (lrn->bf16)
		return;
	/* In place. */
	for (size_t i = 0; i < a->count; i++)
		a->out[i] = a->x[i];
	lrn_forward(lrn, a->out, a->out, a->scratch, 0, positions);
	compare(lrn, a, a->y);
	for (size_t i = 0; i < a->count; i++)
		a->out[i] = a->dy[i];
	lrn_backward(lrn, a->out, a->x, a->out, a->scratch, 0, positions);
	compare(lrn, a, a->dx);
}

/* Channels last, or in blocks, of which the last may be padded. */
static void lay_out(struct lrn *lrn, int64_t channels, int64_t block)
{
	int64_t blocks = block ? (channels + block - 1) / block : 1;

	lrn->channels = channels;
	lrn->positions = POSITIONS;
	lrn->block = block ? block : channels;
	lrn->position_stride = lrn->block;
	lrn->block_stride = block ? POSITIONS * block : 0;
	lrn->sample_stride = blocks * POSITIONS * lrn->block;
}

TEST(every_window_and_layout)
{
	static const struct {
		int64_t before, after;
		float scale, bias, beta;
	} layers[] = {
		{2, 2, 1e-4f / 5, 1, 0.75f}, {2, 2, 2e-3f, 2, 0.75f}, {1, 1, 0.3f, 1, 0.75f},
		{1, 2, 0.1f, 1, 0.5f},	     {0, 0, 1, 1, 1},	      {4, 4, 0.02f, 0.5f, 0.75f},
		{20, 20, 0.01f, 1, 0.75f},
	};
	static const int64_t channels[] = {1, 3, 16, 21, 64, 96};
	static const int64_t blocks[] = {0, 8, 16};
	struct random random;

	random_init(&random, 7);
	for (size_t i = 0; i < 7 * 6 * 3 * 2; i++) {
		struct lrn lrn = {.before = layers[i % 7].before,
				  .after = layers[i % 7].after,
				  .scale = layers[i % 7].scale,
				  .bias = layers[i % 7].bias,
				  .beta = layers[i % 7].beta,
				  .bf16 = i / 7 / 6 / 3 == 1};
		struct arrays a;

		lay_out(&lrn, channels[i / 7 % 6], blocks[i / 7 / 6 % 3]);
		lrn.before = lrn.before < lrn.channels ? lrn.before : lrn.channels;
		lrn.after = lrn.after < lrn.channels ? lrn.after : lrn.channels;
		arrays_make(&a, &lrn, &random);
		for (int64_t k = 0; k < SAMPLES * POSITIONS; k++)
			reference(&lrn, &a, k / POSITIONS, k % POSITIONS);
		for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
			lrn.loops = lrn_pick((enum instruction_set)set);
			verify(&lrn, &a);
		}
	}
}
