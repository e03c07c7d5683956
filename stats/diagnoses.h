/*
 * What the spread of a cell shows besides its size: levels, trends and dependence that an interval
 * over process means knows nothing of. Each test is rarely wrong on noise without structure
 * (docs/measurement.md has the rates).
 */
#ifndef PRONY_STATS_DIAGNOSES_H
#define PRONY_STATS_DIAGNOSES_H

#include <stddef.h>

#include "base/strbuf.h"

/* X(id, word, before and after its figure, factor to the figure shown, what it means and what
 * helps). The last ones say in other words what an interval or a step says already. */
#define DIAGNOSES(X)                                                                               \
	X(FIRST_SLOWEST, "first-slowest", "first process ", " % above the others", 100,            \
	  "files or clocks were cold: measure again, or use more processes")                       \
	X(TWO_SPEEDS, "two-speeds", "processes at two speeds, ", " % apart", 100,                  \
	  "each keeps its own (threads, memory, code chosen at start; or a machine that changes "  \
	  "its speed), and the step is that of a mixture: use more processes")                     \
	X(CHANGING_SPEED, "changing-speed", "the speed changes by ",                               \
	  " %, also while processes run", 100,                                                     \
	  "not what a process keeps from its start: clocks, other guests of the host, or "         \
	  "phases of its own; only ratios of the same rounds hold")                                \
	X(PAGE_FAULTS, "page-faults", "", " thousand page faults a step", 1e-3,                    \
	  "memory goes back to the system and comes again page by page: an allocator that keeps "  \
	  "it, such as glibc's with MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_")            \
	X(TREND, "trend", "processes change by ", " % over the rounds", 100,                       \
	  "heat, clocks or other work: only ratios of the same rounds hold")                       \
	X(LEVEL_CHANGE, "level-change", "processes change by ", " % once and stay there", 100,     \
	  "clocks, or other guests of the host: only ratios of the same rounds hold")              \
	X(BLOCKS_TWO_SPEEDS, "blocks-two-speeds", "blocks at two speeds, ", " % apart", 100,       \
	  "work that comes and goes, or clocks: prony log shows what the sensors saw")             \
	X(SHIFT, "shift", "the step changes by ", " % within windows", 100,                        \
	  "not warm yet, or throttled: use a longer warm-up")                                      \
	X(SPREAD_BETWEEN, "spread-between", "processes vary by ", " %", 100,                       \
	  "use more processes, not longer ones")                                                   \
	X(SPREAD_WITHIN, "spread-within", "blocks vary by ", " %", 100,                            \
	  "pauses or other work: prony doctor shows it; use longer windows")                       \
	X(CORRELATED, "correlated-blocks", "neighbouring blocks correlate by ", "", 1,             \
	  "a window says less than its length: use more processes, not longer ones")               \
	X(SHORT_STEP, "short-step", "a step takes ", " ms", 1e-6,                                  \
	  "calls into the framework may weigh as much as its work: use a larger batch")

enum diagnosis_id {
#define X(id, word, before, after, factor, remedy) DIAGNOSIS_##id,
	DIAGNOSES(X)
#undef X
		DIAGNOSIS_COUNT,
	DIAGNOSIS_SAID_ALREADY = DIAGNOSIS_SPREAD_BETWEEN /* from here on */
};

const char *diagnosis_word(enum diagnosis_id id);   /* "two-speeds" */
const char *diagnosis_remedy(enum diagnosis_id id); /* what it means and what helps */
/* Adds "processes at two speeds, 21 % apart". */
void diagnosis_figure(enum diagnosis_id id, double value, struct strbuf *out);

/* A process: its number, 1 for the cell's first, its mean, page faults a step (NaN where nobody
 * counted), and the means of equal blocks
 * of its window in order of time, all ns per step, positive and finite. Borrowed. */
struct diagnosed_process {
	double number, mean, page_faults;
	const double *blocks;
	size_t block_count;
};

/* Blocks of a window that are looked at: from so many on, joined to at most so many. */
#define DIAGNOSED_BLOCKS_MIN 20

/* values[id]: relative to the step (0.05 = 5 %), but ns for SHORT_STEP, the coefficient for
 * CORRELATED and a number for PAGE_FAULTS; NaN where nothing was found. Processes in the order in
 * which they ran. */
struct diagnoses {
	double values[DIAGNOSIS_COUNT];
};
void diagnose(const struct diagnosed_process *processes, size_t count, struct diagnoses *out);

#endif
