#include "stats/order.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/estimate.h"

#define COVERAGE_P 0.975 /* two-sided 95 % */
#define TAKEN_MAX 0.999

/* Ranks also apply to the few processes of published suites. */
static const struct strictness strict_where_wide = {ORDER_WIDTH_MAX, 0};

const char *order_word(enum order order)
{
	static const char *const words[] = {
#define X(id, word) word,
		ORDERS(X)
#undef X
	};

	return words[order];
}

double order_loss(const double *taken, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		if (taken[i] > 0)
			sum -= log1p(-fmin(taken[i], TAKEN_MAX)) / (double)count;
	return sum > 0 ? fmax(sum, log(ORDER_MARGIN_MIN)) : 0;
}

struct margins order_margins(double loss_a, double loss_b)
{
	double faster = loss_a + fmax(loss_a - loss_b, 0);
	double slower = loss_b + fmax(loss_b - loss_a, 0);

	if (!(loss_a > 0 || loss_b > 0))
		return (struct margins){1, 1};
	return (struct margins){fmax(exp(faster), ORDER_MARGIN_MIN),
				fmax(exp(slower), ORDER_MARGIN_MIN)};
}

static bool is_disturbed(const struct margins *margins)
{
	return margins->faster > 1 || margins->slower > 1;
}

/* The relation of two contenders that cannot be distinguished. */
static enum order not_apart(const struct contrast *contrast, const struct margins *margins)
{
	bool wide = !(contrast_half_width(contrast) <= ORDER_WIDTH_MAX);

	return wide || is_disturbed(margins) ? ORDER_UNKNOWN : ORDER_ALIKE;
}

enum order order_of(const struct contrast *contrast, const struct margins *margins)
{
	if (contrast->high < 1 / margins->faster)
		return ORDER_FASTER;
	if (contrast->low > margins->slower)
		return ORDER_SLOWER;
	return not_apart(contrast, margins);
}

/* Whether the interval would be narrow with n processes of each, if the spread stayed the same. */
static bool narrow_with(const struct contrast *contrast, size_t n)
{
	double t = student_t_quantile(COVERAGE_P, contrast_df(contrast, n));

	return t * contrast->spread / sqrt((double)n) <= log1p(ORDER_WIDTH_MAX);
}

/* Number of processes of each with which the interval is narrow enough to call them alike. */
static size_t needed_to_be_alike(const struct contrast *contrast)
{
	size_t low = 1, high = CONTRAST_NEEDED_MAX; /* low: too few; high: enough */

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
	/* The smaller number: the interval excludes 1, or it becomes narrow. */
	size_t apart = contrast_needed(contrast, 0, &strict_where_wide),
	       alike = needed_to_be_alike(contrast);
	size_t needed = apart < alike ? apart : alike;
	return needed < CONTRAST_NEEDED_MAX ? needed : 0;
}

static void find_extremes(const struct round_means *means, double *least, double *most)
{
	*least = INFINITY;
	*most = 0;
	for (size_t i = 0; i < means->count; i++) {
		*least = fmin(*least, means->means[i]);
		*most = fmax(*most, means->means[i]);
	}
}

enum order order_apart(const struct contender *a, const struct contender *b,
		       const struct margins *margins, double *p)
{
	double least_a, most_a, least_b, most_b, arrangements = 1;
	size_t na = a->means.count, nb = b->means.count;
	enum order order = ORDER_UNKNOWN;

	find_extremes(&a->means, &least_a, &most_a);
	find_extremes(&b->means, &least_b, &most_b);
	if (least_b > most_a * margins->slower)
		order = ORDER_SLOWER;
	else if (most_b < least_a / margins->faster)
		order = ORDER_FASTER;
	for (size_t i = 1; i <= na; i++)
		arrangements *= (double)(nb + i) / (double)i;
	/* Two arrangements are that extreme, and this is a second test beside the interval. */
	*p = order == ORDER_UNKNOWN ? 1 : fmin(1, 2 * 2 / arrangements);
	return order;
}

