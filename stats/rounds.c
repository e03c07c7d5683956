#include "stats/rounds.h"

#include <stdlib.h>

#include "base/memory.h"

static bool rounds_rise(const struct round_means *set)
{
	for (size_t i = 1; i < set->count; i++)
		if (set->rounds[i] <= set->rounds[i - 1])
			return false;
	return set->count > 0 && set->rounds[0] >= 0;
}

/* Finds the means of common rounds, at most as many as the smaller count. */
static size_t match(const struct round_means *a, const struct round_means *b, double *of_a,
		    double *of_b)
{
	size_t found = 0;

	for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
		if (a->rounds[i] < b->rounds[k]) {
			i++;
		} else if (a->rounds[i] > b->rounds[k]) {
			k++;
		} else {
			of_a[found] = a->means[i++];
			of_b[found++] = b->means[k++];
		}
	}
	return found;
}

void contrast_of_rounds(const struct round_means *a, const struct round_means *b,
			struct contrast *out)
{
	size_t smaller = a->count < b->count ? a->count : b->count, found = 0;
	double *of_a = memory_alloc((smaller + 1) * sizeof *of_a);
	double *of_b = memory_alloc((smaller + 1) * sizeof *of_b);

	if (rounds_rise(a) && rounds_rise(b))
		found = match(a, b, of_a, of_b);
	if (found >= ROUNDS_PAIRED_MIN && 2 * found >= smaller)
		contrast_trimmed(of_a, of_b, found, out);
	else
		contrast_welch(a->means, a->count, b->means, b->count, out);
	free(of_a);
	free(of_b);
}
