/* Selects the processes of a cell that count, and computes medians over them. */
#include "report/replicates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "samples/disturbance.h"
#include "stats/effort.h"
#include "stats/order.h"

static bool says_disturbed(const struct process_record *record)
{
	return cell_flags_parse(record->flags) & CELL_FLAG_DISTURBED;
}

size_t replicates_disturbed(const struct stored_cell *cell, bool *out)
{
	bool flagged = cell->flags & CELL_FLAG_DISTURBED;
	size_t say = 0, seen = 0, count = 0;

	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		say += says_disturbed(record) ? 1 : 0;
		seen += process_disturbance(record) == DISTURBANCE_SEEN ? 1 : 0;
	}
	for (size_t i = 0; i < cell->process_count; i++) {
		enum disturbance found = process_disturbance(&cell->processes[i]);
		out[i] = found == DISTURBANCE_SEEN ||
			 (flagged && (say == 0 || (seen > 0 && found == DISTURBANCE_UNKNOWN)));
		count += out[i];
	}
	return count;
}

size_t replicates_flagged(const struct stored_cell *cell, bool *out)
{
	size_t count = replicates_disturbed(cell, out);

	for (size_t i = 0; i < cell->process_count; i++) {
		if (out[i] || !says_disturbed(&cell->processes[i]))
			continue;
		out[i] = true;
		count++;
	}
	return count;
}

unsigned replicates_causes(const struct stored_cell *cell)
{
	unsigned causes = 0;

	for (size_t i = 0; i < cell->process_count; i++)
		if (says_disturbed(&cell->processes[i]))
			causes |= disturbance_seen(&cell->processes[i]);
	return causes;
}

bool replicates_have_figures(const struct stored_cell *cell)
{
	bool refused = cell->evidence && cell->gate != CELL_OK;
	return !refused && (cell->status == CELL_OK || cell->status == CELL_PENDING ||
			    cell->status == CELL_TIMEOUT);
}

/* The run's own --repeat; 0 if the effort chose the number of processes. */
static long fixed_repeat(const struct run_meta *meta)
{
	static const char key[] = "\nrepeat="; /* of spec_canonical */
	const char *line = meta->spec ? strstr(meta->spec, key) : NULL;

	return line ? strtol(line + sizeof key - 1, NULL, 10) : 0;
}

void replicates_estimate(const struct run_meta *meta, const double *means, size_t n,
			 struct estimate *out)
{
	double target = 0;

	for (size_t i = 0; i < sizeof effort_table / sizeof *effort_table; i++)
		if (!strcmp(effort_table[i].name, meta->effort))
			target = effort_table[i].stop_half_width;
	estimate_compute(means, n, target, target > 0 && fixed_repeat(meta) <= 0, out);
}

size_t replicates_needed(const struct run_meta *meta)
{
	long repeat = fixed_repeat(meta);

	return repeat > 0 && repeat < OK_PROCESSES_MIN ? (size_t)repeat : OK_PROCESSES_MIN;
}

bool replicates_suffice(const struct run_meta *meta, const struct stored_cell *cell, size_t good)
{
	return cell->status == CELL_OK ||
	       (cell->status == CELL_PENDING && good >= replicates_needed(meta));
}

static bool has_mean(const struct process_record *record)
{
	return !strcmp(record->status, cell_status_name(CELL_OK)) &&
	       isfinite(record->step_mean_ns) && record->step_mean_ns > 0;
}

bool replicates_has_undisturbed(const struct process_record *record)
{
	return isfinite(record->step_undisturbed_ns) && record->step_undisturbed_ns > 0;
}

/* Returns the mean taken time of the disturbed processes for which it is known. If none of their
 * time was taken (others ran on other cores), or if it is unknown for all, returns a very small
 * value. */
static double taken_usually(const struct stored_cell *cell, const bool *disturbed)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < cell->process_count; i++) {
		double taken = disturbed[i] ? disturbance_taken(&cell->processes[i]) : NAN;
		sum += isnan(taken) ? 0 : taken;
		known += isnan(taken) ? 0 : 1;
	}
	return fmax(known > 0 ? sum / (double)known : 0, 1e-9);
}

double replicates_process_ns(const struct stored_cell *cell)
{
	double sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		if (strcmp(record->status, cell_status_name(CELL_OK)) != 0 ||
		    record->total_ns == RECORD_NONE)
			continue;
		sum += (double)record->total_ns;
		count++;
	}
	return count > 0 ? sum / (double)count : 0;
}

