/* Tests ratios with intervals, verdicts, the number of processes that would decide, and many cells
 * at once. Expected numbers: mpmath at 40 digits, from the integral of the density. */
#include "stats/contrast.h"
#include "stats/estimate.h"
#include "unit_test.h"

static const struct strictness verdicts = {0.02, 5}; /* for a threshold of 1 % */

static const double first[] = {1012, 987, 1033, 1001, 995};
static const double second[] = {1049, 1020, 1075, 1038, 1037};

TEST(tails_are_exact)
{
	static const struct {
		double t, df, upper;
	} rows[] = {{0.7, 3, 0.26716349915238181},
		    {2.5, 4.5, 0.029952843251100272},
		    {-1.3, 7, 0.88261608230381142},
		    {4, 30, 0.00019092281804187842}};

	for (size_t i = 0; i < COUNT(rows); i++)
		near(student_t_upper(rows[i].t, rows[i].df), rows[i].upper, 1e-13);
	near(student_t_upper(1.959963984540054, 1e7), 0.025, 1e-7);
	assert_true(isnan(student_t_upper(NAN, 3)) && isnan(student_t_upper(1, 0)));
}

TEST(rounds_are_paired)
{
	struct contrast c;

	contrast_paired(first, second, 5, &c);
	assert_true(c.paired);
	near(c.ratio, 1.0379609571114233, 1e-14);
	near(c.low, 1.0336338532319019, 1e-12);
	near(c.high, 1.0423061755562965, 1e-12);
	near(c.error, 0.0015046449886488836, 1e-16);
	near(contrast_p(&c, 0.01), 5.4199944640992286e-5, 1e-14);
	near(contrast_p(&c, 0.03), 0.0069001808533788213, 1e-12);
	near(contrast_p(&c, 0.05), 1, 0);
	/* By numerical integration of the noncentral t over its normal prior. */
	near(contrast_e(&c, 0.01), 803.3523594126, 1e-5);
	near(contrast_e(&c, 0.05), 1 / sqrt(51), 1e-12);
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_SLOWER);
	assert_int_equal(contrast_verdict(&c, 0.04), VERDICT_INCONCLUSIVE);
	assert_int_equal(contrast_verdict(&c, 0.05), VERDICT_SAME);
	contrast_paired(second, first, 5, &c);
	near(c.high, 1 / 1.0336338532319019, 1e-12);
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_FASTER);
}

/* The machine changed its speed in one round of ten: that round is cut, and the spread is that of
 * the others. */
TEST(a_round_at_another_speed_is_trimmed)
{
	static const double a[] = {1012, 987, 1033, 1001, 995, 1005, 998, 1020, 1011, 990};
	static const double b[] = {1049, 1020, 1075, 1038, 1337, 1044, 1030, 1055, 1049, 1021};
	struct contrast c, plain;

	contrast_trimmed(a, b, COUNT(a), &c);
	assert_true(c.paired);
	assert_int_equal(c.na, COUNT(a));
	assert_int_equal(c.nb, COUNT(a));
	near(c.ratio, 1.03629497984483114, 1e-14);
	near(c.low, 1.03322823758758495, 1e-12);
	near(c.high, 1.0393708245517881, 1e-12);
	near(c.error, 0.00125335803235789942, 1e-15);
	near(c.spread, 0.00396346610591798204, 1e-15);
	near(c.df, 7, 0);
	near(contrast_df(&c, COUNT(a)), 7, 0);
	near(contrast_df(&c, 7), 6, 0);
	near(contrast_df(&c, 16), 11, 0);
	/* The contrast does not apply to numbers at which no round would be cut. */
	assert_int_equal(contrast_needed(&c, 0.01, &verdicts), 8);
	contrast_trimmed(b, a, COUNT(a), &c);
	near(c.ratio, 1 / 1.03629497984483114, 1e-14);
	contrast_paired(a, b, COUNT(a), &plain);
	near(plain.ratio, 1.0630571, 1e-7);
	assert_true(plain.error > 20 * c.error);
	/* With fewer than eight rounds nothing is cut. */
	for (size_t n = 0; n < 8; n++) {
		contrast_trimmed(a, b, n, &c);
		contrast_paired(a, b, n, &plain);
		if (n > 0)
			near(c.ratio, plain.ratio, 0);
		if (n > 1)
			near(c.error, plain.error, 0);
	}
}

