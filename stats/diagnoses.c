#include "stats/diagnoses.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/changes.h"
#include "stats/estimate.h"

/* Of tests of a cell's processes. */
#define LEVEL 0.005
#define PROCESSES_MIN 5
/* What matters to nobody is not said, however significant. */
#define MEANS_APART_MIN 0.02
#define LEVELS_APART_MIN 0.05
#define SPREAD_BETWEEN_MAX 0.02
#define SPREAD_WITHIN_MAX 0.05
#define CORRELATION_MAX 0.5
#define SHIFT_MIN 0.01
#define STEP_MIN_NS 1e6
/* What a page fault takes at least, a trap and 4 KiB of zeros, and the share of a step from which
 * they matter. Some 2 us on a virtual machine (docs/measured/statistics.md). */
#define FAULT_NS 500
#define FAULTS_SHARE_MIN 0.02
/* How far beyond its expectation a split into two is; that of blocks, which are correlated. */
#define SPLIT_Z 3.5
#define SPLIT_Z_BLOCKS 6
/* Levels within a window are those of processes where they are so far apart, as a part of these:
 * what changes while a process runs it does not keep from its start. */
#define SAME_LEVELS_MIN 0.5

static const struct {
	const char *word, *before, *after;
	double factor;
	const char *remedy;
} rows[] = {
#define X(id, word, before, after, factor, remedy) {word, before, after, factor, remedy},
	DIAGNOSES(X)
#undef X
};

const char *diagnosis_word(enum diagnosis_id id)
{
	return rows[id].word;
}

const char *diagnosis_remedy(enum diagnosis_id id)
{
	return rows[id].remedy;
}

