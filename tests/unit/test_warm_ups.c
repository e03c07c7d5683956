/* Variates of posteriors, and what warm-ups that have ended tell of those to come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/random.h"
#include "stats/estimate.h"
#include "stats/variates.h"
#include "stats/warm_ups.h"

enum { VARIATES = 20000, DRAWS = 400 };

static void assert_near(double is, double should, double part)
{
	if (!(fabs(is - should) <= part * fabs(should)))
		fail_msg("%g, not %g", is, should);
}

/* Its mean is its degrees of freedom, its variance twice that; its skewness sqrt(8 / freedom) is
 * what an approximation loses first. */
static void chi_squared_is(void **state)
{
	static const double freedoms[] = {1, 5, 30, 31, 400};
	struct random random;
	(void)state;
	random_init(&random, 1);
	for (size_t i = 0; i < sizeof freedoms / sizeof *freedoms; i++) {
		double f = freedoms[i], sum = 0, squares = 0, cubes = 0;
		for (int k = 0; k < VARIATES; k++) {
			double off = chi_squared_variate(&random, f) - f;
			assert_true(off >= -f);
			sum += off;
			squares += off * off;
			cubes += off * off * off;
		}
		assert_true(fabs(sum / VARIATES) < 4 * sqrt(2 * f / VARIATES));
		assert_near(squares / VARIATES, 2 * f, 0.08);
		assert_near(cubes / VARIATES / pow(2 * f, 1.5), sqrt(8 / f), 0.35);
	}
}

/* Beta(a, b): mean a / (a + b), variance ab / ((a + b)^2 (a + b + 1)). */
static void shares_are(void **state)
{
	static const double counts[][2] = {{0, 0}, {0, 10}, {8, 2}, {30, 300}};
	struct random random;
	(void)state;
	random_init(&random, 2);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		double a = counts[i][0] + 0.5, b = counts[i][1] + 0.5, sum = 0, squares = 0;
		double mean = a / (a + b), variance = mean * (1 - mean) / (a + b + 1);
		for (int k = 0; k < VARIATES; k++) {
			double share = share_variate(&random, counts[i][0], counts[i][1]);
			assert_true(share >= 0 && share <= 1);
			sum += share;
			squares += (share - mean) * (share - mean);
		}
		assert_true(fabs(sum / VARIATES - mean) < 4 * sqrt(variance / VARIATES));
		assert_near(squares / VARIATES, variance, 0.1);
	}
}

/* Percentile `p` of what `n` to come may take together. */
static double together(const struct warm_ups *w, double n, double p)
{
	struct warm_up_draw draws[DRAWS];
	double all[DRAWS];
	warm_ups_draw(w, draws, DRAWS);
	for (int d = 0; d < DRAWS; d++)
		all[d] = warm_ups_together(w, &draws[d], n, 0, 0);
	return percentile_of(all, DRAWS, p);
}

static struct warm_ups seen(double seconds, int count)
{
	struct warm_ups w;
	warm_ups_init(&w, 10, 30);
	for (int i = 0; i < count; i++)
		warm_ups_learn(&w, seconds, 1);
	return w;
}

static void what_was_seen_tells(void **state)
{
	struct warm_ups none = seen(0, 0), quiet = seen(12, 10), noisy = seen(30, 10);
	(void)state;
	/* Nothing was: both all at once and all at the cap may come. */
	assert_true(together(&none, 10, 0.05) < 150);
	assert_true(together(&none, 10, 0.95) > 290);
	assert_true(together(&quiet, 10, 0.5) > 110 && together(&quiet, 10, 0.5) < 140);
	assert_true(together(&quiet, 10, 0.99) < 250);
	/* On a machine on which nothing becomes steady nothing will. */
	assert_true(together(&noisy, 10, 0.5) > 290);
	assert_true(together(&noisy, 10, 0.99) == 300);
	assert_true(together(&noisy, 10, 0.01) > 200);
	/* Never shorter or longer than they may be, and none takes none. */
	assert_true(together(&quiet, 10, 0) >= 100);
	assert_true(together(&noisy, 0, 0.5) == 0);
	/* What lies outside was not seen so. */
	struct warm_ups outside = seen(1, 3);
	assert_true(isfinite(together(&outside, 3, 0.99)) && together(&outside, 3, 0) >= 30);
}

