/* Computes the energy of a step, and the share of the machine's peak that a cell reaches. */
#include "report/costs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "store/machine_figures.h"

static double of_step(const struct process_record *record, double joules)
{
	return record->steps > 0 ? joules / (double)record->steps : NAN;
}

static double memory_per_step(const struct process_record *record)
{
	return of_step(record, record->energy_dram_joules);
}

static double board_per_step(const struct process_record *record)
{
	return of_step(record, record->energy_psys_joules);
}

static double threads(const struct process_record *record)
{
	return record->threads > 0 ? (double)record->threads : NAN;
}

/* The driver's own use of an idle GPU, and that of other programs, was there before. */
static double gpu_memory(const struct process_record *record)
{
	double own = record->gpu_memory_max_window - record->gpu_memory_before;

	return own > 0 ? own : NAN;
}

static void fill_gpu(const struct run_meta *meta, const struct replicates *replicates,
		     const struct stored_cell *cell, struct summary_costs *costs)
{
	double *joules = memory_alloc((replicates->means.count + 1) * sizeof *joules);
	size_t count = 0;

	costs->gpu_memory = replicates_median_of(cell, gpu_memory);
	costs->gpu_watts = replicates_median(cell, "gpu_power_window");
	costs->gpu_power_held = replicates_median(cell, "gpu_power_held");
	for (size_t i = 0; i < replicates->means.count; i++) {
		const struct process_record *record = replicates->records[i];
		double each = of_step(record, record->gpu_energy_joules);
		if (!(each > 0))
			continue;
		joules[count++] = each;
		if (strcmp(record->gpu_energy_grade, costs->gpu_grade) > 0)
			snprintf(costs->gpu_grade, sizeof costs->gpu_grade, "%.1s",
				 record->gpu_energy_grade);
	}
	replicates_estimate(meta, joules, count, &costs->gpu_joules_per_step);
	free(joules);
}

void costs_fill(const json_t *environment, const struct run_meta *meta,
		const struct replicates *replicates, struct summary_row *row)
{
	const double second_ns = 1e9;
	const struct stored_cell *cell = row->cell;
	struct summary_costs *costs = &row->costs;

	*costs = (struct summary_costs){
		.peak_flops = NAN,
		.peak_share = NAN,
		.joules_floor = {.ratio = NAN, .low = NAN, .high = NAN},
	};
	fill_gpu(meta, replicates, cell, costs);
	replicates_estimate(meta, replicates->energy.means, replicates->energy.count,
			    &costs->joules_per_step);
	replicates_estimate(meta, replicates->power.means, replicates->power.count, &costs->watts);
	costs->memory_joules_per_step = replicates_median_of(cell, memory_per_step);
	costs->board_joules_per_step = replicates_median_of(cell, board_per_step);
	double cores = replicates_median_of(cell, threads);
	double bandwidth = NAN;
	const char *precision = precision_name(cell->cell.precision);
	if (device_is_cpu(cell->cell.device) && !isnan(cores)) {
		costs->peak_flops = machine_peak_flops(environment, precision, (int64_t)cores);
		bandwidth = machine_bandwidth(environment, (int64_t)cores);
	} else if (!strcmp(cell->cell.device, "cuda:0")) {
		costs->peak_flops = machine_gpu_peak_flops(environment, precision);
		bandwidth = machine_bandwidth(environment, 0);
	}
	costs->bandwidth_share = row->read_per_step / row->step.center * second_ns / bandwidth;
	costs->peak_share = row->flops_per_step / row->step.center * second_ns / costs->peak_flops;
}

/* Finds the reason for missing power in "field, field: reason; field: reason"; it is that of
 * energy. */
static bool power_reason(const char *reasons, const char *field, struct strbuf *out)
{
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
	bool cpu = device_is_cpu(cell->cell.device);

	for (size_t i = 0; i < cell->process_count; i++)
		if (power_reason(cell->processes[i].null_reasons,
				 cpu ? "energy_joules" : "gpu_energy_joules", out))
			return true;
	return false;
}
