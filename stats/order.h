/* Orders the contenders of a table as far as the intervals of their ratios allow. */
#ifndef PRONY_STATS_ORDER_H
#define PRONY_STATS_ORDER_H

#include "stats/rounds.h"

/* Two contenders share a rank only if the interval of their ratio is at most this wide on each
 * side. A wider interval that contains 1 means that the order is unknown, not that they are alike.
 */
#define ORDER_WIDTH_MAX 0.10

/* X(id, word): the order of B relative to A */
#define ORDERS(X)                                                                                  \
	X(UNKNOWN, "unknown") /* unknown: the interval of the ratio does not decide */             \
	X(ALIKE, "alike")     /* the interval is narrow and contains 1 */                          \
	X(FASTER, "faster")   /* the interval lies below 1, or each process does (order_apart) */  \
	X(SLOWER, "slower")   /* the interval lies above 1, or each process does */

enum order {
#define X(id, word) ORDER_##id,
	ORDERS(X)
#undef X
		ORDER_COUNT
};

const char *order_word(enum order order);

/* The most that other programs may have slowed down a contender, as the logarithm of a factor on
 * its step: 1 / (1 - taken) per process, where `taken` is the share of its cores' time that they
 * took (0: not disturbed). 0 when no process was disturbed; otherwise at least that of
 * ORDER_MARGIN_MIN. */
#define ORDER_MARGIN_MIN 1.05 /* others took at least 5 % (samples/disturbance.c) */
double order_loss(const double *taken, size_t count);

/* How far from 1 the interval must lie: 1, or the most that other programs can have changed a ratio
 * of 1 if they disturbed one of the two; then the two are never called alike. */
struct margins {
	double faster, slower; /* bounds to call B faster, and slower */
};

/* The worst case is that A lost nothing and B lost its whole share; B must be slower by more than
 * that. If B was disturbed more than A, the difference counts twice, because threads that wait for
 * each other lose more than the share taken (docs/measurement.md). */
struct margins order_margins(double loss_a, double loss_b);

enum order order_of(const struct contrast *contrast, const struct margins *margins);

/* Number of processes of each (or pairs) that would settle an unknown order, if difference and
 * spread stayed the same; 0 when unknown or CONTRAST_NEEDED_MAX. */
#define ORDER_PROCESSES_MIN 3 /* suggested when a single process leaves the spread unknown */
size_t order_needed(const struct contrast *contrast);

struct contender {
	struct round_means means; /* at least one */
	double loss;		  /* order_loss() of the processes; 0: none was disturbed */
};

/* Whether every process of B was faster, or every one slower, than each of A, beyond the margin;
 * otherwise ORDER_UNKNOWN. *p: its probability for two identical contenders, doubled because the
 * same processes are tested twice; 1 if it is not so. This is the extreme case of the rank sum test
 * (Wilcoxon 1945): with seven processes of each, 1 arrangement of 1,716. Unlike an interval it is
 * not weakened by one process that took fifty times as long. */
enum order order_apart(const struct contender *a, const struct contender *b,
		       const struct margins *margins, double *p);

/* The order of B relative to A, and their ratio. */
enum order order_pair(const struct contender *a, const struct contender *b, struct contrast *out);

/* The possible ranks of a contender: `low` to `high`. */
struct rank_range {
	int rank, low, high; /* rank; 0 when the order to another contender is unknown */
	bool tied;	     /* shared with others */
	bool disturbed;	     /* an order is unknown because one of the two was disturbed */
	bool wide;	     /* an order is unknown because the interval of the ratio contains 1 */
	bool few; /* an order is unknown although the interval excludes 1: that many processes do
		     not prove it at the error rate of ranks */
	bool unknown;  /* no number of processes is known that would settle it */
	size_t needed; /* processes of each that would settle it (undisturbed ones if disturbed), if
			  ratios and spreads stayed the same; 0: unknown, or nothing to settle */
	enum order
		to_floor;   /* its order relative to contender `floor`; ORDER_UNKNOWN without one */
	size_t lead;	    /* the first contender that no other is proved faster than */
	enum order to_lead; /* its order relative to that one */
};

/* Ranks of contenders, which may be in any order. Pairwise results are corrected for their number.
 * A rank needs more than one pair: a contender alike to two that differ has no rank, and neither
 * have they. An order from paired rounds counts, whatever the estimates over all processes are.
 * floor: the contender that the others are compared with; `count` without one. */
void order_ranks(const struct contender *contenders, size_t count, size_t floor,
		 struct rank_range *out);

#endif
