#include "report/costs.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "store/machine_figures.h"

/* Median over ok processes of what a function says of each; NaN when none says anything. */
static double median_over(struct arena *arena, const struct stored_cell *cell,
			  double (*of)(const struct process_record *record))
{
	double *values = arena_array(arena, cell->process_count + 1, sizeof *values);
	size_t count = 0;

	for (size_t i = 0; i < cell->process_count; i++) {
		const struct process_record *record = &cell->processes[i];
		double value = of(record);
		if (!strcmp(record->status, cell_status_name(CELL_OK)) && isfinite(value))
			values[count++] = value;
	}
	return median_of(values, count);
}

static double of_step(const struct process_record *record, double joules)
{
	return record->steps > 0 ? joules / (double)record->steps : NAN;
}

static double packages_per_step(const struct process_record *record)
{
	return of_step(record, record->energy_joules);
}

static double memory_per_step(const struct process_record *record)
{
	return of_step(record, record->energy_dram_joules);
}

static double board_per_step(const struct process_record *record)
{
	return of_step(record, record->energy_psys_joules);
}

static double watts(const struct process_record *record)
{
	return record->power_mean_window;
}

static double threads(const struct process_record *record)
{
	return record->threads > 0 ? (double)record->threads : NAN;
}

void costs_fill(const json_t *environment, struct arena *arena, bool shown, struct summary_row *row)
{
	const struct stored_cell *cell = row->cell;
	struct summary_costs *costs = &row->costs;

	*costs = (struct summary_costs){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	if (!shown)
		return;
	costs->joules_per_step = median_over(arena, cell, packages_per_step);
	costs->joules_per_item = costs->joules_per_step / (double)cell->cell.batch;
	costs->memory_joules_per_step = median_over(arena, cell, memory_per_step);
	costs->board_joules_per_step = median_over(arena, cell, board_per_step);
	costs->watts = median_over(arena, cell, watts);
	double cores = median_over(arena, cell, threads);
	if (isnan(cores) || !device_is_cpu(cell->cell.device))
		return;
	costs->peak_flops = machine_peak_flops(environment, precision_name(cell->cell.precision),
					       (int64_t)cores);
	costs->peak_share = row->flops / costs->peak_flops;
}

/* "field, field: reason; field: reason", of which energy's is power's. */
static bool power_reason(const char *reasons, struct strbuf *out)
{
	static const char field[] = "energy_joules";

	for (const char *group = reasons; *group;) {
		const char *end = strstr(group, "; "), *found = strstr(group, field);
		const char *reason = strstr(group, ": ");

		if (!end)
			end = group + strlen(group);
		if (found && reason && found < reason && reason < end) {
			strbuf_printf(out, "%.*s", (int)(end - reason - 2), reason + 2);
			return true;
		}
		group = *end ? end + 2 : end;
	}
	return false;
}

bool costs_power_reason(const struct stored_cell *cell, struct strbuf *out)
{
	for (size_t i = 0; i < cell->process_count; i++)
		if (power_reason(cell->processes[i].null_reasons, out))
			return true;
	return false;
}

json_t *costs_energy_to_json(const struct summary_costs *costs)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "joules_per_step",
			 json_number(costs->joules_per_step), "joules_per_item",
			 json_number(costs->joules_per_item), "memory_joules_per_step",
			 json_number(costs->memory_joules_per_step), "board_joules_per_step",
			 json_number(costs->board_joules_per_step), "watts",
			 json_number(costs->watts), "grade",
			 isfinite(costs->joules_per_step) ? json_string("B") : json_null());
}

json_t *costs_peak_to_json(const struct summary_costs *costs)
{
	return json_pack("{s:o, s:o}", "flops_per_second", json_number(costs->peak_flops), "share",
			 json_number(costs->peak_share));
}
