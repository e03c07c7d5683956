/* Tests change points: false alarms, power and position, by simulation with fixed seeds. */
#include "stats/changes.h"
#include "unit_test.h"

enum { LENGTH = 24, TRIALS = 300 };

static struct change_settings quick(void)
{
	struct change_settings settings = change_defaults;

	settings.permutations = 199;
	return settings;
}

/* Returns a value of a process with a standard deviation of 1 %; `heavy`: one value in ten deviates
 * by ten times that. */
static double draw(struct random *random, bool heavy)
{
	double scale = heavy && random_uniform(random) < 0.1 ? 0.1 : 0.01;

	return 1e6 * exp(scale * random_normal(random));
}

static int alarms(bool heavy, double threshold)
{
	struct change_settings settings = quick();
	struct random random;
	int count = 0;

	settings.threshold = threshold;
	random_init(&random, 17);
	for (int trial = 0; trial < TRIALS; trial++) {
		double x[LENGTH];
		struct change *changes;
		for (int i = 0; i < LENGTH; i++)
			x[i] = draw(&random, heavy);
		count += changes_find(x, LENGTH, &settings, &changes) > 0;
		free(changes);
	}
	return count;
}

/* The level of a permutation test, 1 %, holds for any distribution. So at most 9 of 300 are found
 * (more would occur by chance in one of a thousand tests). */
TEST(nothing_changes_in_noise)
{
	assert_in_range(alarms(false, 0), 0, 9);
	assert_in_range(alarms(true, 0), 0, 9);
}

TEST(a_step_is_found_where_it_is)
{
	struct change_settings settings = quick();
	struct random random;
	int found = 0, in_place = 0, covered = 0;

	random_init(&random, 23);
	for (int trial = 0; trial < TRIALS; trial++) {
		double x[LENGTH];
		struct change *changes;
		for (int i = 0; i < LENGTH; i++)
			x[i] = draw(&random, false) * (i < 14 ? 1 : 1.03);
		size_t count = changes_find(x, LENGTH, &settings, &changes);
		found += count >= 1;
		for (size_t i = 0; i < count; i++) {
			in_place += changes[i].at >= 13 && changes[i].at <= 15;
			covered += changes[i].change.low < 1.03 && changes[i].change.high > 1.03;
		}
		free(changes);
	}
	assert_in_range(found, TRIALS * 97 / 100, TRIALS);
	assert_in_range(in_place, TRIALS * 90 / 100, TRIALS);
	assert_in_range(covered, TRIALS * 85 / 100, TRIALS * 102 / 100);
}

TEST(a_level_that_comes_back_is_two_changes)
{
	const double wobble[] = {0.997, 1.002, 1.004, 0.999, 1.001};
	struct change *changes;
	double x[LENGTH];

	for (int i = 0; i < LENGTH; i++)
		x[i] = 5e5 * wobble[i % 5] * (i >= 8 && i < 16 ? 1.1 : 1);
	assert_int_equal(changes_find(x, LENGTH, &change_defaults, &changes), 2);
	assert_int_equal(changes[0].at, 8);
	assert_int_equal(changes[1].at, 16);
	assert_true(fabs(changes[0].change.ratio - 1.1) < 0.005);
	assert_true(fabs(changes[1].change.ratio - 1 / 1.1) < 0.005);
	assert_true(changes[0].change.low < 1.1 && changes[0].change.high > 1.1);
	assert_true(changes[0].p <= 0.01);
	free(changes);
}

TEST(small_and_short_ones_are_none)
{
	struct change *changes;
	double x[LENGTH];

	for (int i = 0; i < LENGTH; i++)
		x[i] = (1000 + (i % 3)) * (i < 12 ? 1 : 1.008);
	/* The change exists, but is within 1 %. */
	assert_int_equal(changes_find(x, LENGTH, &change_defaults, &changes), 0);
	free(changes);
	struct change_settings fine = change_defaults;
	fine.threshold = 0.005;
	assert_int_equal(changes_find(x, LENGTH, &fine, &changes), 1);
	assert_int_equal(changes[0].at, 12);
	free(changes);
	/* Too few values; none; a repeated value. */
	for (size_t n = 0; n < 6; n++) {
		assert_int_equal(changes_find(x, n, &change_defaults, &changes), 0);
		free(changes);
	}
	for (int i = 0; i < LENGTH; i++)
		x[i] = 7;
	assert_int_equal(changes_find(x, LENGTH, &change_defaults, &changes), 0);
	free(changes);
}