enum order order_pair(const struct contender *a, const struct contender *b, struct contrast *out)
{
	struct margins margins = order_margins(a->loss, b->loss);
	double p;

	contrast_of_rounds(&a->means, &b->means, out);
	enum order order = order_of(out, &margins), apart = order_apart(a, b, &margins, &p);
	return order == ORDER_UNKNOWN && p <= CONTRAST_DISCOVERIES_STRICT ? apart : order;
}

/* Comparisons of all pairs of contenders. */
struct pairs {
	size_t count;		    /* number of contenders */
	struct contrast *contrasts; /* [i * count + k], k < i: contender i against k */
	enum order *orders;	    /* [i * count + k]: the order of contender i to k */
};

/* Corrects for the number of comparisons: an order counts only if it holds at that false discovery
 * rate over all pairs (Benjamini and Hochberg 1995). */
static void correct_for_many(const struct contender *contenders, struct pairs *pairs)
{
	size_t count = pairs->count, n = 0;
	double *p = memory_alloc((count * count + 1) * sizeof *p);
	double *adjusted = memory_alloc((count * count + 1) * sizeof *adjusted);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++) {
			const struct contrast *contrast = &pairs->contrasts[i * count + k];
			struct margins margins =
				order_margins(contenders[k].loss, contenders[i].loss);
			double apart;
			order_apart(&contenders[k], &contenders[i], &margins, &apart);
			p[n] = contrast_p(
				contrast,
				(contrast->difference < 0 ? margins.faster : margins.slower) - 1);
			/* With one process there is no interval and no test. */
			if (!isnan(p[n]))
				p[n] = fmin(p[n], apart);
			n++;
		}
	adjust_for_many(p, n, adjusted);
	n = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++, n++) {
			enum order *order = &pairs->orders[i * count + k];
			struct margins margins =
				order_margins(contenders[k].loss, contenders[i].loss);
			bool differs = *order == ORDER_FASTER || *order == ORDER_SLOWER;
			const struct contrast *contrast = &pairs->contrasts[i * count + k];
			if (differs &&
			    !(adjusted[n] <= contrast_discoveries(contrast, &strict_where_wide)))
				*order = not_apart(contrast, &margins);
		}
	free(adjusted);
	free(p);
}

/* The caller frees both arrays. */
static struct pairs compare_all(const struct contender *contenders, size_t count)
{
	static const enum order turned[] = {[ORDER_UNKNOWN] = ORDER_UNKNOWN,
					    [ORDER_ALIKE] = ORDER_ALIKE,
					    [ORDER_FASTER] = ORDER_SLOWER,
					    [ORDER_SLOWER] = ORDER_FASTER};
	struct pairs pairs = {.count = count,
			      .contrasts =
				      memory_alloc((count * count + 1) * sizeof *pairs.contrasts),
			      .orders = memory_alloc((count * count + 1) * sizeof *pairs.orders)};

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			pairs.orders[i * count + k] = order_pair(&contenders[k], &contenders[i],
								 &pairs.contrasts[i * count + k]);
	correct_for_many(contenders, &pairs);
	for (size_t i = 0; i < count; i++) {
		pairs.orders[i * count + i] = ORDER_ALIKE;
		for (size_t k = 0; k < i; k++)
			pairs.orders[k * count + i] = turned[pairs.orders[i * count + k]];
	}
	return pairs;
}

/* Whether a contender's rank is determined: its order to every other one is known, and all
 * contenders alike to it have the same ones before and after them. (If A is faster than B and C is
 * alike to both, no rank of the three is determined.) */
static bool is_clear(const struct pairs *pairs, const struct rank_range *ranges, size_t i)
{
	const enum order *row = pairs->orders + i * pairs->count;
	bool clear = true;

	for (size_t k = 0; k < pairs->count; k++) {
		clear &= row[k] != ORDER_UNKNOWN;
		if (row[k] == ORDER_ALIKE)
			clear &= ranges[k].low == ranges[i].low && ranges[k].high == ranges[i].high;
	}
	return clear;
}

