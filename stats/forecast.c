#include "stats/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stats/forecast_internal.h"
#include "stats/steady.h"

#define NS_PER_SECOND 1e9
/* What was not seen yet may be so many times shorter or longer. */
#define DOUBT 1.5

void forecast_init(struct forecast *f, const struct effort_row *effort, int repeat, bool gate_only)
{
	*f = (struct forecast){
		.effort = effort, .learned = 1, .repeat = repeat, .gate_only = gate_only};
	if (!forecast_is_fixed(f))
		stopping_rule_init(&f->rule, effort);
	if (effort->test_steadiness)
		warm_ups_init(&f->warm_ups,
			      forecast_seconds_of(STEADY_MIN_NS < effort->warm_up_cap_ns
							  ? STEADY_MIN_NS
							  : effort->warm_up_cap_ns),
			      forecast_seconds_of(effort->warm_up_cap_ns));
}

void forecast_release(struct forecast *f)
{
	free(f->cells);
	free(f->groups);
	*f = (struct forecast){.count = 0};
}

void forecast_add(struct forecast *f, const struct forecast_cell *cell)
{
	f->cells = memory_realloc(f->cells, (f->count + 1) * sizeof *f->cells);
	f->cells[f->count] = *cell;
	f->cells[f->count++].spread = NAN;
	f->due = f->count;
	if (cell->group < f->group_count)
		return;
	f->groups = memory_realloc(f->groups, (cell->group + 1) * sizeof *f->groups);
	memset(f->groups + f->group_count, 0,
	       (cell->group + 1 - f->group_count) * sizeof *f->groups);
	f->group_count = cell->group + 1;
}

static void learn(struct forecast_mean *mean, double value)
{
	if (!isfinite(value))
		return;
	mean->sum += value;
	mean->count++;
}

void forecast_no_gate(struct forecast *f, size_t cell)
{
	f->cells[cell].gate = false;
	f->cells[cell].reference = 0;
	f->due = f->count;
}

void forecast_disturbed(struct forecast *f, size_t disturbed, size_t others)
{
	f->disturbed.sum += (double)disturbed;
	f->disturbed.count += (int)(disturbed + others);
	f->learned++;
	f->due = f->count;
}

void forecast_reference(struct forecast *f, size_t cell, bool loss, double seconds)
{
	struct forecast_cell *of = &f->cells[cell];
	double *said = loss ? &of->loss : &of->reference;
	if (*said > 0) {
		f->reference_said += *said;
		f->reference_took += seconds;
	}
	*said = 0;
	f->due = f->count;
}

void forecast_launch(struct forecast *f, size_t cell, double seconds)
{
	struct forecast_group *group = &f->groups[f->cells[cell].group];
	if (seconds > 0 && (group->launch <= 0 || seconds < group->launch))
		group->launch = seconds;
	f->due = f->count;
}

void forecast_gate(struct forecast *f, size_t cell, double seconds)
{
	const struct forecast_cell *of = &f->cells[cell];
	double steps = of->gate_steps * forecast_step_seconds(f, of);
	learn(&f->groups[of->group].gate, fmax(seconds - steps, 0));
	forecast_no_gate(f, cell);
}

void forecast_step(struct forecast *f, size_t cell, double seconds)
{
	struct forecast_cell *of = &f->cells[cell];
	if (!(seconds > 0))
		return;
	if (of->told <= 0 && of->step > 0) {
		learn(&f->groups[of->group].step, log(seconds / of->step));
		learn(&f->step, log(seconds / of->step));
	}
	of->told = seconds;
	f->due = f->count;
}

void forecast_process(struct forecast *f, size_t cell, const struct process_record *record,
		      double seconds)
{
	struct forecast_cell *of = &f->cells[cell];
	struct forecast_group *group = &f->groups[of->group];
	of->tried++;
	of->loss = 0;
	learn(&f->disturbed, process_disturbance(record) == DISTURBANCE_SEEN);
	f->learned++;
	f->due = f->count;
	if (strcmp(record->status, "ok") != 0 || record->warm_up_ns == RECORD_NONE ||
	    record->window_ns == RECORD_NONE)
		return;
	of->good++;
	double warm_up = forecast_seconds_of(record->warm_up_ns),
	       window = forecast_seconds_of(record->window_ns);
	of->passed += seconds - warm_up;
	of->warmed += warm_up;
	of->seen++;
	learn(&group->start, fmax(seconds - warm_up - window, 0));
	if (forecast_warm_up_is_open(f, of)) {
		learn(&f->warm_up, warm_up);
		warm_ups_learn(&f->warm_ups, warm_up, 1);
	}
	forecast_step(f, cell, record->step_mean_ns / NS_PER_SECOND);
}

void forecast_tail(struct forecast *f, size_t cell, const struct process_record *record,
		   double seconds)
{
	if (record->window_ns != RECORD_NONE)
		learn(&f->groups[f->cells[cell].group].tail,
		      fmax(seconds - forecast_seconds_of(record->window_ns), 0));
}

void forecast_estimate(struct forecast *f, size_t cell, const struct estimate *estimate)
{
	struct forecast_told before = forecast_told_by(&f->cells[cell]), after;
	f->cells[cell].n = estimate->n;
	f->cells[cell].spread = estimate->n >= 2 ? estimate->cv_between : NAN;
	after = forecast_told_by(&f->cells[cell]);
	f->told.logs += after.logs - before.logs;
	f->told.weight += after.weight - before.weight;
	f->learned++;
	f->due = f->count;
}

void forecast_end(struct forecast *f, size_t cell)
{
	forecast_no_gate(f, cell);
	f->cells[cell].loss = 0;
	f->cells[cell].ended = true;
	if (f->asked)
		forecast_look_at(f, cell);
}

struct forecast_range forecast_range(const struct forecast *f)
{
	struct forecast_range range = {.low = 0};
	for (size_t i = 0; i < f->count; i++) {
		const struct forecast_cell *cell = &f->cells[i];
		double low, high, step = forecast_step_seconds(f, cell),
				  start = forecast_start_seconds(f, cell);
		if (cell->ended)
			continue;
		double references = (cell->reference + cell->loss) * DOUBT;
		range.high +=
			references + (cell->gate ? forecast_gate_seconds(f, cell) * DOUBT : 0);
		if (f->gate_only) {
			range.low_processes++;
			range.high_processes++;
			continue;
		}
		int least = f->repeat > 0 ? f->repeat : f->effort->processes_start;
		int most = forecast_is_fixed(f) ? least : f->effort->processes_cap;
		int had = (int)forecast_had(f, cell);
		least = least > had ? least - had : 0;
		most = most > had ? most - had : 0;
		range.low_processes += least;
		range.high_processes += most;
		forecast_warm_up_limits(f, cell, step / DOUBT, &low, &high);
		range.low += least *
			     (start / DOUBT + low + forecast_window_seconds(f, cell, step / DOUBT));
		forecast_warm_up_limits(f, cell, step * DOUBT, &low, &high);
		range.high += most * (start * DOUBT + high +
				      forecast_window_seconds(f, cell, step * DOUBT));
	}
	if (f->budget > 0) {
		range.low = fmin(range.low, f->budget);
		range.high = fmin(range.high, f->budget);
	}
	return range;
}