/* Percentile `p` of when one ends that has lasted so long. */
static double end_of(const struct warm_ups *w, double lasted, double p)
{
	struct warm_up_draw draws[DRAWS];
	double ends[DRAWS];
	warm_ups_draw(w, draws, DRAWS);
	for (int d = 0; d < DRAWS; d++) {
		ends[d] = warm_ups_end(w, &draws[d], lasted);
		assert_true(ends[d] >= fmax(lasted, 10) && ends[d] <= 30);
	}
	return percentile_of(ends, DRAWS, p);
}

static void the_one_that_runs_ends(void **state)
{
	struct warm_ups none = seen(0, 0), quiet = seen(12, 20), noisy = seen(30, 10);
	struct warm_up_draw draw;
	(void)state;
	assert_true(end_of(&none, 0, 0.05) < 13 && end_of(&none, 0, 0.95) == 30);
	/* Where all took as long it does too, but for what so few cannot tell. */
	assert_true(end_of(&quiet, 0, 0.1) > 10.2 && end_of(&quiet, 0, 0.9) < 15);
	/* One that has lasted longer than any is one of those that come to the cap. */
	assert_true(end_of(&quiet, 20, 0.5) == 30);
	assert_true(end_of(&noisy, 0, 0.2) == 30);
	for (double lasted = 0; lasted < 30; lasted += 1)
		for (double p = 0; p <= 1; p += 0.25)
			assert_true(isfinite(end_of(&quiet, lasted, p)));
	warm_ups_draw(&quiet, &draw, 1);
	assert_true(warm_ups_end(&quiet, &draw, 31) == 31);
}

/* What is expected of cells is kept where nothing else is known, and never longer than may be. */
static void what_is_expected_is_kept(void **state)
{
	struct warm_ups w = seen(12, 10);
	struct warm_up_draw draw = {.mean = 15, .deviation = 0};
	(void)state;
	assert_true(warm_ups_together(&w, &draw, 4, 80, 15) == 80);
	assert_true(warm_ups_together(&w, &draw, 4, 80, 12) == 92);
	assert_true(warm_ups_together(&w, &draw, 4, 118, 12) == 120);
	assert_true(warm_ups_together(&w, &draw, 4, 130, 12) == 130);
	assert_true(warm_ups_together(&w, &draw, 4, 42, 18) == 40);
}

/* Machines of all kinds, each known by so many warm-ups: what twenty more take lies between the
 * percentiles 1 and 99 nearly always. */
static void machines_are_foretold(void **state)
{
	enum { MACHINES = 400, MORE = 20 };
	struct random random;
	(void)state;
	random_init(&random, 3);
	for (int known = 1; known <= 9; known += 4) {
		double width = 0;
		int right = 0;
		for (int m = 0; m < MACHINES; m++) {
			struct warm_ups w = seen(0, 0);
			/* A third never steady, a third always, the others now and then. */
			double share = m % 3 == 0 ? 1 : m % 3 == 1 ? 0 : random_uniform(&random);
			double usual = 10 * pow(2.5, random_uniform(&random)), sum = 0;
			for (int i = 0; i < known + MORE; i++) {
				double one = usual * exp(0.3 * random_normal(&random));
				one = random_uniform(&random) < share ? 30
								      : fmin(fmax(one, 10), 30);
				if (i < known)
					warm_ups_learn(&w, one, 1);
				else
					sum += one;
			}
			width +=
				(together(&w, MORE, 0.99) - together(&w, MORE, 0.01)) / (MORE * 20);
			right += sum >= together(&w, MORE, 0.01) - 1e-9 &&
				 sum <= together(&w, MORE, 0.99) + 1e-9;
		}
		/* Not by saying that all may be. */
		width /= MACHINES;
		if (right < 0.95 * MACHINES || width > (known == 1 ? 1 : known == 5 ? 0.75 : 0.6))
			fail_msg("%d of %d are right after %d, with %.2f of what may be", right,
				 MACHINES, known, width);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chi_squared_is),
		cmocka_unit_test(shares_are),
		cmocka_unit_test(what_was_seen_tells),
		cmocka_unit_test(the_one_that_runs_ends),
		cmocka_unit_test(what_is_expected_is_kept),
		cmocka_unit_test(machines_are_foretold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
