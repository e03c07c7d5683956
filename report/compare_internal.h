/* Functions shared by the files that implement report/compare.h. */
#ifndef PRONY_REPORT_COMPARE_INTERNAL_H
#define PRONY_REPORT_COMPARE_INTERNAL_H

#include <jansson.h>

#include "report/compare.h"

/* Fills in the differences of the two sides' machines, programs and frameworks; within one run
 * there are none. */
void compare_find_differences(struct compare *compare);

/* Writes the name of a side: "run 3 (a1b2c3d4) main, 2026-11-22T10:00:00Z, on host, default
 * effort", with the framework. */
void compare_side_text(const struct compare_side *side, struct strbuf *out);

/* Returns how the intervals were computed: "paired by rounds" or "different runs: Welch". */
const char *compare_method(const struct compare *compare);

/* Returns a note for people that explains the row, without the "+3.5 %"; "" if its verdict is
 * enough. The caller frees. */
char *compare_note(const struct compare *compare, const struct compare_row *row);

/* Writes "3 cells: 1 SLOWER, 2 SAME; geometric mean of the ratios 1.01x (95 % interval ...)". */
void compare_summary_text(const struct compare *compare, struct strbuf *out);

const char *difference_kind_name(enum difference_kind kind); /* "must_match"... */

#endif
