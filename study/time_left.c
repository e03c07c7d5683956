#include "study/time_left.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "frameworks/registry.h"
#include "report/names.h"
#include "run/workload_key.h"
#include "stats/steady.h"

#define STEP_MACS 2e10	/* multiply-accumulates of a core per second, before one is timed */
#define STEP_LEAST 3e-4 /* seconds that an interpreter needs to request a step */
/* Multiplications of the float64 reference on a core per second, before one has run: resnet50 on a
 * Xeon with AVX-512 took 1.1e10 to 1.3e10. */
#define REFERENCE_MACS 1e10
#define RATE_SECONDS 1 /* shorter references of small networks say little of large ones */

/* Seconds of a process outside its steps: start, import, build and end. */
static const double start_seconds[] = {[FRAMEWORK_BUILTIN] = 0.3,
				       [FRAMEWORK_LIBRARY] = 1,
				       [FRAMEWORK_PYTHON] = 5,
				       [FRAMEWORK_COMMAND] = 2};

static double seconds_of(int64_t ns)
{
	return (double)ns * 1e-9;
}

static void init_cell(struct time_left_cell *out, const struct plan_cell *cell,
		      const struct effort_row *effort, int cores)
{
	double passes = cell->recipe.stage == STAGE_FORWARD ? 1 : 3;
	double macs = (double)cell->network->macs * (double)cell->recipe.batch * passes;
	double step = STEP_LEAST + macs / (STEP_MACS * cores);
	double warm_up =
		seconds_of(effort->test_steadiness ? STEADY_MIN_NS : effort->warm_up_cap_ns);
	double window = fmax(seconds_of(effort->window_ns), step * (double)effort->min_steps);

	window = fmin(window, fmax(seconds_of(WINDOW_MAX_NS), FEW_STEPS * step));
	if (cell->steps > 0)
		window = (double)cell->steps * step;
	if (cell->warm_up_steps >= 0)
		warm_up = (double)cell->warm_up_steps * step;
	double start = start_seconds[cell->location->framework->kind];
	*out = (struct time_left_cell){.start = start,
				       .repeat = cell->repeat,
				       .process = start + warm_up + window,
				       .certain =
					       cell->steps > 0 ? 0 : seconds_of(effort->window_ns),
				       .gate = !cell->ungated};
}

/* Cells of the same work share a reference. */
static void share_references(struct time_left *t, const struct plan *plan)
{
	struct names works = {.count = 0};
	size_t *firsts = memory_alloc((plan->count + 1) * sizeof *firsts);
	for (size_t i = 0; i < plan->count; i++) {
		char key[CELL_KEY_BYTES];
		if (t->cells[i].ended)
			continue;
		workload_key(&plan->cells[i], key);
		size_t known = works.count, work = names_add(&works, key, strlen(key));
		if (work == known) {
			firsts[work] = i;
			t->cells[i].reference = workload_reference_macs(&plan->cells[i]);
		}
		t->cells[i].first = firsts[work];
	}
	names_release(&works);
	free(firsts);
}

void time_left_init(struct time_left *t, const struct plan *plan, const struct effort_row *effort,
		    int repeat, bool gate_only, int cores, double budget)
{
	*t = (struct time_left){.processes_start = repeat > 0 ? repeat : effort->processes_start,
				.processes_cap = repeat > 0 ? repeat : effort->processes_cap,
				.gate_only = gate_only,
				.budget = budget,
				.cells = memory_alloc((plan->count + 1) * sizeof *t->cells),
				.count = plan->count};
	for (size_t i = 0; i < plan->count; i++) {
		t->cells[i] = (struct time_left_cell){.ended = true};
		if (plan->cells[i].status == CELL_PENDING)
			init_cell(&t->cells[i], &plan->cells[i], effort, cores);
	}
	t->reference_rate = REFERENCE_MACS * cores;
	share_references(t, plan);
}

void time_left_release(struct time_left *t)
{
	free(t->cells);
	t->cells = NULL;
}

double time_left_forecast(const struct plan_cell *cell, const struct effort_row *effort, int repeat,
			  bool gate_only, int cores, bool reference)
{
	double processes = (effort->processes_start + effort->processes_cap) / 2.0;
	struct time_left_cell of;
	init_cell(&of, cell, effort, cores);
	if (repeat > 0 || cell->repeat > 0)
		processes = cell->repeat > 0 ? cell->repeat : repeat;
	return (of.gate ? of.start : 0) + (gate_only ? 0 : processes * of.process) +
	       (reference ? workload_reference_macs(cell) / (REFERENCE_MACS * cores) : 0);
}

