/* Some results of a convolution as plain sums in float64. */
#include <math.h>

#include "adapters/native/cuda/conv_plan.h"

/* Multiplications that checking one plan may cost. */
#define TERMS_MAX 8e6

enum tensor_place { PLACE_X, PLACE_W, PLACE_Y };

/* What one result is summed from. */
struct sum {
	const struct conv_problem *problem;
	const float *numbers;
	int64_t index[4]; /* of the result in its tensor */
	double value;
};

static int64_t offset(const struct conv_problem *problem, const int64_t dims[4], const int64_t i[4])
{
	return problem->channels_last ? ((i[0] * dims[2] + i[2]) * dims[3] + i[3]) * dims[1] + i[1]
				      : ((i[0] * dims[1] + i[1]) * dims[2] + i[2]) * dims[3] + i[3];
}

static const int64_t *dims_of(const struct conv_problem *problem, enum tensor_place place)
{
	return place == PLACE_X ? problem->x : place == PLACE_W ? problem->w : problem->y;
}

int64_t conv_shift(int tensor)
{
	return tensor * 7919;
}

static double number(const struct sum *s, enum tensor_place place, const int64_t index[4])
{
	int64_t at = offset(s->problem, dims_of(s->problem, place), index);

	return (double)s->numbers[(at + conv_shift((int)place)) % CONV_NUMBERS];
}

/* Adds the products of y[n][k] and x[n][c] under the weight [k][c of the group][r][s], for the one
 * place of y that reads it at `of` on both axes, if there is one. */
static void add(struct sum *s, const int64_t y[4], const int64_t w[4])
{
	const struct conv_problem *p = s->problem;
	int64_t x[4] = {y[0], y[1] / (p->w[0] / (p->x[1] / p->w[1])) * p->w[1] + w[1]};

	for (int i = 0; i < 2; i++) {
		x[2 + i] = y[2 + i] * p->strides[i] - p->before[i] + w[2 + i] * p->dilations[i];
		if (x[2 + i] < 0 || x[2 + i] >= p->x[2 + i])
			return;
	}
	s->value += p->kind == CONV_FORWARD	 ? number(s, PLACE_X, x) * number(s, PLACE_W, w)
		    : p->kind == CONV_GRAD_INPUT ? number(s, PLACE_Y, y) * number(s, PLACE_W, w)
						 : number(s, PLACE_X, x) * number(s, PLACE_Y, y);
}

static void sum_forward(struct sum *s)
{
	const struct conv_problem *p = s->problem;

	for (int64_t c = 0; c < p->w[1]; c++) {
		for (int64_t r = 0; r < p->w[2]; r++) {
			for (int64_t q = 0; q < p->w[3]; q++)
				add(s, s->index, (const int64_t[]){s->index[1], c, r, q});
		}
	}
}

/* The place of y that reads the input at `of` through the weight at `at`; -1 if none does. */
static int64_t reader(const struct conv_problem *p, int axis, int64_t of, int64_t at)
{
	int64_t from = of + p->before[axis] - at * p->dilations[axis];

	return from < 0 || from % p->strides[axis] || from / p->strides[axis] >= p->y[2 + axis]
		       ? -1
		       : from / p->strides[axis];
}

static void sum_grad_input(struct sum *s)
{
	const struct conv_problem *p = s->problem;
	int64_t outputs = p->w[0] / (p->x[1] / p->w[1]), group = s->index[1] / p->w[1];

	for (int64_t k = group * outputs; k < (group + 1) * outputs; k++) {
		for (int64_t r = 0; r < p->w[2]; r++) {
			for (int64_t q = 0; q < p->w[3]; q++) {
				int64_t w[4] = {k, s->index[1] % p->w[1], r, q};
				int64_t y[4] = {s->index[0], k, reader(p, 0, s->index[2], r),
						reader(p, 1, s->index[3], q)};

				if (y[2] >= 0 && y[3] >= 0)
					add(s, y, w);
			}
		}
	}
}

static void sum_grad_weight(struct sum *s)
{
	const struct conv_problem *p = s->problem;

	for (int64_t n = 0; n < p->y[0]; n++) {
		for (int64_t h = 0; h < p->y[2]; h++) {
			for (int64_t w = 0; w < p->y[3]; w++)
				add(s, (const int64_t[]){n, s->index[0], h, w}, s->index);
		}
	}
}

static double terms(const struct conv_problem *p)
{
	double window = (double)(p->w[2] * p->w[3]);

	return p->kind == CONV_FORWARD	    ? window * (double)p->w[1]
	       : p->kind == CONV_GRAD_INPUT ? window * (double)p->w[0]
					    : (double)(p->y[0] * p->y[2] * p->y[3]);
}

int conv_samples(const struct conv_problem *problem, const float *numbers,
		 struct conv_sample out[CONV_SAMPLES_MAX])
{
	static void (*const sums[])(struct sum *) = {sum_forward, sum_grad_input, sum_grad_weight};
	const int64_t *dims = dims_of(problem, problem->kind == CONV_FORWARD	  ? PLACE_Y
					       : problem->kind == CONV_GRAD_INPUT ? PLACE_X
										  : PLACE_W);
	double afford = TERMS_MAX / terms(problem);
	int count = afford < 4 ? 4 : afford > CONV_SAMPLES_MAX ? CONV_SAMPLES_MAX : (int)afford;
	uint64_t state = 1;

	for (int i = 0; i < count; i++) {
		struct sum s = {.problem = problem, .numbers = numbers};

		for (int k = 0; k < 4; k++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			s.index[k] = (int64_t)((state >> 33) % (uint64_t)dims[k]);
		}
		sums[problem->kind](&s);
		out[i] = (struct conv_sample){.at = offset(problem, dims, s.index),
					      .sum = problem->relu && s.value < 0 ? 0 : s.value};
	}
	return count;
}

double conv_error(const struct conv_sample *samples, int count)
{
	double wrong = 0, all = 0;

	for (int i = 0; i < count; i++) {
		double difference = (double)samples[i].found - samples[i].sum;

		wrong += difference * difference;
		all += samples[i].sum * samples[i].sum;
	}
	return sqrt(wrong / (all > 0 ? all : 1));
}
