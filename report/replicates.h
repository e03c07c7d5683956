/* The processes of a stored cell from which its figures come. */
#ifndef PRONY_REPORT_REPLICATES_H
#define PRONY_REPORT_REPLICATES_H

#include "base/arena.h"
#include "stats/rounds.h"
#include "store/store.h"

/* May figures of the cell be shown: it is ok or unfinished, and its gate did not fail (null has
 * none). Those of a cell that failed would invite comparison. */
bool replicates_have_figures(const struct stored_cell *cell);

struct replicates {
	struct round_means means;	       /* of those that count; in the arena */
	const struct process_record **records; /* the same ones; in the arena */
	struct round_means undisturbed;	       /* step_undisturbed_ns of those that have it */
	size_t all, disturbed; /* processes with a step time; of them, disturbed by others */
	size_t flagged;	       /* disturbed by anything */
	double loss;	       /* order_loss() of those that count: 0 where none was disturbed */
};

/*
 * Which processes of the cell count as disturbed by others: where it has the flag those that say so
 * and those of which nobody knows (their windows were too short to tell), and all of an older run's
 * cell of which none says so. out: of each process. How many.
 */
size_t replicates_disturbed(const struct stored_cell *cell, bool *out);

/* The same, and those that say that anything disturbed them. */
size_t replicates_flagged(const struct stored_cell *cell, bool *out);

/* What disturbed those that say so: causes by their bits (samples/disturbance.h); 0 where none says
 * it. */
unsigned replicates_causes(const struct stored_cell *cell);

/*
 * The positive, finite step means of a cell's ok processes. Those that were disturbed
 * (samples/disturbance.h) are left out where enough remain; where not, all count. Empty without
 * replicates_have_figures.
 */
struct replicates replicates_of(struct arena *arena, const struct stored_cell *cell);

/* Whether its window had enough blocks for step_undisturbed_ns. */
bool replicates_has_undisturbed(const struct process_record *record);

/* Median over the ok processes of a cell: of a field of process_fields by its name, or of a
 * function (NaN: not of this one). NaN where nothing is known, or without replicates_have_figures.
 */
double replicates_median(const struct stored_cell *cell, const char *field);
double replicates_median_of(const struct stored_cell *cell,
			    double (*of)(const struct process_record *record));

/* Mean time of the cell's ok processes, from start to end, in ns; 0 where none has it. */
double replicates_process_ns(const struct stored_cell *cell);

#endif