static void take_cell(struct time_left_cell *of, const struct run_cell *cell)
{
	of->tried = cell->tried;
	of->good = (int)cell->mean_count;
	of->ended = cell->status != CELL_PENDING;
}

void time_left_begin(struct time_left *t, const struct run_cell *cells, int64_t now_ns)
{
	t->began_ns = now_ns;
	for (size_t i = 0; i < t->count; i++) {
		take_cell(&t->cells[i], &cells[i]);
		t->cells[i].gate &= !cells[i].gate_done;
		if (cells[i].gate_done)
			t->cells[t->cells[i].first].reference = 0;
	}
}

static double reference_seconds(const struct time_left *t, double macs)
{
	double rate = t->computed_seconds >= RATE_SECONDS ? t->computed_macs / t->computed_seconds
							  : t->reference_rate;
	return macs / rate;
}

double time_left_first(const struct time_left *t, size_t cell, int processes, double *reference)
{
	const struct time_left_cell *of = &t->cells[cell];
	*reference = reference_seconds(t, of->reference);
	return (of->gate ? of->start : 0) + (t->gate_only ? 0 : processes * of->process);
}

double time_left_gate(const struct time_left *t, size_t cell, double multiplications)
{
	double gate = t->gates.count > 0 ? t->gates.sum / t->gates.count : t->cells[cell].start;
	return reference_seconds(t, multiplications) + (t->cells[cell].gate ? gate : 0);
}

static void add(struct time_left_mean *mean, double seconds)
{
	mean->sum += seconds;
	mean->count++;
}

/* Learns from a reference that is computed how long the next ones take. */
static void note_reference(struct time_left *t, const struct run_event *event, int64_t now_ns)
{
	struct time_left_cell *first = &t->cells[t->cells[event->cell].first];
	bool computes = event->kind == EVENT_REFERENCE;
	if (event->kind == EVENT_PREPARE || event->kind == EVENT_FRAMEWORK)
		return;
	if (computes && !t->reference_since_ns)
		t->computing_macs = first->reference;
	if (!computes && t->reference_since_ns && t->computing_macs > 0) {
		t->computed_macs += t->computing_macs;
		t->computed_seconds += seconds_of(now_ns - t->reference_since_ns);
	}
	if (!computes)
		t->computing_macs = 0;
	first->reference = 0;
}

void time_left_event(struct time_left *t, const struct run_event *event,
		     const struct run_cell *cell, int64_t now_ns)
{
	struct time_left_cell *of = &t->cells[event->cell];
	bool gate_ends = event->kind == EVENT_GATE_END, ends = event->kind == EVENT_PROCESS_END;
	bool computes = event->kind == EVENT_REFERENCE, computed = t->reference_since_ns > 0;
	double seconds = seconds_of(now_ns - t->since_ns);

	take_cell(of, cell);
	if (gate_ends)
		add(&t->gates, seconds);
	if (ends && t->window_since_ns) {
		add(&of->processes, seconds);
		add(&t->processes, seconds);
	}
	note_reference(t, event, now_ns);
	/* A reference is computed once: the next gate or process will not wait for it. */
	if (event->kind == EVENT_PREPARE || computes != computed)
		t->since_ns = computes ? 0 : now_ns;
	if (computes != computed)
		t->reference_since_ns = computes ? now_ns : 0;
	if (event->kind == EVENT_STAGE && !strcmp(event->text, RUN_STAGE_MEASURING))
		t->window_since_ns = now_ns;
	if (gate_ends || event->kind == EVENT_GATE_KEPT || event->kind == EVENT_PROCESS_START)
		of->gate = false;
	if (gate_ends || ends || event->kind == EVENT_CELL_END)
		t->since_ns = t->window_since_ns = 0;
	t->cell = event->cell;
	t->fraction = event->fraction;
}

/* Returns the number of processes that a cell will have had in the end, if `wanted` must end well;
 * for a run of gates alone, the number of gates. */
static int processes_of(const struct time_left *t, const struct time_left_cell *of, int wanted)
{
	if (t->gate_only)
		return of->start > 0;
	if (of->repeat > 0)
		wanted = of->repeat;
	return of->tried + (of->ended || of->good > wanted ? 0 : wanted - of->good);
}

