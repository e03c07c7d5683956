/*
 * The time limit of a run (`--budget 30m`). First each cell gets a process, then as many as an ok
 * cell needs; both times comparison by comparison, the cheapest first. The time that is left goes
 * to the cells with the widest intervals. Everything but the processes, such as references and
 * gates, gets half of the time at most.
 */
#ifndef PRONY_STUDY_BUDGET_H
#define PRONY_STUDY_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "run/run.h"
#include "study/time_left.h"

/* Arrays have an element for each cell of the plan. */
struct budget {
	int64_t length_ns;   /* 0 = no limit */
	int64_t deadline_ns; /* on the monotonic clock */
	int64_t others_ns;   /* most time of everything but processes */
	int64_t measured_ns; /* of the processes so far */
	bool *refused;	     /* by cell: its reference or gate was too long. Owned */
	int64_t *least_ns;   /* the time of its last process, or of a window before one. Owned */
	double *costs;	     /* expected seconds to its first processes. Owned */
	size_t *turns;	     /* of its comparison; 0: the cheapest. Owned */
	/* Found anew after each event: */
	bool known;
	size_t turn;   /* the first one in which a cell has too few processes; SIZE_MAX: none */
	double widest; /* greatest half width of the cells that may need more processes */
};

/* Parses "90s", "30m", "1.5h", or a number of seconds; NULL: no limit. PRONY_USAGE. */
enum prony_status budget_parse(const char *text, struct budget *out, struct error *err);
/* Starts the clock of the limit. `least`: processes that each cell gets first; `left`: the expected
 * times; `window_ns`: a process takes longer; 0: nothing is timed, so gates get all of it. */
void budget_begin(struct budget *budget, const struct plan *plan, const struct time_left *left,
		  int least, int64_t window_ns);
void budget_release(struct budget *budget);

/* Notes how long a process of the cell took. */
void budget_spend(struct budget *budget, size_t cell, int64_t ns);

/* Whether the cell may spend `seconds` on a reference and its gate; if so, *until_ns is the end of
 * the time for such work, on the monotonic clock (0: no limit). If not, it is refused from now on,
 * and `why` says how long they would take, how much is left and which budget would do. */
bool budget_affords(struct budget *budget, size_t cell, double seconds, int64_t *until_ns,
		    char why[RUN_REASON_BYTES]);

/* Called after each event: another cell may now be next. */
void budget_look_again(struct budget *budget);

/* Whether no gate or process of the cell should begin: it would not end in time, or was refused. */
bool budget_late(const struct budget *budget, size_t cell);

/* Whether other cells come before this one: until all have `least` good processes, those without
 * one, then those of a cheaper comparison; after that, one whose interval is more than twice as
 * wide, so that a process there gains more information. */
bool budget_later(struct budget *budget, const struct run_cell *cells, size_t count, size_t cell,
		  size_t least);

/* Puts the cheapest cells of a round first if one of them has no process yet. */
void budget_order(const struct budget *budget, const struct run_cell *cells, size_t *round,
		  size_t count);

#endif
