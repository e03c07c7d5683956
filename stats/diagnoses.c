/* The tests behind each diagnosis of a cell. */
#include "stats/diagnoses.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/estimate.h"

/* Level of each test, and the processes that it needs. */
#define LEVEL 0.005
#define PROCESSES_MIN 5
/* Smaller differences are not reported, however significant. */
#define MEANS_APART_MIN 0.02
#define LEVELS_APART_MIN 0.05
#define STEP_MIN_NS 1e6
/* The least time of a page fault (a trap and 4 KiB of zeros; about 2 us on a virtual machine,
 * docs/measured/statistics.md), and the share of a step from which faults are reported. */
#define FAULT_NS 500
#define FAULTS_SHARE_MIN 0.02
/* How many standard deviations a split into two levels lies beyond its expectation. */
#define SPLIT_Z 3.5

static const struct {
	const char *word, *title, *unit;
	double factor;
	const char *remedy;
} rows[] = {
#define X(id, word, title, unit, factor, remedy) {word, title, unit, factor, remedy},
	DIAGNOSES(X)
#undef X
};

const char *diagnosis_word(enum diagnosis_id id)
{
	return rows[id].word;
}

const char *diagnosis_title(enum diagnosis_id id)
{
	return rows[id].title;
}

const char *diagnosis_remedy(enum diagnosis_id id)
{
	return rows[id].remedy;
}

void diagnosis_value(enum diagnosis_id id, double value, struct strbuf *out)
{
	strbuf_two_digits(out, rows[id].factor * value);
	strbuf_puts(out, rows[id].unit);
}

struct moments {
	double mean, squares; /* sum of squared distances from the mean */
};

static struct moments moments_of(const double *x, size_t n)
{
	struct moments m = {0, 0};

	for (size_t i = 0; i < n; i++)
		m.mean += x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		m.squares += (x[i] - m.mean) * (x[i] - m.mean);
	return m;
}

/* Compares the first process with the prediction from the others (t, one-sided). */
static double first_slowest(const double *logs, size_t n)
{
	struct moments others = moments_of(logs + 1, n - 1);
	double df = (double)(n - 2), above = logs[0] - others.mean;
	double error = sqrt(others.squares / df * (1 + 1 / (double)(n - 1)));
	bool found = above > MEANS_APART_MIN && above > student_t_quantile(1 - LEVEL, df) * error;

	return found ? expm1(above) : NAN;
}

/* Two levels: the best split of the sorted values leaves much less variance within its parts than a
 * normal distribution would (Engelman and Hartigan, "Percentage Points of a Test for Clusters",
 * JASA 64, 1969, with their approximation: log(total/within) has mean -log(1 - 2/pi) + 2.4/(n - 2)
 * and standard deviation 1/sqrt(n - 2)). Each part has at least two values, because a single one is
 * an outlier. */
static double two_speeds(const double *logs, size_t n)
{
	double *sorted = memory_alloc(n * sizeof *sorted), within = INFINITY, apart = 0;
	struct moments all = moments_of(logs, n);
	double low = 0;

	for (size_t i = 0; i < n; i++)
		sorted[i] = logs[i] - all.mean;
	sort_reals(sorted, n);
	/* Around the common mean the sums of both parts are opposite, so the sum of squares between
	 * them follows from one. */
	for (size_t at = 1; at + 2 <= n; at++) {
		double size = (double)at, rest = (double)(n - at);
		low += sorted[at - 1];
		double left = fmax(all.squares - low * low / size - low * low / rest, 0);
		if (at >= 2 && left < within) {
			within = left;
			apart = -low / rest - low / size;
		}
	}
	double df = (double)(n - 2);
	double expected = -log(1 - M_2_PI) + 2.4 / df + SPLIT_Z / sqrt(df);
	free(sorted);
	/* Compare without a logarithm, so that levels without any spread are found too. */
	bool found = apart > log1p(LEVELS_APART_MIN) && within < all.squares * exp(-expected);
	return found ? expm1(apart) : NAN;
}

/* Pooled t of the processes from `at` on against the earlier ones. */
static double t_between(const double *logs, size_t n, size_t at, double *apart)
{
	struct moments before = moments_of(logs, at), after = moments_of(logs + at, n - at);
	double squares = (before.squares + after.squares) / (double)(n - 2);

	*apart = after.mean - before.mean;
	return *apart / sqrt(squares * (1 / (double)at + 1 / (double)(n - at)));
}

/* A change of level between two groups of at least two processes: the cut with the largest t
 * (Hawkins, "Testing a Sequence of Observations for a Shift in Location", JASA 72, 1977), with a
 * Bonferroni correction for the number of cuts. */
static double level_change(const double *logs, size_t n)
{
	double change = NAN, largest = 0, cuts = (double)(n - 3);

	for (size_t at = 2; at + 2 <= n; at++) {
		double apart, t = fabs(t_between(logs, n, at, &apart));
		if (t > largest && fabs(apart) > MEANS_APART_MIN) {
			largest = t;
			change = apart;
		}
	}
	bool found = largest > student_t_quantile(1 - LEVEL / cuts / 2, (double)(n - 2));
	return found ? expm1(fabs(change)) : NAN;
}

/* The median over the processes in which faults take a noticeable part of the step; needs at least
 * two. */
static double page_faults(const struct diagnosed_process *processes, size_t n)
{
	double *faults = memory_alloc((n + 1) * sizeof *faults);
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (processes[i].page_faults * FAULT_NS > FAULTS_SHARE_MIN * processes[i].mean)
			faults[count++] = processes[i].page_faults;
	double middle = count >= 2 ? median_of(faults, count) : NAN;
	free(faults);
	return middle;
}

void diagnose(const struct diagnosed_process *processes, size_t n, struct diagnoses *out)
{
	double *logs = memory_alloc((n + 1) * sizeof *logs), *values = out->values, sum = 0;

	for (int id = 0; id < DIAGNOSIS_COUNT; id++)
		values[id] = NAN;
	for (size_t i = 0; i < n; i++) {
		logs[i] = log(processes[i].mean);
		sum += logs[i];
	}
	values[DIAGNOSIS_PAGE_FAULTS] = page_faults(processes, n);
	if (n > 0 && exp(sum / (double)n) < STEP_MIN_NS)
		values[DIAGNOSIS_SHORT_STEP] = exp(sum / (double)n);
	if (n >= PROCESSES_MIN) {
		/* The first process may have been left out of the list. */
		if (processes[0].number <= 1)
			values[DIAGNOSIS_FIRST_SLOWEST] = first_slowest(logs, n);
		values[DIAGNOSIS_TWO_SPEEDS] = two_speeds(logs, n);
		if (isnan(values[DIAGNOSIS_TWO_SPEEDS]))
			values[DIAGNOSIS_TWO_SPEEDS] = level_change(logs, n);
	}
	free(logs);
}
