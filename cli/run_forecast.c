#include "cli/run_forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/memory_limit.h"
#include "cli/run_counted.h"
#include "run/workload.h"

/* Multiply-accumulates that a core does in a second: the float64 reference with AVX2
 * (parity/gate_size.c), and a framework in fp32 on a layer of some size. Until the run knows. */
#define REFERENCE_MACS 1e10
#define STEP_MACS 2e10
#define STEP_LEAST 3e-4 /* seconds: what an interpreter takes to ask for one */

/* Seconds of a process beside its steps, by what has to be loaded (docs/measured). */
static double start_of(const struct framework *framework)
{
	switch (framework->kind) {
	case FRAMEWORK_BUILTIN:
		return 0.3;
	case FRAMEWORK_LIBRARY:
		return 1;
	case FRAMEWORK_PYTHON:
		return 5;
	case FRAMEWORK_COMMAND:
		break;
	}
	return 2;
}

/* Cells of one framework are a group; what is in `f` are those before this one. */
static size_t group_of(const struct plan *plan, const struct forecast *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(plan->cells[i].cell.framework, plan->cells[f->count].cell.framework))
			return f->cells[i].group;
	return f->group_count;
}

/* A cell before this one with the same work, itself if there is none. */
static size_t first_of_work(const struct plan *plan, size_t cell, char (*keys)[CELL_KEY_BYTES])
{
	workload_key(&plan->cells[cell], keys[cell]);
	for (size_t i = 0; i < cell; i++)
		if (plan->cells[i].status == CELL_PENDING && !strcmp(keys[i], keys[cell]))
			return i;
	return cell;
}

static struct workload_costs costs_of(const struct plan_cell *cell)
{
	struct workload_costs costs;
	struct error none = ERROR_INIT;
	/* What cannot be known is said when it is needed. */
	if (workload_costs(cell, memory_limit_reference(), &costs, &none) != PRONY_OK)
		costs = (struct workload_costs){0};
	return costs;
}

void run_forecast_plan(struct job *job, struct forecast *out)
{
	const struct plan *plan = &job->chosen.plan;
	double cores = job->chosen.cpu_count;
	size_t room = plan->count ? plan->count : 1;
	char(*keys)[CELL_KEY_BYTES] = memory_alloc(room * sizeof *keys);
	struct workload_costs *costs = memory_alloc(room * sizeof *costs);
	forecast_init(out, job->effort, job->chosen.spec.repeat, job->chosen.spec.gate_only);
	out->budget = (double)job->budget.length_ns * 1e-9;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_cell *cell = &plan->cells[i];
		size_t group = group_of(plan, out);
		if (cell->status != CELL_PENDING) {
			forecast_add(out, &(struct forecast_cell){.group = group, .ended = true});
			continue;
		}
		size_t first = first_of_work(plan, i, keys);
		costs[i] = first == i ? costs_of(cell) : costs[first];
		double own = first == i && !cell->ungated ? 1 / (REFERENCE_MACS * cores) : 0;
		double macs = cell->ungated ? 0 : (double)costs[i].step;
		double updates = macs > 0 ? costs[i].gate_steps / macs : 0;
		forecast_add(out, &(struct forecast_cell){
					  .reference = (double)costs[i].gate * own,
					  .loss = (double)costs[i].loss * own,
					  .start = start_of(cell->place->framework),
					  .step = STEP_LEAST + macs / (STEP_MACS * cores),
					  .gate_steps = updates,
					  .steps = cell->steps,
					  .warm_up_steps = cell->warm_up_steps,
					  .longest = (double)cell->epoch_ns * 1e-9,
					  .group = group,
					  .gate = !cell->ungated,
				  });
	}
	free(keys);
	free(costs);
}

void run_forecast_history(const struct job *job, struct store *store, struct forecast *f)
{
	char host[64] = "";
	if (gethostname(host, sizeof host - 1) != 0)
		return;
	for (size_t i = 0; i < job->chosen.plan.count; i++) {
		struct forecast_cell *cell = &f->cells[i];
		struct store_times times;
		struct error none = ERROR_INIT;
		if (cell->ended ||
		    store_times(store, job->chosen.plan.cells[i].hash, host, job->effort->name,
				&times, &none) != PRONY_OK ||
		    times.processes == 0)
			continue;
		cell->start = times.start_ns * 1e-9;
		cell->step = times.step_ns * 1e-9;
		cell->warm_up = times.warm_up_ns * 1e-9;
		cell->earlier_spread = times.spread;
	}
}

void run_forecast_resume(const struct job *job, struct forecast *f)
{
	for (size_t i = 0; i < job->chosen.plan.count; i++) {
		const struct run_cell *cell = &job->cells[i];
		struct estimate estimate;
		if (cell->status != CELL_PENDING)
			forecast_end(f, i);
		if (cell->gate_done)
			forecast_no_gate(f, i);
		size_t disturbed = 0;
		for (size_t k = 0; k < cell->mean_count; k++)
			disturbed += cell->disturbances[k] == DISTURBANCE_SEEN;
		forecast_disturbed(f, disturbed, cell->mean_count - disturbed);
		f->cells[i].tried = cell->tried;
		f->cells[i].good = cell->mean_count;
		counted_estimate(cell, &estimate);
		forecast_estimate(f, i, &estimate);
	}
}

/* "6 to 28 min"; both ends in the unit of the higher one. */
static void span_text(double low, double high, char *out, size_t out_bytes)
{
	const char *unit = high < 100 ? "s" : high < 6000 ? "min" : "h";
	double one = high < 100 ? 1 : high < 6000 ? 60 : 3600;
	int least = (int)(low / one), most = (int)ceil(high / one);
	if (least < 1)
		snprintf(out, out_bytes, "up to %d %s", most, unit);
	else if (least == most)
		snprintf(out, out_bytes, "about %d %s", most, unit);
	else
		snprintf(out, out_bytes, "%d to %d %s", least, most, unit);
}

void run_forecast_text(const struct job *job, const struct forecast *f, char *out, size_t out_bytes)
{
	struct forecast_range range = forecast_range(f);
	const char *plural = range.high_processes == 1 ? "" : f->gate_only ? "s" : "es";
	char span[64] = "", count[64];
	if (range.low_processes == range.high_processes)
		snprintf(count, sizeof count, "%d", range.high_processes);
	else
		snprintf(count, sizeof count, "%d to %d", range.low_processes,
			 range.high_processes);
	if (range.high_processes > 0) {
		memcpy(span, ", ", 3);
		span_text(range.low, range.high, span + 2, sizeof span - 2);
	}
	const char *cells = job->chosen.plan.count == 1 ? "" : "s";
	if (f->gate_only)
		snprintf(out, out_bytes, "%zu cell%s: %s gate%s to run, nothing is timed%s",
			 job->chosen.plan.count, cells, count, plural, span);
	else
		snprintf(out, out_bytes, "%zu cell%s, %s effort: %s process%s%s",
			 job->chosen.plan.count, cells, job->effort->name, count, plural, span);
}
