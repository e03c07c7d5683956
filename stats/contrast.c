#include "stats/contrast.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/estimate.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */
#define POWER_P 0.8	 /* power of a comparison with the proposed number of processes */
#define NARROW_MAX 0.10
#define FEW 5	     /* processes; stats/effort.h, default */
#define TRIMMED_OF 8 /* one value is trimmed at each end per eight */

const char *verdict_word(enum verdict verdict)
{
	static const char *const words[] = {
#define X(id, word) word,
		VERDICTS(X)
#undef X
	};

	return verdict >= 0 && verdict < VERDICT_COUNT ? words[verdict] : "?";
}

void log_moments(const double *x, const double *y, size_t n, double *mean, double *variance)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		sum += log(x[i]) - (y ? log(y[i]) : 0);
	*mean = sum / (double)n;
	for (size_t i = 0; i < n; i++) {
		double off = log(x[i]) - (y ? log(y[i]) : 0) - *mean;
		squares += off * off;
	}
	*variance = n > 1 ? squares / (double)(n - 1) : NAN;
}

/* Computes ratio and interval from difference, error and degrees of freedom. */
static void complete(struct contrast *contrast)
{
	double width = NAN;

	if (contrast->error == 0)
		width = 0; /* without any spread Welch's degrees of freedom are 0 / 0 */
	else if (contrast->error > 0)
		width = student_t_quantile(COVERAGE_P, contrast->df) * contrast->error;
	contrast->ratio = exp(contrast->difference);
	contrast->low = exp(contrast->difference - width);
	contrast->high = exp(contrast->difference + width);
}

static struct contrast unknown(bool paired, size_t na, size_t nb)
{
	return (struct contrast){.paired = paired,
				 .na = na,
				 .nb = nb,
				 .difference = NAN,
				 .error = NAN,
				 .df = NAN,
				 .spread = NAN,
				 .df_each = NAN,
				 .ratio = NAN,
				 .low = NAN,
				 .high = NAN};
}

void contrast_from(double difference, double error, double df, struct contrast *out)
{
	*out = unknown(false, 0, 0);
	out->difference = difference;
	out->error = error;
	out->df = df;
	complete(out);
}

void contrast_paired(const double *a, const double *b, size_t n, struct contrast *out)
{
	double variance;

	*out = unknown(true, n, n);
	if (n == 0)
		return;
	log_moments(b, a, n, &out->difference, &variance);
	if (n > 1) {
		out->spread = sqrt(variance);
		out->error = out->spread / sqrt((double)n);
		out->df = (double)(n - 1);
	}
	complete(out);
}