/* Returns the seconds that the cell's gate and processes still need. */
static double cell_left(const struct time_left *t, const struct time_left_cell *of, int64_t now_ns)
{
	bool runs = of == &t->cells[t->cell] && t->since_ns > 0;
	double passed = runs ? seconds_of(now_ns - t->since_ns) : 0, certain = of->certain;
	double gate = t->gates.count > 0 ? t->gates.sum / t->gates.count : of->start;
	double wanted = of->repeat > 0 ? of->repeat : (t->processes_start + t->processes_cap) / 2.0;
	double left = t->gate_only || of->good > wanted ? 0 : wanted - of->good;
	const struct time_left_mean *mean = of->processes.count ? &of->processes : &t->processes;
	double each = mean->count > 0 ? mean->sum / mean->count : of->process;

	if (of->ended)
		return 0;
	if (of->gate || !runs)
		return (of->gate ? fmax(gate - passed, 0) : 0) + left * each;
	if (t->window_since_ns)
		certain = fmax(certain - seconds_of(now_ns - t->window_since_ns), 0);
	return fmax(left - 1, 0) * each + fmax(each - passed, certain);
}

/* Writes the number of processes, such as "24 to 44"; returns the higher one. */
static int count_text(const struct time_left *t, char *out, size_t out_bytes)
{
	int low = 0, high = 0;
	for (size_t i = 0; i < t->count; i++) {
		low += processes_of(t, &t->cells[i], t->processes_start);
		high += processes_of(t, &t->cells[i], t->processes_cap);
	}
	snprintf(out, out_bytes, low < high ? "%d to %d" : "%d", low, high);
	return high;
}

void time_left_count(const struct time_left *t, char *out, size_t out_bytes)
{
	int done = 0;
	char all[40];
	for (size_t i = 0; i < t->count; i++)
		done += t->gate_only ? t->cells[i].start > 0 && !t->cells[i].gate
				     : t->cells[i].tried;
	count_text(t, all, sizeof all);
	snprintf(out, out_bytes, "%d of %s", done, all);
}

static void duration_text(double seconds, char *out, size_t out_bytes)
{
	const char *unit = seconds < 100 ? "s" : seconds < 6000 ? "min" : "h";
	double one = seconds < 100 ? 1 : seconds < 6000 ? 60 : 3600;
	snprintf(out, out_bytes, "%.0f %s", round(seconds / one), unit);
}

/* Returns the seconds of the references that are still to be computed. */
static double references_left(const struct time_left *t)
{
	double macs = 0;
	for (size_t i = 0; i < t->count; i++)
		macs += t->cells[i].reference;
	return reference_seconds(t, macs);
}

/* Returns the seconds of all gates and processes, and of the reference that is computed now. */
static double cells_left(const struct time_left *t, int64_t now_ns)
{
	double left = 0, computed = seconds_of(now_ns - t->reference_since_ns);
	for (size_t i = 0; i < t->count; i++)
		left += cell_left(t, &t->cells[i], now_ns);
	if (t->reference_since_ns && t->fraction > 0)
		left += computed / t->fraction - computed;
	return left;
}

double time_left_seconds(const struct time_left *t, int64_t now_ns)
{
	double left = cells_left(t, now_ns) + references_left(t);
	return t->budget > 0 ? fmin(left, fmax(t->budget - seconds_of(now_ns - t->began_ns), 0))
			     : left;
}

void time_left_text(const struct time_left *t, int64_t now_ns, char *out, size_t out_bytes)
{
	char duration[40];
	duration_text(time_left_seconds(t, now_ns), duration, sizeof duration);
	snprintf(out, out_bytes, "about %s", duration);
}

void time_left_plan_text(const struct time_left *t, char *out, size_t out_bytes)
{
	char count[40], duration[40], reference[40], budget[40];
	int most = count_text(t, count, sizeof count);
	const char *plural = most == 1 ? "" : t->gate_only ? "s" : "es";
	double left = cells_left(t, t->began_ns), references = references_left(t);
	size_t used;
	duration_text(left, duration, sizeof duration);
	duration_text(references, reference, sizeof reference);
	duration_text(t->budget, budget, sizeof budget);
	snprintf(out, out_bytes, "%s %s%s%s%s%s", count, t->gate_only ? "gate" : "process", plural,
		 t->gate_only ? " to run, without timing" : "", most ? ", about " : "",
		 most ? duration : "");
	/* Their answers may be kept from an earlier run. */
	used = strlen(out);
	if (most && references >= 1)
		snprintf(out + used, out_bytes - used, " and up to %s for references", reference);
	used = strlen(out);
	if (most && t->budget > 0 && left + references > t->budget)
		snprintf(out + used, out_bytes - used, "; --budget ends it after %s", budget);
}
