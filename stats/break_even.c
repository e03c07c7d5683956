#include "stats/break_even.h"

#include <math.h>

#include "stats/estimate.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */

/* Means of a contender, and variances and covariance of these means. */
struct moments {
	double first, step, of_first, of_step, of_both;
};

static struct moments moments_of(const struct starts *starts)
{
	double n = (double)starts->count;
	struct moments m = {.first = 0};

	for (size_t i = 0; i < starts->count; i++) {
		m.first += starts->first[i] / n;
		m.step += starts->step[i] / n;
	}
	for (size_t i = 0; i < starts->count; i++) {
		double first = starts->first[i] - m.first, step = starts->step[i] - m.step;
		m.of_first += first * first / n / (n - 1);
		m.of_step += step * step / n / (n - 1);
		m.of_both += first * step / n / (n - 1);
	}
	return m;
}

/* Variance of the mean time of a process of so many later steps. */
static double variance_at(const struct moments *m, double steps)
{
	return m->of_first + 2 * steps * m->of_both + steps * steps * m->of_step;
}

void break_even_of(const struct starts *soon, const struct starts *late, struct break_even *out)
{
	*out = (struct break_even){NAN, NAN, NAN};
	if (soon->count < 2 || late->count < 2)
		return;
	struct moments a = moments_of(soon), b = moments_of(late);
	double later = b.first - a.first, gain = a.step - b.step;
	if (!(later > 0 && gain > 0))
		return;
	double at = later / gain, of_a = variance_at(&a, at), of_b = variance_at(&b, at);
	double df = pow(of_a + of_b, 2) / (of_a * of_a / (double)(soon->count - 1) +
					   of_b * of_b / (double)(late->count - 1));
	double t = of_a + of_b > 0 ? student_t_quantile(COVERAGE_P, df) : 0;
	/* The interval holds the n with (later - n gain)^2 <= t^2 x its variance. */
	double square = gain * gain - t * t * (a.of_step + b.of_step);
	double linear = later * gain + t * t * (a.of_both + b.of_both);
	double constant = later * later - t * t * (a.of_first + b.of_first);
	double root = sqrt(fmax(linear * linear - square * constant, 0));
	if (!(square > 0))
		return;
	out->steps = 1 + at;
	out->low = 1 + fmax((linear - root) / square, 0);
	out->high = 1 + (linear + root) / square;
}