TEST(sets_of_different_runs_are_welch)
{
	struct contrast c;

	contrast_welch(first, 5, second, 4, &c);
	assert_false(c.paired);
	near(c.ratio, 1.0396193169667765, 1e-14);
	near(c.low, 1.0054304684980959, 1e-11);
	near(c.high, 1.0749707295273933, 1e-11);
	near(contrast_half_width(&c), sqrt(1.0749707295273933 / 1.0054304684980959) - 1, 1e-11);
	near(c.df, 5.7478156021469227, 1e-11);
	near(contrast_p(&c, 0.01), 0.0783920477402307, 1e-12);
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_INCONCLUSIVE);
}

TEST(what_has_no_spread_or_no_interval)
{
	const double same[] = {5, 5, 5}, other[] = {6, 6, 6};
	struct contrast c;

	contrast_welch(same, 3, other, 3, &c);
	near(c.low, 1.2, 1e-13);
	near(c.high, 1.2, 1e-13);
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_SLOWER);
	near(contrast_p(&c, 0.01), 0, 1e-20);
	near(contrast_p(&c, 0.5), 1, 0);
	contrast_welch(same, 1, other, 3, &c);
	near(c.ratio, 1.2, 1e-13);
	assert_true(isnan(c.low) && isnan(c.high) && isnan(contrast_p(&c, 0.01)));
	assert_true(isnan(contrast_half_width(&c)));
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_INCONCLUSIVE);
	assert_int_equal(contrast_needed(&c, 0.01, &verdicts), 0);
	contrast_welch(same, 0, other, 3, &c);
	assert_true(isnan(c.ratio));
	contrast_welch(same, 2, same, 3, &c);
	assert_true(c.low == 1 && c.ratio == 1 && c.high == 1);
	contrast_paired(NULL, NULL, 0, &c);
	assert_true(isnan(c.ratio));
	assert_int_equal(contrast_verdict(&c, 0.01), VERDICT_INCONCLUSIVE);
}

/* The suggested number of processes gives a verdict in about 80 of 100 comparisons. */
TEST(the_number_named_decides)
{
	enum { TRIALS = 2000, MANY = 64 };
	struct contrast c = {.paired = true, .na = 5, .difference = 0.03, .spread = 0.02};
	struct random random;
	int decided = 0;

	size_t n = contrast_needed(&c, 0.01, &verdicts);
	assert_int_equal(n, 11);
	c = (struct contrast){.difference = 0, .spread = 0.02, .df_each = 2};
	size_t same = contrast_needed(&c, 0.01, &verdicts);
	assert_int_equal(same, 44);
	c.difference = log1p(0.01);
	assert_int_equal(contrast_needed(&c, 0.01, &verdicts), CONTRAST_NEEDED_MAX);
	random_init(&random, 5);
	for (int trial = 0; trial < TRIALS; trial++) {
		double a[MANY], b[MANY];
		for (size_t i = 0; i < n; i++) {
			a[i] = 1;
			b[i] = exp(0.03 + 0.02 * random_normal(&random));
		}
		contrast_trimmed(a, b, n, &c);
		decided += contrast_claim(&c, 0.01) == VERDICT_SLOWER;
	}
	/* 0.8 within four standard errors, and not far below what was promised. */
	assert_in_range(decided, TRIALS * 76 / 100, TRIALS * 86 / 100);
	/* For a verdict within the threshold, both ends of the interval must lie within it. */
	decided = 0;
	for (int trial = 0; trial < TRIALS; trial++) {
		double a[MANY], b[MANY];
		for (size_t i = 0; i < same; i++) {
			a[i] = exp(0.02 * sqrt(0.5) * random_normal(&random));
			b[i] = exp(0.02 * sqrt(0.5) * random_normal(&random));
		}
		contrast_welch(a, same, b, same, &c);
		decided += contrast_verdict(&c, 0.01) == VERDICT_SAME;
	}
	assert_in_range(decided, TRIALS * 76 / 100, TRIALS * 86 / 100);
}

