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

/* The exit codes of a comparison. SLOWER comes before BROKEN, and BROKEN before UNDECIDED. */
enum compare_exit {
	COMPARE_EXIT_FINE = 0,
	COMPARE_EXIT_BROKEN = 1,    /* a cell that is ok in A is not ok in B */
	COMPARE_EXIT_SLOWER = 2,    /* a cell is SLOWER */
	COMPARE_EXIT_UNDECIDED = 3, /* a cell is INCONCLUSIVE, or no cell has a verdict */
};
enum compare_exit compare_exit(const struct compare *compare);

#endif
