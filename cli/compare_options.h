/* Code shared by `prony compare` and `prony run --baseline`. */
#ifndef PRONY_CLI_COMPARE_OPTIONS_H
#define PRONY_CLI_COMPARE_OPTIONS_H

#include "base/error.h"
#include "report/compare.h"

/* Converts "5%", "0.5 %" or "0.05" to a fraction; NULL to NaN, which means the default.
 * PRONY_USAGE. */
enum prony_status threshold_parse(const char *text, double *threshold, struct error *err);

/* Refuses a comparison when nothing matches, or when a property that must match differs and `force`
 * was not given. PRONY_BAD_INPUT. */
enum prony_status compare_allow(const struct compare *compare, bool force, struct error *err);

/* 2 when something is slower, 1 when a cell that is ok in A is not ok in B, 3 when something is
 * inconclusive, otherwise 0. */
int compare_exit(const struct compare *compare);

#endif