/* Adds what the packages used in a process that was alone. */
static void add_energy(const struct process_record *record, struct round_means *energy,
		       struct round_means *power)
{
	if (!(record->energy_joules > 0) || record->steps <= 0 ||
	    disturbance_by_others(disturbance_seen(record)))
		return;
	((double *)energy->means)[energy->count] = record->energy_joules / (double)record->steps;
	((double *)power->means)[power->count++] = record->power_mean_window;
	((int64_t *)energy->rounds)[energy->count++] = record->round;
}

struct replicates replicates_of(struct arena *arena, const struct stored_cell *cell)
{
	size_t room = cell->process_count + 1, count = 0, calm = 0;
	double *means = arena_array(arena, room, sizeof *means);
	double *taken = arena_array(arena, room, sizeof *taken);
	double *undisturbed = arena_array(arena, room, sizeof *undisturbed);
	int64_t *rounds = arena_array(arena, room, sizeof *rounds);
	int64_t *undisturbed_rounds = arena_array(arena, room, sizeof *undisturbed_rounds);
	const struct process_record **records = arena_array(arena, room, sizeof *records);
	bool *disturbed = arena_array(arena, room, sizeof *disturbed);
	int64_t *energy_rounds = arena_array(arena, room, sizeof *energy_rounds);
	struct replicates found = {
		.energy = {arena_array(arena, room, sizeof(double)), energy_rounds, 0},
		.power = {arena_array(arena, room, sizeof(double)), energy_rounds, 0}};

	replicates_disturbed(cell, disturbed);
	for (size_t i = 0; replicates_have_figures(cell) && i < cell->process_count; i++) {
		if (!has_mean(&cell->processes[i]))
			continue;
		found.all++;
		found.disturbed += disturbed[i];
		found.flagged += disturbed[i] || says_disturbed(&cell->processes[i]);
	}
	double usually = taken_usually(cell, disturbed);
	bool choose = estimate_leaves_out(found.all, found.disturbed);
	for (size_t i = 0; found.all > 0 && i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		if (!has_mean(record) || (choose && disturbed[i]))
			continue;
		means[count] = record->step_mean_ns;
		taken[count] = disturbed[i] ? disturbance_taken(record) : 0;
		if (disturbed[i] && !(taken[count] > 0))
			taken[count] = usually;
		records[count] = record;
		rounds[count++] = record->round;
		add_energy(record, &found.energy, &found.power);
		if (!replicates_has_undisturbed(record))
			continue;
		undisturbed[calm] = record->step_undisturbed_ns;
		undisturbed_rounds[calm++] = record->round;
	}
	found.loss = order_loss(taken, count);
	found.records = records;
	found.means = (struct round_means){.means = means, .rounds = rounds, .count = count};
	found.undisturbed = (struct round_means){
		.means = undisturbed, .rounds = undisturbed_rounds, .count = calm};
	return found;
}

static double field_value(const struct process_record *record, const struct record_field *field)
{
	const char *member = (const char *)record + field->offset;
	int64_t integer;
	double real;

	if (field->type == FIELD_TYPE_REAL) {
		memcpy(&real, member, sizeof real);
		return real;
	}
	memcpy(&integer, member, sizeof integer);
	return integer == RECORD_NONE ? NAN : (double)integer;
}

/* The median of the field; if there is no field, of the function. */
static struct median_interval median_over(const struct stored_cell *cell,
					  const struct record_field *field,
					  double (*of)(const struct process_record *record))
{
	struct median_interval found;
	double *values = memory_alloc((cell->process_count + 1) * sizeof *values);
	size_t count = 0;

	for (size_t i = 0; replicates_have_figures(cell) && i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		double value = field ? field_value(record, field) : of(record);
		if (!strcmp(record->status, cell_status_name(CELL_OK)) && isfinite(value))
			values[count++] = value;
	}
	median_interval_of(values, count, &found);
	free(values);
	return found;
}

struct median_interval replicates_median_interval(const struct stored_cell *cell, const char *field)
{
	size_t i = 0;

	while (strcmp(process_fields[i].name, field) != 0)
		i++;
	return median_over(cell, &process_fields[i], NULL);
}

double replicates_median(const struct stored_cell *cell, const char *field)
{
	return replicates_median_interval(cell, field).median;
}

double replicates_median_of(const struct stored_cell *cell,
			    double (*of)(const struct process_record *record))
{
	return median_over(cell, NULL, of).median;
}
