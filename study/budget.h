/*
 * The time limit of a run (`--budget 30m`); its time goes to the cells with the widest intervals.
 */
#ifndef PRONY_STUDY_BUDGET_H
#define PRONY_STUDY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/run.h"

struct budget {
	int64_t length_ns;   /* 0 = no limit */
	int64_t deadline_ns; /* on the monotonic clock */
	int64_t *last_ns;    /* per cell: time of its last process; 0 = none yet. Owned */
	double widest;	     /* greatest half width of the cells that may need more processes; NaN =
				unknown now */
};

/* Parses "90s", "30m", "1.5h", or a number of seconds; NULL: no limit. PRONY_USAGE. */
enum prony_status budget_parse(const char *text, struct budget *out, struct error *err);
/* Starts the clock of the limit. */
void budget_begin(struct budget *budget, size_t cells);
void budget_release(struct budget *budget);

/* Notes how long a process of the cell took. */
void budget_spend(struct budget *budget, size_t cell, int64_t ns);

/* Called when a cell has ended: another cell's interval may now be the widest. */
void budget_look_again(struct budget *budget);

/* Whether no gate or process of the cell should begin: no time is left, or its last one took more
 * than is left. */
bool budget_late(const struct budget *budget, size_t cell);

/* For cells that have the minimum of `least` good processes: whether another cell's interval is
 * more than twice as wide as this one's, so that a process there gains more information. */
bool budget_later(struct budget *budget, const struct run_cell *cells, size_t count, size_t cell,
		  size_t least);

#endif
