/* The processes of a stored cell from which its figures are computed. */
#ifndef PRONY_REPORT_REPLICATES_H
#define PRONY_REPORT_REPLICATES_H

#include "base/arena.h"
#include "stats/estimate.h"
#include "stats/median.h"
#include "stats/rounds.h"
#include "store/store.h"

/* Whether figures of the cell may be shown: it is ok, unfinished or out of time, and its gate did
 * not fail (null has none). Figures of a failed cell would invite comparison. */
bool replicates_have_figures(const struct stored_cell *cell);

/* Returns how many good processes a figure needs for an interval and a rank: 3, or the run's own
 * --repeat if that is less. */
size_t replicates_needed(const struct run_meta *meta);
/* Whether a cell with `good` good processes has an interval and may be compared: it is ok, or it is
 * unfinished and has replicates_needed. */
bool replicates_suffice(const struct run_meta *meta, const struct stored_cell *cell, size_t good);

/* Computes the estimate of a cell of the run from n means of its processes, with the target of the
 * run's effort. */
void replicates_estimate(const struct run_meta *meta, const double *means, size_t n,
			 struct estimate *out);

struct replicates {
	struct round_means means;	       /* means of the processes that count; in the arena */
	const struct process_record **records; /* records of the same processes; in the arena */
	struct round_means undisturbed;	  /* step_undisturbed_ns of those processes that have it */
	struct round_means energy, power; /* of the packages, J per step and W, of those that were
					     alone: a package's counter includes other programs */
	size_t all, disturbed; /* processes with a step time; those of them disturbed by others */
	size_t flagged;	       /* those disturbed by anything */
	double loss;	       /* order_loss() of those that count: 0 if none was disturbed */
};

/* Marks the processes of the cell that count as disturbed by others: those that recorded it; if the
 * cell has the flag, also those for which it is unknown (their windows were too short to tell); if
 * the cell has the flag but none of its processes does (an older run), all. out: an entry for each
 * process. Returns their number. */
size_t replicates_disturbed(const struct stored_cell *cell, bool *out);

/* The same, and also those that recorded any other disturbance. */
size_t replicates_flagged(const struct stored_cell *cell, bool *out);

/* Returns the causes recorded by the disturbed processes, as bits (samples/disturbance.h); 0 if
 * none recorded one. */
unsigned replicates_causes(const struct stored_cell *cell);

/* Returns the positive, finite step means of a cell's ok processes. Disturbed processes
 * (samples/disturbance.h) are left out if enough others remain; otherwise all count. Empty without
 * replicates_have_figures. */
struct replicates replicates_of(struct arena *arena, const struct stored_cell *cell);

/* Whether the process's window had enough blocks for step_undisturbed_ns. */
bool replicates_has_undisturbed(const struct process_record *record);

/* Returns the median over the ok processes of a cell: of a field, given by its name in
 * process_fields, or of a function (NaN: leave out this process). NaN if no value is known, or
 * without replicates_have_figures. */
double replicates_median(const struct stored_cell *cell, const char *field);
struct median_interval replicates_median_interval(const struct stored_cell *cell,
						  const char *field);
double replicates_median_of(const struct stored_cell *cell,
			    double (*of)(const struct process_record *record));

/* Returns the mean time of the cell's ok processes, from start to end, in ns; 0 if none has it. */
double replicates_process_ns(const struct stored_cell *cell);

#endif
