/* Parts of a run, for several machines: each gets whole tables, because the ratio of two frameworks
 * on two machines would be one of the machines. */
#ifndef PRONY_STUDY_PARTS_H
#define PRONY_STUDY_PARTS_H

#include "plan/plan.h"
#include "spec/spec.h"
#include "stats/effort.h"

struct parts {
	int count;
	int *of_cell;	 /* by cell of the plan: its part, from 0 */
	size_t *tables;	 /* by part: how many */
	double *seconds; /* by part: expected, with the references */
};

/* Deals out the tables of a plan, that is the cells with one workload_key, to `count` parts: the
 * largest first, to the part with the least so far. Only the plan decides, not the machine, so that
 * each machine deals the same: every cell counts, whether it can run here or not, at the speed of
 * one core. `cores`: for `seconds`. parts_release frees the arrays. */
void parts_deal(const struct plan *plan, const struct spec *spec, int count, int cores,
		struct parts *out);
void parts_release(struct parts *parts);

/* Removes the cells of other parts from the plan. */
void parts_keep(const struct parts *parts, int part, struct plan *plan);

/* Makes the uid of a run in `count` parts: equal for the parts of one run. `id` tells runs of one
 * spec apart; it may be "". */
void parts_uid(const struct spec *spec, int count, const char *id, char uid[33]);

#endif
