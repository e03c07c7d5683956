#include "stats/order.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/estimate.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */
#define TAKEN_MAX 0.999

const char *order_word(enum order order)
{
	static const char *const words[] = {
#define X(id, word) word,
		ORDERS(X)
#undef X
	};

	return words[order];
}

double contrast_half_width(const struct contrast *contrast)
{
	return sqrt(contrast->high / contrast->low) - 1;
}

enum order order_of(const struct contrast *contrast, double margin)
{
	if (contrast->high < 1 / margin)
		return ORDER_FASTER;
	if (contrast->low > margin)
		return ORDER_SLOWER;
	if (margin > 1 || !(contrast_half_width(contrast) <= ORDER_WIDTH_MAX))
		return ORDER_UNKNOWN;
	return ORDER_ALIKE;
}

double order_margin(const double *taken, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		if (taken[i] > 0)
			sum -= log1p(-fmin(taken[i], TAKEN_MAX)) / (double)count;
	return fmax(exp(sum), ORDER_MARGIN_MIN);
}

/* With so many of each, were the spread to stay as it is. */
static bool narrow_with(const struct contrast *contrast, size_t n)
{
	double t = student_t_quantile(COVERAGE_P, contrast->df_each * (double)(n - 1));

	return t * contrast->spread / sqrt((double)n) <= log1p(ORDER_WIDTH_MAX);
}

/* Processes of each with which the interval is narrow enough to call them alike. */
static size_t needed_to_be_alike(const struct contrast *contrast)
{
	size_t low = 1, high = CONTRAST_NEEDED_MAX; /* too few; enough */

	if (!narrow_with(contrast, high))
		return high;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (narrow_with(contrast, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

size_t order_needed(const struct contrast *contrast)
{
	if (isnan(contrast->spread))
		return isnan(contrast->difference) ? 0 : ORDER_PROCESSES_MIN;
	/* Whichever comes first: the interval leaves 1, or it is narrow. */
	size_t apart = contrast_needed(contrast, 0), alike = needed_to_be_alike(contrast);
	size_t needed = apart < alike ? apart : alike;
	return needed < CONTRAST_NEEDED_MAX ? needed : 0;
}

enum order order_pair(const struct contender *a, const struct contender *b, struct contrast *out)
{
	contrast_of_rounds(&a->means, &b->means, out);
	return order_of(out, fmax(a->margin, b->margin));
}

/*
 * orders[i * count + k]: what contender i is to k; the caller frees. Notes in the places how many
 * processes would settle what is unknown: of those that were disturbed, no number would.
 */
static enum order *compare_all(const struct contender *contenders, size_t count,
			       struct place *places)
{
	static const enum order turned[] = {[ORDER_UNKNOWN] = ORDER_UNKNOWN,
					    [ORDER_ALIKE] = ORDER_ALIKE,
					    [ORDER_FASTER] = ORDER_SLOWER,
					    [ORDER_SLOWER] = ORDER_FASTER};
	enum order *orders = memory_alloc((count * count + 1) * sizeof *orders);

	for (size_t i = 0; i < count; i++) {
		orders[i * count + i] = ORDER_ALIKE;
		for (size_t k = 0; k < i; k++) {
			struct contrast contrast;
			enum order order = order_pair(&contenders[k], &contenders[i], &contrast);
			orders[i * count + k] = order;
			orders[k * count + i] = turned[order];
			if (order != ORDER_UNKNOWN || contenders[i].margin > 1 ||
			    contenders[k].margin > 1)
				continue;
			size_t needed = order_needed(&contrast);
			if (needed > places[i].needed)
				places[i].needed = needed;
			if (needed > places[k].needed)
				places[k].needed = needed;
		}
	}
	return orders;
}

void order_places(const struct contender *contenders, size_t count, struct place *out)
{
	size_t leader = count; /* of those that share a rank */

	for (size_t i = 0; i < count; i++)
		out[i] = (struct place){.low = 1, .high = (int)count};
	enum order *orders = compare_all(contenders, count, out);
	for (size_t i = 0; i < count; i++) {
		const enum order *row = orders + i * count;
		bool unknown = false;
		for (size_t k = 0; k < count; k++) {
			out[i].low += row[k] == ORDER_SLOWER;
			out[i].high -= row[k] == ORDER_FASTER;
			unknown |= row[k] == ORDER_UNKNOWN;
		}
		if (unknown)
			continue;
		out[i].rank = (int)i + 1;
		if (leader < count && row[leader] == ORDER_ALIKE) {
			out[i].rank = out[leader].rank;
			out[i].tied = out[leader].tied = true;
		} else {
			leader = i;
		}
		out[i].low = out[i].high = out[i].rank;
	}
	free(orders);
}