void contrast_trimmed(const double *a, const double *b, size_t n, struct contrast *out)
{
	size_t cut = n / TRIMMED_OF, kept = n - 2 * cut;

	if (cut == 0) {
		contrast_paired(a, b, n, out);
		return;
	}
	*out = unknown(true, n, n);
	double *sorted = memory_alloc(n * sizeof *sorted), sum = 0, mean = 0, squares = 0;
	for (size_t i = 0; i < n; i++)
		sorted[i] = log(b[i]) - log(a[i]);
	sort_reals(sorted, n);
	for (size_t i = cut; i < n - cut; i++)
		sum += sorted[i];
	/* Winsorised variance: a trimmed value counts as the nearest kept one. */
	for (size_t i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	for (size_t i = 0; i < n; i++)
		mean += sorted[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	free(sorted);
	out->difference = sum / (double)kept;
	out->error = sqrt(squares / (double)(kept * (kept - 1)));
	out->spread = out->error * sqrt((double)n);
	out->df = (double)(kept - 1);
	complete(out);
}

void contrast_welch(const double *a, size_t na, const double *b, size_t nb, struct contrast *out)
{
	double mean_a, mean_b, va, vb;

	*out = unknown(false, na, nb);
	if (na == 0 || nb == 0)
		return;
	log_moments(a, NULL, na, &mean_a, &va);
	log_moments(b, NULL, nb, &mean_b, &vb);
	out->difference = mean_b - mean_a;
	if (na > 1 && nb > 1) {
		double ea = va / (double)na, eb = vb / (double)nb;
		out->spread = sqrt(va + vb);
		out->error = sqrt(ea + eb);
		out->df = (ea + eb) * (ea + eb) /
			  (ea * ea / (double)(na - 1) + eb * eb / (double)(nb - 1));
		out->df_each = (va + vb) * (va + vb) / (va * va + vb * vb);
	}
	complete(out);
}

void contrast_mean(const struct contrast *contrasts, size_t count, struct contrast *out)
{
	double sum = 0, squares = 0, fourth = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct contrast *c = &contrasts[i];
		if (isnan(c->error))
			continue;
		double square = c->error * c->error;
		sum += c->difference;
		squares += square;
		fourth += square > 0 ? square * square / c->df : 0;
		n++;
	}
	*out = unknown(false, n, n);
	if (n == 0)
		return;
	out->difference = sum / (double)n;
	out->error = sqrt(squares) / (double)n;
	out->df = squares * squares / fourth;
	complete(out);
}

double contrast_df(const struct contrast *contrast, size_t n)
{
	if (contrast->paired)
		return (double)(n - 2 * (n / TRIMMED_OF) - 1);
	return contrast->df_each * (double)(n - 1);
}

enum verdict contrast_verdict(const struct contrast *contrast, double threshold)
{
	/* The limits are symmetric on a logarithmic scale: 1.01 and 1 / 1.01. */
	double limit = 1 + threshold;

	if (isnan(contrast->low) || isnan(contrast->high))
		return VERDICT_INCONCLUSIVE;
	if (contrast->low > limit)
		return VERDICT_SLOWER;
	if (contrast->high < 1 / limit)
		return VERDICT_FASTER;
	if (contrast->low >= 1 / limit && contrast->high <= limit)
		return VERDICT_SAME;
	return VERDICT_INCONCLUSIVE;
}

double contrast_p(const struct contrast *contrast, double threshold)
{
	double beyond = fabs(contrast->difference) - log1p(threshold);

	if (isnan(contrast->error))
		return NAN;
	if (contrast->error == 0)
		return beyond > 0 ? 0 : 1;
	return fmin(1, 2 * student_t_upper(beyond / contrast->error, contrast->df));
}

double contrast_e(const struct contrast *contrast, double threshold)
{
	const double variance = 10; /* of the effect, in variances of a process */
	double beyond = fmax(0, fabs(contrast->difference) - log1p(threshold)), df = contrast->df;
	double n = contrast->paired ? df + 1
				    : (double)contrast->na * (double)contrast->nb /
					      (double)(contrast->na + contrast->nb);
	double more = 1 + n * variance;

	if (isnan(contrast->error))
		return NAN;
	if (contrast->error == 0)
		return beyond > 0 ? INFINITY : 1 / sqrt(more);
	double square = pow(beyond / contrast->error, 2) / df;
	return exp((df + 1) / 2 * (log1p(square) - log1p(square / more)) - log(more) / 2);
}

double contrast_half_width(const struct contrast *contrast)
{
	return sqrt(contrast->high / contrast->low) - 1;
}

struct strictness verdict_strictness(double threshold)
{
	return (struct strictness){fmin(2 * threshold, NARROW_MAX), FEW};
}

static double discoveries(double half_width, size_t processes, const struct strictness *strictness)
{
	if (processes < strictness->few)
		return CONTRAST_DISCOVERIES_FEW;
	return half_width <= strictness->narrow ? CONTRAST_DISCOVERIES
						: CONTRAST_DISCOVERIES_STRICT;
}

double contrast_discoveries(const struct contrast *contrast, const struct strictness *strictness)
{
	size_t least = contrast->na < contrast->nb ? contrast->na : contrast->nb;

	return discoveries(contrast_half_width(contrast), least, strictness);
}

enum verdict contrast_claim(const struct contrast *contrast, double threshold)
{
	enum verdict verdict = contrast_verdict(contrast, threshold);
	bool claim = verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
	struct strictness strictness = verdict_strictness(threshold);

	return claim && contrast_p(contrast, threshold) >
				       contrast_discoveries(contrast, &strictness)
		       ? VERDICT_INCONCLUSIVE
		       : verdict;
}

/* Whether n processes of each side give a verdict in 80 of 100 cases. Beyond the threshold one end
 * of the interval must clear the nearer limit; within it both ends must stay inside. */
static bool resolves(const struct contrast *contrast, double threshold,
		     const struct strictness *strictness, size_t n)
{
	double df = contrast_df(contrast, n), error = contrast->spread / sqrt((double)n);
	double t = student_t_quantile(COVERAGE_P, df);
	double away = fabs(contrast->difference), limit = log1p(threshold);

	if (away >= limit) {
		double level = 1 - discoveries(expm1(t * error), n, strictness) / 2;
		double claims = student_t_quantile(level, df);
		return (claims + student_t_quantile(POWER_P, df)) * error <= away - limit;
	}
	double missed = student_t_upper((limit - away) / error - t, df) +
			student_t_upper((limit + away) / error - t, df);
	return 1 - missed >= POWER_P;
}

size_t contrast_needed(const struct contrast *contrast, double threshold,
		       const struct strictness *strictness)
{
	/* The spread of a trimmed sample is not valid for smaller samples, which would not be
	 * trimmed. */
	size_t low = contrast->paired && contrast->na >= TRIMMED_OF ? TRIMMED_OF : 2;
	size_t high = CONTRAST_NEEDED_MAX;

	if (isnan(contrast->spread) || isnan(contrast->difference))
		return 0;
	if (contrast->spread == 0)
		return low;
	if (!resolves(contrast, threshold, strictness, high))
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (resolves(contrast, threshold, strictness, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

double contrast_finds(double spread, size_t n, double threshold, double share)
{
	double df = (double)(n - 1), error = spread / sqrt((double)n);
	double t = student_t_quantile(COVERAGE_P, df);
	struct strictness strictness = verdict_strictness(threshold);
	double strict = student_t_quantile(1 - discoveries(INFINITY, n, &strictness) / 2, df);
	/* Below this estimate of the spread, relative to the true one, 95 % is enough. */
	double narrow = n < strictness.few ? 0 : log1p(strictness.narrow) / (t * error);
	double low = 0, high = 4 * strict + 10;

	/* Bisection on the distance beyond the threshold, in standard errors. */
	while (high - low > 1e-6) {
		double middle = low + (high - low) / 2;
		if (student_t_upper_shifted(t, df, middle, 0, narrow) +
			    student_t_upper_shifted(strict, df, middle, narrow, INFINITY) <
		    share)
			low = middle;
		else
			high = middle;
	}
	return log1p(threshold) + high * error;
}

struct hypothesis {
	double p;
	size_t place;
};

static int compare_hypotheses(const void *a, const void *b)
{
	const struct hypothesis *x = a, *y = b;

	return (x->p > y->p) - (x->p < y->p);
}

void adjust_for_many(const double *p, size_t count, double *adjusted)
{
	struct hypothesis *sorted = memory_alloc((count + 1) * sizeof *sorted);
	size_t many = 0;
	double least = 1;

	for (size_t i = 0; i < count; i++) {
		adjusted[i] = NAN;
		if (!isnan(p[i]))
			sorted[many++] = (struct hypothesis){p[i], i};
	}
	qsort(sorted, many, sizeof *sorted, compare_hypotheses);
	for (size_t k = many; k > 0; k--) {
		least = fmin(least, sorted[k - 1].p * (double)many / (double)k);
		adjusted[sorted[k - 1].place] = least;
	}
	free(sorted);
}
