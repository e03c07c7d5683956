#include "report/replicates.h"

#include <math.h>
#include <string.h>

#include "stats/order.h"

size_t replicates_disturbed(const struct stored_cell *cell, bool *out)
{
	size_t count = 0;

	for (size_t i = 0; i < cell->process_count; i++) {
		out[i] = cell_flags_parse(cell->processes[i].flags) & CELL_FLAG_DISTURBED;
		count += out[i];
	}
	if (count > 0 || !(cell->flags & CELL_FLAG_DISTURBED))
		return count;
	memset(out, true, cell->process_count * sizeof *out);
	return cell->process_count;
}

bool replicates_have_figures(const struct stored_cell *cell)
{
	bool refused = cell->evidence && cell->gate != CELL_OK;
	return !refused && (cell->status == CELL_OK || cell->status == CELL_PENDING);
}

static bool has_mean(const struct process_record *record)
{
	return !strcmp(record->status, cell_status_name(CELL_OK)) &&
	       isfinite(record->step_mean_ns) && record->step_mean_ns > 0;
}

/* Share of its cores' time that others, and the host, took; of one that was not disturbed 0. What
 * disturbed it from elsewhere is not known to have taken anything: then very little. */
static double taken_from(const struct process_record *record)
{
	double taken = fmax(record->foreign_share, 0) + fmax(record->steal_share, 0);

	return taken > 0 ? taken : 1e-9;
}

struct replicates replicates_of(struct arena *arena, const struct stored_cell *cell)
{
	size_t room = cell->process_count + 1, count = 0;
	double *means = arena_array(arena, room, sizeof *means);
	double *taken = arena_array(arena, room, sizeof *taken);
	int64_t *rounds = arena_array(arena, room, sizeof *rounds);
	bool *disturbed = arena_array(arena, room, sizeof *disturbed);
	struct replicates found = {.all = 0};

	replicates_disturbed(cell, disturbed);
	for (size_t i = 0; replicates_have_figures(cell) && i < cell->process_count; i++) {
		if (!has_mean(&cell->processes[i]))
			continue;
		found.all++;
		found.disturbed += disturbed[i];
	}
	size_t left = found.all - found.disturbed;
	bool choose = left >= REPLICATES_LEFT_MIN && 2 * left >= found.all;
	for (size_t i = 0; found.all > 0 && i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		if (!has_mean(record) || (choose && disturbed[i]))
			continue;
		means[count] = record->step_mean_ns;
		taken[count] = disturbed[i] ? taken_from(record) : 0;
		rounds[count++] = record->round;
	}
	found.loss = order_loss(taken, count);
	found.means = (struct round_means){.means = means, .rounds = rounds, .count = count};
	return found;
}
