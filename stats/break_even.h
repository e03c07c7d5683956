/* After how many steps a contender that starts later but steps faster has overtaken another. */
#ifndef PRONY_STATS_BREAK_EVEN_H
#define PRONY_STATS_BREAK_EVEN_H

#include <stddef.h>

/* Processes of a contender: time from its start to the end of the first step, and mean of its later
 * steps, both in ns. Borrowed. */
struct starts {
	const double *first, *step;
	size_t count;
};

struct break_even {
	double steps;	  /* NaN unless `late` starts later and its steps are proved to be faster */
	double low, high; /* 95 %; low is at least 1 */
};

/* The number of steps after which `late` has spent less time than `soon`, by arithmetic means,
 * because times add up. The interval is Fieller's (1954, J. R. Stat. Soc. B 16) with Welch's
 * degrees of freedom; processes of the two are independent, first step and step of a process are
 * not. */
void break_even_of(const struct starts *soon, const struct starts *late, struct break_even *out);

#endif