void diagnosis_figure(enum diagnosis_id id, double value, struct strbuf *out)
{
	strbuf_puts(out, rows[id].before);
	strbuf_two_digits(out, rows[id].factor * value);
	strbuf_puts(out, rows[id].after);
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

/* The first against what the others predict of one more (t, one-sided). */
static double first_slowest(const double *logs, size_t n)
{
	struct moments others = moments_of(logs + 1, n - 1);
	double df = (double)(n - 2), above = logs[0] - others.mean;
	double error = sqrt(others.squares / df * (1 + 1 / (double)(n - 1)));
	bool found = above > MEANS_APART_MIN && above > student_t_quantile(1 - LEVEL, df) * error;

	return found ? expm1(above) : NAN;
}

/*
 * Two levels: the best split of the sorted values leaves much less within its parts than a normal
 * distribution would (Engelman and Hartigan, "Percentage Points of a Test for Clusters", JASA 64,
 * 1969, with their approximation: log(total/within) has mean -log(1 - 2/pi) + 2.4/(n - 2) and
 * standard deviation 1/sqrt(n - 2)). Each part has at least `least`: one that is off is an outlier.
 */
static double two_speeds(const double *logs, size_t n, size_t least, double z)
{
	double *sorted = memory_alloc(n * sizeof *sorted), within = INFINITY, apart = 0;
	struct moments all = moments_of(logs, n);
	double low = 0;

	for (size_t i = 0; i < n; i++)
		sorted[i] = logs[i] - all.mean;
	sort_reals(sorted, n);
	/* About the common mean the sums of both parts are opposite, and the squares between them
	 * are what the parts lack. */
	for (size_t at = 1; at + least <= n; at++) {
		double size = (double)at, rest = (double)(n - at);
		low += sorted[at - 1];
		double left = fmax(all.squares - low * low / size - low * low / rest, 0);
		if (at >= least && left < within) {
			within = left;
			apart = -low / rest - low / size;
		}
	}
	double df = (double)(n - 2);
	double expected = -log(1 - M_2_PI) + 2.4 / df + z / sqrt(df);
	free(sorted);
	/* Compared without a logarithm, so that levels without any spread count. */
	bool found = apart > log1p(LEVELS_APART_MIN) && within < all.squares * exp(-expected);
	return found ? expm1(apart) : NAN;
}

/* A straight line through the processes by when they ran (t, two-sided): its whole rise. *t: how
 * sure. */
static double trend(const struct diagnosed_process *processes, const double *logs, size_t n,
		    double *t)
{
	struct moments all = moments_of(logs, n);
	double xx = 0, xy = 0, middle = 0, df = (double)(n - 2);

	for (size_t i = 0; i < n; i++)
		middle += processes[i].number / (double)n;
	for (size_t i = 0; i < n; i++) {
		double x = processes[i].number - middle;
		xx += x * x;
		xy += x * (logs[i] - all.mean);
	}
	double slope = xy / xx, residual = fmax(all.squares - slope * xy, 0);
	double rise = slope * (processes[n - 1].number - processes[0].number),
	       error = sqrt(residual / df / xx);
	*t = fabs(slope) / error;
	bool found = fabs(rise) > MEANS_APART_MIN && *t > student_t_quantile(1 - LEVEL / 2, df);

	return found ? expm1(rise) : NAN;
}

/* Pooled t of the processes from `at` on against those before. */
static double t_between(const double *logs, size_t n, size_t at, double *apart)
{
	struct moments before = moments_of(logs, at), after = moments_of(logs + at, n - at);
	double squares = (before.squares + after.squares) / (double)(n - 2);

	*apart = after.mean - before.mean;
	return *apart / sqrt(squares * (1 / (double)at + 1 / (double)(n - at)));
}

/* One level before some process and another from it on, two processes of each at least: the cut
 * with the largest t (Hawkins, "Testing a Sequence of Observations for a Shift in Location", JASA
 * 72, 1977), at a level that Bonferroni makes of the number of cuts. *largest: that t. */
static double level_change(const double *logs, size_t n, double *largest)
{
	double change = NAN, cuts = (double)(n - 3);

	*largest = 0;
	for (size_t at = 2; at + 2 <= n; at++) {
		double apart, t = fabs(t_between(logs, n, at, &apart));
		if (t > *largest && fabs(apart) > MEANS_APART_MIN) {
			*largest = t;
			change = apart;
		}
	}
	bool found = *largest > student_t_quantile(1 - LEVEL / cuts / 2, (double)(n - 2));
	return found ? expm1(change) : NAN;
}

/* The median of those in which they are worth a part of the step; two processes at least. */
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

static void diagnose_processes(const struct diagnosed_process *processes, size_t n, double *values)
{
	double *logs = memory_alloc((n + 1) * sizeof *logs), sum = 0;

	for (size_t i = 0; i < n; i++) {
		logs[i] = log(processes[i].mean);
		sum += logs[i];
	}
	values[DIAGNOSIS_PAGE_FAULTS] = page_faults(processes, n);
	if (n > 0 && exp(sum / (double)n) < STEP_MIN_NS)
		values[DIAGNOSIS_SHORT_STEP] = exp(sum / (double)n);
	if (n >= PROCESSES_MIN) {
		double spread = sqrt(moments_of(logs, n).squares / (double)(n - 1));
		/* It may have been left out: then the second one stands there. */
		if (processes[0].number <= 1)
			values[DIAGNOSIS_FIRST_SLOWEST] = first_slowest(logs, n);
		values[DIAGNOSIS_TWO_SPEEDS] = two_speeds(logs, n, 2, SPLIT_Z);
		double t_line, t_cut;
		values[DIAGNOSIS_TREND] = trend(processes, logs, n, &t_line);
		values[DIAGNOSIS_LEVEL_CHANGE] = level_change(logs, n, &t_cut);
		/* Of two that say the same in other words the surer one; and what changes once with
		 * time is no speed that each process has of its own. */
		if (!isnan(values[DIAGNOSIS_LEVEL_CHANGE])) {
			bool line = !isnan(values[DIAGNOSIS_TREND]) && t_line > t_cut;
			values[line ? DIAGNOSIS_LEVEL_CHANGE : DIAGNOSIS_TREND] = NAN;
			values[DIAGNOSIS_TWO_SPEEDS] = NAN;
		}
		if (spread > SPREAD_BETWEEN_MAX)
			values[DIAGNOSIS_SPREAD_BETWEEN] = spread;
	}
	free(logs);
}

/* Of a window. */
struct within {
	double variance, correlation; /* of logarithms of blocks */
	double two_speeds, shift;     /* NaN: none */
};

/* Neighbours are joined, equally many: the tests of a window suppose blocks that hardly depend on
 * each other. How many there are then: DIAGNOSED_BLOCKS_MIN to twice as many less one. */
static size_t join(const double *blocks, size_t count, double *out)
{
	size_t each = count / DIAGNOSED_BLOCKS_MIN, joined = 0;

	for (; (joined + 1) * each <= count; joined++)
		out[joined] = moments_of(blocks + joined * each, each).mean;
	return joined;
}

/* The largest step from one level to the next. */
static double shift_of(const double *joined, size_t count)
{
	struct change_settings settings = change_defaults;
	struct change *changes;
	double largest = NAN;

	settings.permutations = 199;
	settings.threshold = SHIFT_MIN;
	size_t found = changes_find(joined, count, &settings, &changes);
	for (size_t i = 0; i < found; i++)
		if (!(fabs(changes[i].change.difference) <= fabs(largest)))
			largest = changes[i].change.difference;
	free(changes);
	return largest;
}

static struct within look_within(const struct diagnosed_process *process)
{
	size_t n = process->block_count;
	double *logs = memory_alloc(n * sizeof *logs);
	double joined[2 * DIAGNOSED_BLOCKS_MIN], products = 0;

	for (size_t i = 0; i < n; i++)
		logs[i] = log(process->blocks[i]);
	struct moments all = moments_of(logs, n);
	for (size_t i = 1; i < n; i++)
		products += (logs[i] - all.mean) * (logs[i - 1] - all.mean);
	struct within found = {.variance = all.squares / (double)(n - 1),
			       .correlation = all.squares > 0 ? products / all.squares : 0,
			       .two_speeds = two_speeds(logs, n, n / 10, SPLIT_Z_BLOCKS),
			       .shift = shift_of(joined, join(process->blocks, n, joined))};
	free(logs);
	return found;
}

/* The median, where at least half have one: what one window shows alone is chance, or other work.
 */
static double of_half(double *values, size_t count, size_t of)
{
	return count > 0 && 2 * count >= of ? median_of(values, count) : NAN;
}

static void diagnose_windows(const struct diagnosed_process *processes, size_t count,
			     double *values)
{
	double *correlations = memory_alloc(3 * (count + 1) * sizeof *correlations);
	double *levels = correlations + count + 1, *shifts = levels + count + 1, variance = 0;
	size_t windows = 0, level_count = 0, shift_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (processes[i].block_count < DIAGNOSED_BLOCKS_MIN)
			continue;
		struct within found = look_within(&processes[i]);
		variance += found.variance;
		correlations[windows++] = found.correlation;
		if (!isnan(found.two_speeds))
			levels[level_count++] = found.two_speeds;
		if (!isnan(found.shift))
			shifts[shift_count++] = found.shift;
	}
	if (windows > 0) {
		double spread = sqrt(variance / (double)windows);
		double correlation = median_of(correlations, windows);
		double shift = of_half(shifts, shift_count, windows);
		if (spread > SPREAD_WITHIN_MAX)
			values[DIAGNOSIS_SPREAD_WITHIN] = spread;
		if (correlation > CORRELATION_MAX)
			values[DIAGNOSIS_CORRELATED] = correlation;
		double apart = SAME_LEVELS_MIN * values[DIAGNOSIS_TWO_SPEEDS];
		size_t same = 0;
		for (size_t i = 0; i < level_count; i++)
			same += levels[i] >= apart;
		if (same > 0) {
			values[DIAGNOSIS_CHANGING_SPEED] = values[DIAGNOSIS_TWO_SPEEDS];
			values[DIAGNOSIS_TWO_SPEEDS] = NAN;
		}
		values[DIAGNOSIS_BLOCKS_TWO_SPEEDS] = of_half(levels, level_count, windows);
		/* Up in one and down in the next cancel: no longer warm-up mends that. */
		if (fabs(shift) > SHIFT_MIN)
			values[DIAGNOSIS_SHIFT] = expm1(shift);
	}
	free(correlations);
}

void diagnose(const struct diagnosed_process *processes, size_t count, struct diagnoses *out)
{
	for (int id = 0; id < DIAGNOSIS_COUNT; id++)
		out->values[id] = NAN;
	diagnose_processes(processes, count, out->values);
	diagnose_windows(processes, count, out->values);
}
