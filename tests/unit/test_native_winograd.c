/* Convolutions of 3x3 windows by minimal filtering against sums in double, on every instruction set
 * of this processor that has an implementation. Needs no library. */
#include "adapters/native/cpu/kernels/winograd.h"
#include "unit_test.h"

/* Relative to the sum of the magnitudes of all products of a tile's 16 inputs and 9 weights. Each
 * of the four outputs is a sum and difference of all of them, even one whose own window lies in the
 * padding. A float has a precision of 6e-8. */
#define TOLERANCE 5e-7

/* Returns floats that begin at a cache line. */
static float *random_floats(struct random *random, size_t count)
{
	float *made = test_keep(aligned_alloc(64, (count * sizeof(float) / 64 + 1) * 64));

	for (size_t i = 0; i < count; i++)
		made[i] = (float)random_normal(random);
	return made;
}

/* Returns the index of a point of a channel, with channels in blocks of `lanes`. */
static size_t place(int64_t lanes, const int64_t hw[2], int64_t channels, int64_t image,
		    int64_t channel, int64_t row, int64_t column)
{
	int64_t block = image * (channels / lanes) + channel / lanes;

	return (size_t)(((block * hw[0] + row) * hw[1] + column) * lanes + channel % lanes);
}

static size_t floats_of(const struct winograd *c, int64_t channels, const int64_t hw[2])
{
	return (size_t)(c->batch * channels * hw[0] * hw[1]);
}

struct data {
	float *x, *w, *bias, *before, *y;
	bool flipped;
};

/* Returns the weight of tap t from input i to output k, with both in blocks. Flipped: the outputs
 * and inputs of the other direction, and taps counted from the end. */
static double weight(const struct winograd *c, int64_t lanes, const struct data *d, int64_t k,
		     int64_t i, int64_t t)
{
	int64_t output = d->flipped ? i : k, input = d->flipped ? k : i;
	int64_t inputs = (d->flipped ? c->outputs : c->channels) / lanes;
	int64_t block = (output / lanes * inputs + input / lanes) * 9 + (d->flipped ? 8 - t : t);

	return (double)d->w[(block * lanes + input % lanes) * lanes + output % lanes];
}

static double input(const struct winograd *c, int64_t lanes, const struct data *d, int64_t n,
		    int64_t channel, int64_t row, int64_t column)
{
	row -= c->before[0];
	column -= c->before[1];
	if (row < 0 || row >= c->in[0] || column < 0 || column >= c->in[1])
		return 0;
	return (double)d->x[place(lanes, c->in, c->channels, n, channel, row, column)];
}

/* Returns one output in double. *scale: the sum of the magnitudes of all products of its tile. */
static double expected(const struct winograd *c, int64_t lanes, const struct data *d, int64_t n,
		       int64_t k, const int64_t at[2], double *scale)
{
	double sum = d->bias ? (double)d->bias[k] : 0;

	*scale = fabs(sum);
	for (int64_t i = 0; i < c->channels; i++) {
		double inputs = 0, weights = 0;

		for (int64_t t = 0; t < 9; t++) {
			double w = weight(c, lanes, d, k, i, t);

			sum += w * input(c, lanes, d, n, i, at[0] + t / 3, at[1] + t % 3);
			weights += fabs(w);
		}
		for (int64_t t = 0; t < 16; t++)
			inputs += fabs(input(c, lanes, d, n, i, at[0] / 2 * 2 + t / 4,
					     at[1] / 2 * 2 + t % 4));
		*scale += inputs * weights;
	}
	return sum;
}

static void compare(const struct winograd *c, int64_t lanes, const struct data *d)
{
	for (int64_t n = 0; n < c->batch; n++) {
		for (int64_t k = 0; k < c->outputs; k++) {
			for (int64_t p = 0; p < c->out[0] * c->out[1]; p++) {
				const int64_t at[] = {p / c->out[1], p % c->out[1]};
				size_t i = place(lanes, c->out, c->outputs, n, k, at[0], at[1]);
				double scale, sum = expected(c, lanes, d, n, k, at, &scale);

				if (c->sum) {
					sum += (double)d->before[i];
					scale += fabs((double)d->before[i]);
				}
				if (c->relu && sum < 0)
					sum = 0;
				assert_true(fabs((double)d->y[i] - sum) <= TOLERANCE * scale);
			}
		}
	}
}

/* Runs in `shares` shares: the last one first, then the others together. Nothing is written past
 * the end. */
