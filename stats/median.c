#include "stats/median.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stats/estimate.h"

#define TAIL 0.025 /* of a 95 % interval */

/* The largest number k of values, so that fewer than k of n lie below the median in at most
 * TAIL of all cases; 0: there is none. */
static size_t lower_place(size_t n)
{
	double chance = pow(0.5, (double)n), sum = 0;
	size_t k = 0;

	while (k < n && sum + chance <= TAIL) {
		sum += chance;
		chance *= (double)(n - k) / (double)(k + 1);
		k++;
	}
	return k;
}

void median_interval_of(const double *x, size_t n, struct median_interval *out)
{
	*out = (struct median_interval){NAN, NAN, NAN};
	if (n == 0)
		return;
	double *sorted = memory_alloc(n * sizeof *sorted);
	memcpy(sorted, x, n * sizeof *sorted);
	sort_reals(sorted, n);
	out->median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
	size_t k = lower_place(n);
	if (k > 0) {
		out->low = sorted[k - 1];
		out->high = sorted[n - k];
	}
	free(sorted);
}
