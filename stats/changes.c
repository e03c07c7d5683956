#include "stats/changes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

/* The level gives a false alarm in one of a hundred series without a change. Ten values suffice for
 * one change in the middle (2 of 252 orders are as good). */
const struct change_settings change_defaults = {
	.least = 3, .permutations = 999, .level = 0.01, .threshold = 0.01, .seed = 1};

struct split {
	double statistic; /* negative: no split */
	size_t at;
};

/* sums[i * (n + 1) + k]: sum of distances between the first i and the first k values. */
static void sum_distances(const double *x, size_t n, double *sums)
{
	size_t row = n + 1;

	for (size_t k = 0; k <= n; k++)
		sums[k] = 0;
	for (size_t i = 1; i <= n; i++) {
		double line = 0;
		sums[i * row] = 0;
		for (size_t k = 1; k <= n; k++) {
			line += fabs(x[i - 1] - x[k - 1]);
			sums[i * row + k] = sums[(i - 1) * row + k] + line;
		}
	}
}

/* Sum of distances between the values from..to-1 and the values other..end-1. */
static double distances(const double *sums, size_t row, size_t from, size_t to, size_t other,
			size_t end)
{
	return sums[to * row + end] - sums[from * row + end] - sums[to * row + other] +
	       sums[from * row + other];
}

/* The energy statistic of 0..at-1 against at..end-1 (formula 7 of the paper, exponent 1). */
static double energy(const double *sums, size_t row, size_t at, size_t end)
{
	double n = (double)at, m = (double)(end - at);
	double between = 2 * distances(sums, row, 0, at, at, end) / (n * m);
	double before = distances(sums, row, 0, at, 0, at) / (n * (n - 1));
	double after = distances(sums, row, at, end, at, end) / (m * (m - 1));

	return n * m / (n + m) * (between - before - after);
}

/* The best split of n values. The second part may end before the last value, so that a level that
 * returns does not hide the change. `sums` has room for (n + 1)^2. */
static struct split best_split(const double *x, size_t n, size_t least, double *sums)
{
	struct split best = {.statistic = -1};

	if (n < 2 * least)
		return best;
	sum_distances(x, n, sums);
	for (size_t at = least; at + least <= n; at++)
		for (size_t end = at + least; end <= n; end++) {
			double statistic = energy(sums, n + 1, at, end);
			if (statistic > best.statistic)
				best = (struct split){statistic, at};
		}
	return best;
}

/* A series with its cuts: cuts[0] = 0, cuts[count] = n. */
struct parts {
	double *x, *shuffled, *sums;
	size_t *cuts, count, n;
	double *p; /* p of the test that found each cut */
	const struct change_settings *settings;
};

static struct split best_of_parts(const struct parts *parts, const double *x)
{
	struct split best = {.statistic = -1};

	for (size_t i = 0; i < parts->count; i++) {
		size_t from = parts->cuts[i];
		struct split found = best_split(x + from, parts->cuts[i + 1] - from,
						parts->settings->least, parts->sums);
		found.at += from;
		if (found.statistic > best.statistic)
			best = found;
	}
	return best;
}

static void shuffle(double *x, size_t n, struct random *random)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = (size_t)random_below(random, i);
		double kept = x[i - 1];
		x[i - 1] = x[k];
		x[k] = kept;
	}
}

/* The share of random orders within the parts whose best split is at least as good. */
static double p_of(struct parts *parts, double statistic, struct random *random)
{
	int as_good = 1, permutations = parts->settings->permutations;

	for (int r = 0; r < permutations; r++) {
		memcpy(parts->shuffled, parts->x, parts->n * sizeof *parts->x);
		for (size_t i = 0; i < parts->count; i++)
			shuffle(parts->shuffled + parts->cuts[i],
				parts->cuts[i + 1] - parts->cuts[i], random);
		/* Sums in another order differ in their last digits. */
		as_good +=
			best_of_parts(parts, parts->shuffled).statistic >= statistic * (1 - 1e-9);
	}
	return (double)as_good / (permutations + 1);
}

static void insert_cut(struct parts *parts, size_t at, double p)
{
	size_t place = 0;

	while (parts->cuts[place] < at)
		place++;
	memmove(&parts->cuts[place + 1], &parts->cuts[place],
		(parts->count + 1 - place) * sizeof *parts->cuts);
	memmove(&parts->p[place + 1], &parts->p[place],
		(parts->count + 1 - place) * sizeof *parts->p);
	parts->cuts[place] = at;
	parts->p[place] = p;
	parts->count++;
}

static void remove_cut(struct parts *parts, size_t place)
{
	memmove(&parts->cuts[place], &parts->cuts[place + 1],
		(parts->count - place) * sizeof *parts->cuts);
	memmove(&parts->p[place], &parts->p[place + 1], (parts->count - place) * sizeof *parts->p);
	parts->count--;
}

static void contrast_at(const struct parts *parts, const double *values, size_t place,
			struct contrast *out)
{
	size_t before = parts->cuts[place - 1], at = parts->cuts[place];

	contrast_welch(values + before, at - before, values + at, parts->cuts[place + 1] - at, out);
}

/* Removes the smallest change within the threshold; false when there is none. */
static bool remove_smallest(struct parts *parts, const double *values)
{
	size_t smallest = 0;
	double least = log1p(parts->settings->threshold);

	for (size_t place = 1; place < parts->count; place++) {
		struct contrast change;
		contrast_at(parts, values, place, &change);
		if (fabs(change.difference) <= least) {
			least = fabs(change.difference);
			smallest = place;
		}
	}
	if (smallest > 0)
		remove_cut(parts, smallest);
	return smallest > 0;
}

static void cut(struct parts *parts)
{
	struct random random;

	random_init(&random, parts->settings->seed);
	for (;;) {
		struct split best = best_of_parts(parts, parts->x);
		/* A series of one value repeated has statistic 0. */
		if (!(best.statistic > 0))
			return;
		double p = p_of(parts, best.statistic, &random);
		if (p > parts->settings->level)
			return;
		insert_cut(parts, best.at, p);
	}
}

size_t changes_find(const double *values, size_t n, const struct change_settings *settings,
		    struct change **out)
{
	struct parts parts = {.n = n, .count = 1, .settings = settings};
	size_t found = 0;

	parts.x = memory_alloc((n + 1) * sizeof *parts.x);
	parts.shuffled = memory_alloc((n + 1) * sizeof *parts.shuffled);
	parts.sums = memory_alloc((n + 1) * (n + 1) * sizeof *parts.sums);
	parts.cuts = memory_alloc((n + 2) * sizeof *parts.cuts);
	parts.p = memory_alloc((n + 2) * sizeof *parts.p);
	parts.cuts[0] = 0;
	parts.cuts[1] = n;
	for (size_t i = 0; i < n; i++)
		parts.x[i] = log(values[i]);
	cut(&parts);
	while (remove_smallest(&parts, values))
		;
	*out = memory_alloc(parts.count * sizeof **out);
	for (size_t place = 1; place < parts.count; place++) {
		struct change *change = &(*out)[found++];
		*change = (struct change){.at = parts.cuts[place], .p = parts.p[place]};
		contrast_at(&parts, values, place, &change->change);
	}
	free(parts.x);
	free(parts.shuffled);
	free(parts.sums);
	free(parts.cuts);
	free(parts.p);
	return found;
}
