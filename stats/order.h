/* Which contender of a table is before which, as far as the intervals of their ratios tell. */
#ifndef PRONY_STATS_ORDER_H
#define PRONY_STATS_ORDER_H

#include "stats/rounds.h"

/*
 * Two contenders share a rank only where the interval of their ratio is at most so wide to each
 * side: a wider one that holds 1 says that nothing is known, not that they are alike.
 */
#define ORDER_WIDTH_MAX 0.10

/* X(id, word): what B is to A */
#define ORDERS(X)                                                                                  \
	X(UNKNOWN, "unknown") /* the interval of their ratio does not tell */                      \
	X(ALIKE, "alike")     /* it is narrow and holds 1 */                                       \
	X(FASTER, "faster")   /* it lies below 1, or each process does (order_apart) */            \
	X(SLOWER, "slower")   /* it lies above 1, or each process does */

enum order {
#define X(id, word) ORDER_##id,
	ORDERS(X)
#undef X
		ORDER_COUNT
};

const char *order_word(enum order order);

/*
 * What other programs may have done to a contender, as the logarithm of a factor on its step: in
 * each of its processes its whole share, 1 / (1 - taken), where `taken` is the share of its cores'
 * time that they took (0: not disturbed). 0 where no process was; else at least that of
 * ORDER_MARGIN_MIN.
 */
#define ORDER_MARGIN_MIN 1.05 /* others took 5 % at least (samples/disturbance.c) */
double order_loss(const double *taken, size_t count);

/* How far beyond 1 the interval has to lie: 1, or what other programs may have made of a ratio of 1
 * where they took from either; then the two are never alike. */
struct margins {
	double faster, slower; /* to call B the one, or the other */
};

/*
 * At worst A lost nothing to others and B all of its share: so much slower B has to be. Where B was
 * disturbed more than A the difference counts twice, because threads that wait for each other lose
 * more than the share that was taken (docs/measurement.md).
 */
struct margins order_margins(double loss_a, double loss_b);

enum order order_of(const struct contrast *contrast, const struct margins *margins);

/* Processes of each (or pairs) that would settle an unknown order, were difference and spread to
 * stay as they are; 0 when that is unknown or CONTRAST_NEEDED_MAX. */
#define ORDER_PROCESSES_MIN                                                                        \
	3 /* of one process nobody knows the spread: so many would tell more                       \
	   */
size_t order_needed(const struct contrast *contrast);

struct contender {
	struct round_means means; /* at least one */
	double loss;		  /* order_loss() of them; 0: none was disturbed */
};

/*
 * Whether each process of B was faster, or each slower, than each of A, beyond the margin: else
 * ORDER_UNKNOWN. *p: how often it is so with two of the same, twice for the second look at the same
 * processes; 1 where it is not. This is the rank sum test (Wilcoxon 1945) at its end: of seven
 * processes of each 1 arrangement of 1,716, and no process that took fifty times as long weakens
 * it, as it does an interval: that then holds everything.
 */
enum order order_apart(const struct contender *a, const struct contender *b,
		       const struct margins *margins, double *p);

/* What B is to A, and their ratio. */
enum order order_pair(const struct contender *a, const struct contender *b, struct contrast *out);

/* Place of a contender: the ranks from `low` to `high` are possible. */
struct place {
	int rank, low, high; /* rank: 0 where the order to another contender is unknown */
	bool tied;	     /* others have this rank */
	bool disturbed;	     /* what is unknown, is it because one of the two was disturbed */
	bool unknown;	     /* no number of processes is known that would settle it */
	size_t needed; /* processes of each that would, undisturbed ones where it is disturbed, were
			  ratios and spreads as they were found; 0: unknown, or nothing to settle */
	enum order to_floor; /* what it is to contender `floor`; ORDER_UNKNOWN without one */
};

/*
 * contenders: in any order. What is said of the pairs is corrected for their number, and a rank
 * needs more than a pair: who is alike to two that are not alike has none, and neither have they. A
 * faster one by paired rounds is before a slower one, whatever the estimates over all processes
 * say. floor: the contender that all others are held to; `count` without one.
 */
void order_places(const struct contender *contenders, size_t count, size_t floor,
		  struct place *out);

#endif