/* A claim from a wide interval needs 99 %, from few processes 99.9 %; the suggested number of
 * processes follows this. */
TEST(claims_are_strict_where_chance_makes_them)
{
	const struct strictness lax = {1, 0};
	struct contrast five = {
		.na = 5, .nb = 5, .error = 0.01, .df = 4, .spread = 0.0224, .df_each = 1};
	struct contrast three = {.na = 3, .nb = 3, .error = 0.002, .df = 2};

	five.low = exp(-0.0278);
	five.high = exp(0.0278);
	near(contrast_discoveries(&five, &verdicts), 0.01, 0);
	near(contrast_discoveries(&five, &lax), 0.05, 0);
	five.low = exp(-0.0190);
	five.high = exp(0.0190);
	near(contrast_discoveries(&five, &verdicts), 0.05, 0);
	three.difference = 0.0229; /* p = 0.02 beyond 1 % */
	three.low = exp(0.0229 - 0.0086);
	three.high = exp(0.0229 + 0.0086);
	assert_int_equal(contrast_verdict(&three, 0.01), VERDICT_SLOWER);
	assert_int_equal(contrast_claim(&three, 0.01), VERDICT_INCONCLUSIVE);
	near(contrast_discoveries(&three, &verdicts), 0.001, 0);
	near(contrast_discoveries(&three, &lax), 0.05, 0);
	three.difference = 0.05; /* p = 0.0025 */
	three.low = exp(0.05 - 0.0086);
	three.high = exp(0.05 + 0.0086);
	assert_int_equal(contrast_verdict(&three, 0.01), VERDICT_SLOWER);
	assert_int_equal(contrast_claim(&three, 0.01), VERDICT_INCONCLUSIVE);
	three.difference = 0.08; /* p = 0.0008 */
	three.low = exp(0.08 - 0.0086);
	three.high = exp(0.08 + 0.0086);
	assert_int_equal(contrast_claim(&three, 0.01), VERDICT_SLOWER);
	three.difference = -0.08;
	three.low = exp(-0.08 - 0.0086);
	three.high = exp(-0.08 + 0.0086);
	assert_int_equal(contrast_claim(&three, 0.01), VERDICT_FASTER);
	near(verdict_strictness(0.2).narrow, 0.10, 0);
	five.difference = 0.08; /* decided although wide */
	assert_true(contrast_needed(&five, 0.01, &verdicts) > contrast_needed(&five, 0.01, &lax));
}

TEST(a_mean_of_ratios_has_an_interval)
{
	struct contrast two[3], all;

	contrast_paired(first, second, 5, &two[0]);
	contrast_paired(first, second, 5, &two[1]);
	contrast_welch(first, 1, second, 1, &two[2]); /* without an interval */
	contrast_mean(two, 3, &all);
	assert_int_equal(all.na, 2);
	near(all.ratio, two[0].ratio, 1e-15);
	near(all.error, two[0].error / sqrt(2), 1e-17);
	near(all.df, 8, 1e-12);
	contrast_mean(&two[2], 1, &all);
	assert_true(isnan(all.ratio) && isnan(all.low));
}

/* The example of Benjamini and Hochberg 1995, table 1: four of fifteen are rejected at 0.05. */
TEST(many_hypotheses_are_adjusted)
{
	const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
			    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000, NAN};
	double adjusted[COUNT(p)];
	int rejected = 0;

	adjust_for_many(p, COUNT(p), adjusted);
	for (size_t i = 0; i < COUNT(p); i++)
		rejected += adjusted[i] <= 0.05;
	assert_int_equal(rejected, 4);
	near(adjusted[0], 0.0015, 1e-15);
	near(adjusted[3], 0.0095 * 15 / 4, 1e-15);
	near(adjusted[14], 1, 0);
	assert_true(isnan(adjusted[15]));
	adjust_for_many(p, 1, adjusted);
	near(adjusted[0], 0.0001, 0);
}
