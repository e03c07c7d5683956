/* Trainings until a target: their words, the statistics with known truth (docs/accuracy.md has the
 * rates). */
#include "cell/until.h"
#include "stats/target.h"
#include "unit_test.h"

enum { SEEDS = 20, FEW = 6, EVALUATIONS = 12 };

static void between(const char *what, double found, double low, double high)
{
	print_message("%s: %.1f %%\n", what, 100 * found);
	if (!(found >= low && found <= high))
		fail_msg("%s: %.4f is not between %g and %g", what, found, low, high);
}

TEST(targets_are_words)
{
	static const char *const wrong[] = {
		"",	    "accuracy",	       "accuracy=",   "accuracy=0",
		"loss=0",   "accuracy=1.01",   "accuracy=-1", "loss=1e-3",
		"loss=inf", "accuracy=0.9a",   "top5=0.9",    "loss=nan",
		"loss= 1",  "accuracy=0.98765"};
	char text[UNTIL_BYTES];
	struct until until = {.every = 7};

	assert_true(until_parse("accuracy=0.9950", &until));
	until_text(&until, text);
	assert_string_equal(text, "accuracy=0.995");
	assert_true(until_reached(&until, until_value(&until, 0.995, 9)));
	assert_false(until_reached(&until, until_value(&until, 0.99, 0)));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(until_parse(wrong[i], &until));
	assert_true(until.goal == GOAL_ACCURACY && until.every == 7);
	assert_true(until_parse("loss=0.05", &until));
	assert_true(until_reached(&until, until_value(&until, 0, 0.05)));
	assert_false(until_reached(&until, until_value(&until, 1, 0.06)));
}

