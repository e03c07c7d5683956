/* A run with a time limit (`--budget 30m`), which is spent where intervals are widest. */
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
	int64_t *last_ns;    /* per cell: what its last process took; 0 = none yet. Owned */
	double widest;	     /* half width of any cell that may want more; NaN = not known now */
	char reason[96];
};

/* "90s", "30m", "1.5h", or a number of seconds; NULL: no limit. PRONY_USAGE. */
enum prony_status budget_parse(const char *text, struct budget *out, struct error *err);
/* The clock runs from here. */
void budget_begin(struct budget *budget, size_t cells);
void budget_release(struct budget *budget);

/* Notes how long a process of the cell took. */
void budget_spend(struct budget *budget, size_t cell, int64_t ns);

/* A cell has ended: the widest interval may be another cell's. */
void budget_look_again(struct budget *budget);

/* Why no gate or process of the cell should begin: there is no time, or its last one took more than
 * there is; NULL: it may. Borrowed. */
const char *budget_late(const struct budget *budget, size_t cell);

/*
 * Of cells that have what they need at least (`least` good processes): whether another one's
 * interval is more than twice as wide as this one's, so that a process there says more.
 */
bool budget_later(struct budget *budget, const struct run_cell *cells, size_t count, size_t cell,
		  size_t least);

#endif
