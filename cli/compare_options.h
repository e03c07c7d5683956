/* What `prony compare` and `prony run --baseline` share. */
#ifndef PRONY_CLI_COMPARE_OPTIONS_H
#define PRONY_CLI_COMPARE_OPTIONS_H

#include "base/error.h"
#include "report/compare.h"

/* "5%", "0.5 %" or "0.05" to 0.05; NULL to NaN: the default. PRONY_USAGE. */
enum prony_status threshold_parse(const char *text, double *threshold, struct error *err);

/* What stands in the way of a comparison: nothing matches, or what must match differs and `force`
 * was not given. PRONY_BAD_INPUT. */
enum prony_status compare_allow(const struct compare *compare, bool force, struct error *err);

/* 2 where something is slower, 1 where a cell that is ok in A is not in B, 3 where something is
 * inconclusive, else 0. */
int compare_exit(const struct compare *compare);

#endif