TEST(medians_have_order_statistics)
{
	double steps[SEEDS];
	struct median_interval found;

	for (int i = 0; i < SEEDS; i++)
		steps[i] = (i * 7 + 3) % SEEDS + 1; /* 1 to 20 */
	median_interval_of(steps, SEEDS, &found);   /* the 6th and the 15th, by tables */
	assert_true(found.median == 10.5 && found.low == 6 && found.high == 15);
	median_interval_of(steps, 5, &found);
	assert_true(isnan(found.low) && isnan(found.high) && isfinite(found.median));
	double few[] = {3, 1, INFINITY, 2, 5, 4};
	median_interval_of(few, 6, &found);
	assert_true(found.median == 3.5 && found.low == 1 && isinf(found.high));
	median_interval_of(few, 0, &found);
	assert_true(isnan(found.median));
	double most[] = {7, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
	median_interval_of(most, 6, &found);
	assert_true(isinf(found.median) && found.low == 7 && isinf(found.high));
}

/* A training whose error falls: the seed decides how fast, evaluations are every 10 steps. `shift`:
 * of the framework, in standard deviations of seeds. */
struct simulated {
	double steps[SEEDS], curves[SEEDS][EVALUATIONS];
	const double *rows[SEEDS];
	int64_t seeds[SEEDS];
	struct trainings trainings;
};

#define MEDIAN 200.0
#define SEED_SD 0.2

static void simulate(struct random *random, size_t count, double shift, double limit,
		     struct simulated *out)
{
	for (size_t i = 0; i < count; i++) {
		double speed = SEED_SD * (random_normal(random) + shift);
		double exact = MEDIAN * exp(speed);

		out->steps[i] = exact > limit ? INFINITY : 10 * ceil(exact / 10);
		for (int e = 0; e < EVALUATIONS; e++)
			out->curves[i][e] =
				exp(-0.2 * (e + 1) * exp(-speed)) + 0.01 * random_normal(random);
		out->rows[i] = out->curves[i];
		out->seeds[i] = (int64_t)i;
	}
	out->trainings = (struct trainings){out->steps, out->seeds, out->rows, count, EVALUATIONS};
}

/* The share of trials in which any p is at most 5 %. */
static double found_other(uint64_t seed, double shift, double limit, int trials)
{
	struct simulated a, b;
	struct random random;
	int found = 0;

	random_init(&random, seed);
	for (int trial = 0; trial < trials; trial++) {
		struct sameness same;

		simulate(&random, SEEDS, 0, limit, &a);
		simulate(&random, FEW, shift, limit, &b);
		trainings_compare(&a.trainings, &b.trainings, (uint64_t)trial, &same);
		found += same.p <= 0.05;
	}
	return (double)found / trials;
}

TEST(other_distributions_are_found)
{
	between("equal frameworks that are named", found_other(1, 0, INFINITY, 400), 0.01, 0.07);
	between("the same, half of the trainings unfinished", found_other(2, 0, MEDIAN, 300), 0.01,
		0.08);
	between("a shift of 1.5 deviations found", found_other(3, 1.5, INFINITY, 200), 0.7, 1);
	between("a shift of 2 deviations found", found_other(4, 2, INFINITY, 200), 0.93, 1);
}

TEST(curves_of_the_same_seed_are_near)
{
	struct simulated a, b;
	struct random random;
	struct sameness same;

	random_init(&random, 7);
	simulate(&random, FEW, 0, INFINITY, &a);
	b = a;
	for (size_t i = 0; i < FEW; i++)
		b.rows[i] = b.curves[i];
	b.trainings = (struct trainings){b.steps, b.seeds, b.rows, FEW, EVALUATIONS - 1};
	trainings_compare(&a.trainings, &b.trainings, 1, &same);
	assert_true(same.apart == 0 && same.p == 1);
	simulate(&random, FEW, 0, INFINITY, &b);
	trainings_compare(&a.trainings, &b.trainings, 1, &same);
	assert_true(same.apart > 0.5 && same.apart < 1.5);
	/* 3 of 7 can be chosen in 35 ways, 3 of 9 in 84: 4 / 35 and 4 / 84. */
	b.trainings.count = 3;
	a.trainings.count = 4;
	trainings_compare(&a.trainings, &b.trainings, 1, &same);
	assert_true(isnan(same.p) && same.apart > 0.5);
	a.trainings.count = FEW;
	trainings_compare(&a.trainings, &b.trainings, 1, &same);
	assert_true(!isnan(same.p));
	b.trainings.count = 1;
	trainings_compare(&a.trainings, &b.trainings, 1, &same);
	assert_true(isnan(same.p));
}

/* The estimand: the median number of steps to an evaluation, times the step. */
static double covered(int64_t every, double step_sd)
{
	enum { TRIALS = 3000, PROCESSES = 6 };
	const double truth = (double)every * ceil(MEDIAN / (double)every) * 5e6;
	struct random random;
	int held = 0;

	random_init(&random, 11);
	for (int trial = 0; trial < TRIALS; trial++) {
		double means[PROCESSES], seeds[SEEDS];
		struct estimate step;
		struct median_interval steps;
		struct target_time time;

		for (int i = 0; i < SEEDS; i++) {
			double exact = MEDIAN * exp(SEED_SD * random_normal(&random));
			seeds[i] = exact > 1.2 * MEDIAN
					   ? INFINITY
					   : (double)every * ceil(exact / (double)every);
		}
		for (int i = 0; i < PROCESSES; i++)
			means[i] = 5e6 * exp(step_sd * random_normal(&random));
		estimate_compute(means, PROCESSES, 0, false, &step);
		median_interval_of(seeds, SEEDS, &steps);
		target_time_of(&steps, &step, &time);
		held += time.low <= truth && truth <= time.high;
	}
	return (double)held / TRIALS;
}

TEST(intervals_of_a_time_cover)
{
	between("coverage, an evaluation every step", covered(1, 0.005), 0.94, 1);
	between("coverage, 20 evaluations until then", covered(10, 0.02), 0.94, 1);
	between("coverage, 5 evaluations until then", covered(40, 0.02), 0.94, 1);
}

TEST(unknown_ends_stay_unknown)
{
	struct estimate step = {.center = 2, .low = NAN, .high = NAN}, known = {.center = 2};
	struct target_time time;

	target_time_of(&(struct median_interval){100, 80, 120}, &step, &time);
	assert_true(time.ns == 200 && isnan(time.low) && isnan(time.high));
	known.low = 1.9;
	known.high = 2.1;
	target_time_of(&(struct median_interval){INFINITY, 80, INFINITY}, &known, &time);
	assert_true(isinf(time.ns) && time.low == 80 * 1.9 && isinf(time.high));
	target_time_of(&(struct median_interval){100, 80, INFINITY}, &known, &time);
	assert_true(time.ns == 200 && time.low == 80 * 1.9 && isinf(time.high));
}