static void check_windows(const struct winograd *c, enum instruction_set set, bool has_bias,
			  size_t shares, bool flipped)
{
	const struct winograd_loops *loops = winograd_pick(set);
	size_t outputs = floats_of(c, c->outputs, c->out), panels, own;
	struct data d = {.flipped = flipped};
	struct random random;
	float *u, *scratch;

	if (!loops)
		return;
	random_init(&random, 11);
	panels = winograd_panels(c, loops);
	own = winograd_scratch_floats(c, loops, shares);
	d.x = random_floats(&random, floats_of(c, c->channels, c->in));
	d.w = random_floats(&random, (size_t)(c->outputs * c->channels * 9));
	d.bias = has_bias ? random_floats(&random, (size_t)c->outputs) : NULL;
	d.before = random_floats(&random, outputs);
	d.y = random_floats(&random, outputs + 1);
	u = random_floats(&random, winograd_weight_floats(c, loops) + 1);
	scratch = random_floats(&random, shares * own + 1);
	for (size_t i = 0; i < outputs; i++)
		d.y[i] = d.before[i];
	d.y[outputs] = u[winograd_weight_floats(c, loops)] = scratch[shares * own] = 7;
	winograd_weights(c, loops, u, d.w, flipped, panels / 2, panels);
	winograd_weights(c, loops, u, d.w, flipped, 0, panels / 2);
	winograd_forward(c, loops, d.y, d.x, u, d.bias, scratch, shares, shares - 1, shares);
	winograd_forward(c, loops, d.y, d.x, u, d.bias, scratch, shares, 0, shares - 1);
	compare(c, winograd_lanes(loops), &d);
	assert_true(d.y[outputs] == 7 && scratch[shares * own] == 7);
	assert_true(u[winograd_weight_floats(c, loops)] == 7);
}

static void verify(const struct winograd *c, enum instruction_set set, bool has_bias, size_t shares)
{
	check_windows(c, set, has_bias, shares, false);
}

static struct winograd layer(int64_t batch, int64_t channels, int64_t outputs, int64_t height,
			     int64_t width, const int64_t pads[4])
{
	return (struct winograd){
		.batch = batch,
		.channels = channels,
		.outputs = outputs,
		.in = {height, width},
		.out = {height + pads[0] + pads[2] - 2, width + pads[1] + pads[3] - 2},
		.before = {pads[0], pads[1]},
	};
}

/* Even and odd images, from one output on. Padding that is even, uneven, none, so wide that whole
 * tiles lie in it, and negative (wide padding becomes negative in the gradient of the input). */
TEST(test_images)
{
	static const int64_t sides[][2] = {{1, 1}, {3, 3}, {4, 7}, {8, 6}, {13, 5}};
	static const int64_t pads[][4] = {
		{1, 1, 1, 1}, {2, 0, 1, 3}, {0, 0, 0, 0}, {5, 6, 4, 5}, {-1, -3, 0, 2}};

	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		for (size_t i = 0; i < 25; i++) {
			const int64_t *side = sides[i / 5];
			struct winograd c = layer(2, 32, 48, side[0], side[1], pads[i % 5]);

			c.sum = i % 3 == 0;
			c.relu = i % 2 == 0;
			if (c.out[0] > 0 && c.out[1] > 0)
				verify(&c, (enum instruction_set)set, i % 4 != 0, 1 + i % 3);
		}
	}
}

/* One and several panels of outputs, half a panel at the end, more and fewer channels; also channel
 * counts that only the narrower vectors divide. */
TEST(test_channels)
{
	static const int64_t channels[][2] = {{16, 16}, {16, 80},  {48, 32},
					      {80, 96}, {160, 16}, {24, 40}};

	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		const struct winograd_loops *loops = winograd_pick((enum instruction_set)set);

		for (size_t i = 0; loops && i < 6; i++) {
			struct winograd c = layer(1, channels[i][0], channels[i][1], 6, 6,
						  (const int64_t[]){1, 1, 1, 1});

			if (c.outputs % winograd_lanes(loops) != 0)
				continue;
			verify(&c, (enum instruction_set)set, true, 2);
			check_windows(&c, (enum instruction_set)set, false, 2, true);
		}
	}
}

/* All numbers of tiles at which the last products are filled up; consecutive blocks; more shares
 * than tiles. */
TEST(test_tiles)
{
	for (int set = INSTRUCTIONS_BASELINE; set <= (int)instruction_set_best(); set++) {
		for (int64_t width = 1; width <= 60; width += width < 30 ? 1 : 6) {
			struct winograd c =
				layer(1, 16, 32, 1, width, (const int64_t[]){1, 1, 1, 1});

			verify(&c, (enum instruction_set)set, false, 1);
		}
		for (size_t shares = 1; shares <= 5; shares += 4) {
			struct winograd many =
				layer(3, 16, 16, 41, 39, (const int64_t[]){1, 1, 1, 1});
			struct winograd few = layer(1, 16, 16, 3, 3, (const int64_t[]){1, 1, 1, 1});

			verify(&many, (enum instruction_set)set, true, shares);
			verify(&few, (enum instruction_set)set, true, shares);
		}
	}
}
