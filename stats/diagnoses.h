/* Diagnoses of a cell: what its processes show that a user can act on. Each test is rarely wrong on
 * noise without structure (docs/measurement.md has the rates). */
#ifndef PRONY_STATS_DIAGNOSES_H
#define PRONY_STATS_DIAGNOSES_H

#include <stddef.h>

#include "base/strbuf.h"

/* X(id, word, title, unit, factor from the value to the number shown, what it means and what
 * helps) */
#define DIAGNOSES(X)                                                                               \
	X(FIRST_SLOWEST, "first-slowest", "First process slow", " %", 100,                         \
	  "Cold caches or a low clock at the start: run again.")                                   \
	X(TWO_SPEEDS, "two-speeds", "Two speeds", " % apart", 100,                                 \
	  "The step time is a mean of both: trust the ratios.")                                    \
	X(PAGE_FAULTS, "page-faults", "Page faults per step", "", 1,                               \
	  "Make malloc keep freed memory (docs/measurement.md).")                                  \
	X(SHORT_STEP, "short-step", "Short steps", " us", 1e-3,                                    \
	  "Call overhead dominates: use a larger batch.")

enum diagnosis_id {
#define X(id, word, before, after, factor, remedy) DIAGNOSIS_##id,
	DIAGNOSES(X)
#undef X
		DIAGNOSIS_COUNT
};

const char *diagnosis_word(enum diagnosis_id id);   /* "two-speeds" */
const char *diagnosis_title(enum diagnosis_id id);  /* "Two speeds" */
const char *diagnosis_remedy(enum diagnosis_id id); /* what it means, and the remedy */
/* Adds "21 % apart". */
void diagnosis_value(enum diagnosis_id id, double value, struct strbuf *out);

/* A process: its number (1 is the cell's first), its mean step in ns, positive and finite, and page
 * faults a step (NaN where they were not counted). */
struct diagnosed_process {
	double number, mean, page_faults;
};

/* values[id]: relative to the step (0.05 is 5 %), ns for SHORT_STEP, a count for PAGE_FAULTS; NaN
 * when nothing was found. Processes are in the order in which they ran. */
struct diagnoses {
	double values[DIAGNOSIS_COUNT];
};
void diagnose(const struct diagnosed_process *processes, size_t count, struct diagnoses *out);

#endif
