/* The median with an interval that needs no distribution. */
#ifndef PRONY_STATS_MEDIAN_H
#define PRONY_STATS_MEDIAN_H

#include <stddef.h>

struct median_interval {
	double median, low, high; /* low and high NaN below MEDIAN_INTERVAL_MIN values */
};

/* With fewer values no two order statistics enclose the median with 95 %. */
enum { MEDIAN_INTERVAL_MIN = 6 };

/* Values may be INFINITY: more than a common limit. The interval is that of order statistics (David
 * and Nagaraja, "Order Statistics", 7.1): it covers at least 95 %, whatever the distribution, ties
 * and limit. NaN when n = 0. */
void median_interval_of(const double *x, size_t n, struct median_interval *out);

#endif