/* Number of processes of each that would settle an undecided pair; 0 when unknown. If one of them
 * was disturbed: of undisturbed processes, enough that the disturbed ones no longer count. */
static size_t needed_by(const struct contrast *contrast, enum order order, bool disturbed)
{
	size_t needed = order_needed(contrast);

	if (order == ORDER_ALIKE) {
		size_t apart = contrast_needed(contrast, 0, &strict_where_wide);
		needed = apart < CONTRAST_NEEDED_MAX ? apart : 0;
	}
	return disturbed && needed > 0 && needed < ORDER_PROCESSES_MIN ? ORDER_PROCESSES_MIN
								       : needed;
}

/* Raises the number that settles everything about a contender; 0 if one of its pairs has no such
 * number. */
static void raise_needed(struct rank_range *range, size_t needed)
{
	range->unknown |= needed == 0;
	if (range->unknown)
		range->needed = 0;
	else if (needed > range->needed)
		range->needed = needed;
}

/* Records why a pair of this contender is undecided. */
static void note_reason(const struct contrast *contrast, enum order order, bool disturbed,
			struct rank_range *range)
{
	bool unknown = order == ORDER_UNKNOWN && !disturbed;
	bool excludes_1 = contrast->low > 1 || contrast->high < 1;

	range->disturbed |= disturbed;
	range->few |= unknown && excludes_1;
	range->wide |= unknown && !excludes_1;
}

/* Records how many processes would settle the undecided pairs, and why they are undecided. */
static void note_needed(const struct contender *contenders, const struct pairs *pairs,
			struct rank_range *ranges)
{
	for (size_t i = 0; i < pairs->count; i++)
		for (size_t k = 0; k < i; k++) {
			const struct contrast *contrast = &pairs->contrasts[i * pairs->count + k];
			enum order order = pairs->orders[i * pairs->count + k];
			bool open = order == ORDER_UNKNOWN ||
				    (order == ORDER_ALIKE && (ranges[i].rank == 0) &&
				     (ranges[k].rank == 0));
			bool disturbed = contenders[i].loss > 0 || contenders[k].loss > 0;
			if (!open)
				continue;
			size_t needed = needed_by(contrast, order, disturbed);
			note_reason(contrast, order, disturbed, &ranges[i]);
			note_reason(contrast, order, disturbed, &ranges[k]);
			raise_needed(&ranges[i], needed);
			raise_needed(&ranges[k], needed);
		}
}

/* Finds the first contender that no other is proved faster than. (Orders of paired rounds may form
 * a circle; then it is the first one.) */
static size_t find_lead(const struct rank_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ranges[i].low == 1)
			return i;
	return 0;
}

void order_ranks(const struct contender *contenders, size_t count, size_t floor,
		 struct rank_range *out)
{
	struct pairs pairs = compare_all(contenders, count);

	for (size_t i = 0; i < count; i++) {
		const enum order *row = pairs.orders + i * count;
		out[i] =
			(struct rank_range){.low = 1,
					    .high = (int)count,
					    .to_floor = floor < count ? row[floor] : ORDER_UNKNOWN};
		for (size_t k = 0; k < count; k++) {
			out[i].low += row[k] == ORDER_SLOWER;
			out[i].high -= row[k] == ORDER_FASTER;
		}
	}
	size_t lead = find_lead(out, count);
	for (size_t i = 0; i < count; i++) {
		out[i].lead = lead;
		out[i].to_lead = pairs.orders[i * count + lead];
		if (!is_clear(&pairs, out, i))
			continue;
		out[i].rank = out[i].low;
		out[i].tied = out[i].low < out[i].high;
	}
	note_needed(contenders, &pairs, out);
	for (size_t i = 0; i < count; i++)
		if (out[i].rank > 0)
			out[i].low = out[i].high = out[i].rank;
	free(pairs.contrasts);
	free(pairs.orders);
}
