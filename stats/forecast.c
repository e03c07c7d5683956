#include "stats/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stats/steady.h"
#include "stats/variates.h"

#define NS_PER_SECOND 1e9
/* What was not seen yet may be so many times shorter or longer. */
#define DOUBT 1.5
/* What is thought of a spread weighs as much as so many processes: by what is usual, by what
 * earlier runs of the cell had, and at most by what the others of this run have. */
#define USUAL_WEIGHT 2
#define EARLIER_WEIGHT 4
#define OTHERS_WEIGHT 4
/* Two processes may lie at one place: no cell is so quiet. */
#define SPREAD_LEAST 1e-4
/* Before any process was disturbed it is as if so many had not been. */
#define UNDISTURBED_BEFORE 10
/* What earlier runs had of warm-ups, in all cells together, weighs as much as so many of this one.
 */
#define EARLIER_WARM_UPS 2
/* The mean of all warm-ups weighs against those of a cell as much as so many of these. */
#define OTHERS_WARM_UPS 2
/* A reference that has come this far tells how long it will take. */
#define TELLING_FRACTION 0.1
/* Between these parts of the draws the end of a run lies nearly always. */
#define LEFT_LOW 0.01
#define LEFT_HIGH (1 - LEFT_LOW)

static double seconds_of(int64_t ns)
{
	return (double)ns / NS_PER_SECOND;
}

void forecast_init(struct forecast *f, const struct effort_row *effort, int repeat, bool gate_only)
{
	*f = (struct forecast){
		.effort = effort, .learned = 1, .repeat = repeat, .gate_only = gate_only};
	if (!forecast_is_fixed(f))
		stopping_rule_init(&f->rule, effort);
	if (effort->test_steadiness)
		warm_ups_init(&f->warm_ups,
			      seconds_of(STEADY_MIN_NS < effort->warm_up_cap_ns
						 ? STEADY_MIN_NS
						 : effort->warm_up_cap_ns),
			      seconds_of(effort->warm_up_cap_ns));
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

static double mean_or(const struct forecast_mean *mean, double otherwise)
{
	return mean->count > 0 ? mean->sum / mean->count : otherwise;
}

static double start_of(const struct forecast *f, const struct forecast_cell *cell)
{
	const struct forecast_group *group = &f->groups[cell->group];
	/* The gate's process starts first, and reads its files from the disk: half of that counts.
	 */
	double launch = group->launch > 0 ? sqrt(group->launch * cell->start) : cell->start;
	return mean_or(&group->start, launch);
}

/* As long as this framework's steps were against what was said, else as all steps were. */
static double step_of(const struct forecast *f, const struct forecast_cell *cell)
{
	if (cell->told > 0)
		return cell->told;
	return cell->step * exp(mean_or(&f->groups[cell->group].step, mean_or(&f->step, 0)));
}

static double gate_of(const struct forecast *f, const struct forecast_cell *cell)
{
	const struct forecast_group *group = &f->groups[cell->group];
	double start = mean_or(&group->gate, mean_or(&group->start, cell->start));
	return start + cell->gate_steps * step_of(f, cell);
}

/* Of steps that are fewer where they would take longer than that. */
static double cut(double whole, double longest, double step)
{
	return whole > longest ? fmin(whole, fmax(longest, FEW_STEPS * step)) : whole;
}

static double fixed_of(const struct forecast_cell *cell, int64_t steps, double step)
{
	double whole = (double)steps * step;
	return cell->longest > 0 ? cut(whole, cell->longest, step) : whole;
}

static double window_of(const struct forecast *f, const struct forecast_cell *cell, double step)
{
	const struct effort_row *effort = f->effort;
	if (cell->steps > 0)
		return fixed_of(cell, cell->steps, step);
	double least = (double)effort->min_steps * step;
	return cut(fmax(seconds_of(effort->window_ns), least), seconds_of(WINDOW_MAX_NS), step);
}

/* Its shortest and its longest. */
static void warm_up_of(const struct forecast *f, const struct forecast_cell *cell, double step,
		       double *low, double *high)
{
	*low = *high = fixed_of(cell, cell->warm_up_steps, step);
	if (cell->warm_up_steps >= 0)
		return;
	*high = seconds_of(f->effort->warm_up_cap_ns);
	*low = f->effort->test_steadiness ? fmin(*high, seconds_of(STEADY_MIN_NS)) : *high;
	*low = fmax(*low, step);
	*high = fmax(*high, step);
}

/* Whether steadiness decides how long processes warm up: with steps longer than the cap there is
 * nothing to decide. */
static bool warm_up_is_open(const struct forecast *f, const struct forecast_cell *cell)
{
	return f->effort->test_steadiness && cell->warm_up_steps < 0 &&
	       step_of(f, cell) < seconds_of(f->effort->warm_up_cap_ns);
}

/* Of a cell's own processes and of all: before one was seen, as in earlier runs. */
static double expected_warm_up(const struct forecast *f, const struct forecast_cell *cell)
{
	double low, high;
	warm_up_of(f, cell, step_of(f, cell), &low, &high);
	bool open = warm_up_is_open(f, cell);
	double expected = cell->warm_up > 0 ? cell->warm_up : sqrt(low * high);
	if (open)
		expected = mean_or(&f->warm_up, expected);
	expected = fmin(fmax(expected, low), high);
	double weight = open ? OTHERS_WARM_UPS : 0;
	return cell->seen > 0 ? (cell->warmed + weight * expected) / (cell->seen + weight)
			      : expected;
}

/* One that has lasted so long already ends between now and its longest. */
static double warm_up_after(const struct forecast *f, const struct forecast_cell *cell,
			    double warmed)
{
	double low, high;
	warm_up_of(f, cell, step_of(f, cell), &low, &high);
	return warmed < high ? fmax(expected_warm_up(f, cell), sqrt(warmed * high)) : warmed;
}

static double process_of(const struct forecast *f, const struct forecast_cell *cell)
{
	double step = step_of(f, cell);
	if (cell->seen > 0)
		return cell->passed / cell->seen + expected_warm_up(f, cell);
	return start_of(f, cell) + step + expected_warm_up(f, cell) + window_of(f, cell, step);
}

static double reference_scale(const struct forecast *f)
{
	return f->reference_said > 0 ? f->reference_took / f->reference_said : 1;
}

bool forecast_is_fixed(const struct forecast *f)
{
	return f->repeat > 0 || f->gate_only || f->effort->stop_half_width <= 0;
}

/*
 * What is thought of a spread before intervals tell: one with which the fewest processes are as
 * likely enough as not, or, the more of them other programs disturbed, one with which the most are
 * not. Of the fewest up to the middle between both it foretold best (docs/measured).
 */
static double usual_spread(const struct forecast *f)
{
	double calm = f->rule.narrow[f->rule.start], busy = 2 * f->rule.narrow[f->rule.cap];
	return calm * pow(busy / calm, mean_or(&f->disturbed, 0));
}

/* What a cell's processes tell of a spread. The logarithm of a variance from so many degrees of
 * freedom lies digamma(freedom / 2) - log(freedom / 2) off in the mean, with the variance
 * trigamma(freedom / 2) (Bartlett and Kendall, JRSS Suppl. 8, 1946): two processes that happen to
 * lie close tell little. Both by their recurrence and the first terms of their series. */
static struct forecast_told told_by(const struct forecast_cell *cell)
{
	if (cell->n < 2 || !isfinite(cell->spread))
		return (struct forecast_told){0, 0};
	double x = (double)(cell->n - 1) / 2, y = x + 1;
	double digamma = log(y) - 1 / (2 * y) - 1 / (12 * y * y) - 1 / x;
	double trigamma = 1 / (x * x) + 1 / y + 1 / (2 * y * y) + 1 / (6 * y * y * y);
	double log_of = log(fmax(cell->spread, SPREAD_LEAST)) - (digamma - log(x)) / 2;
	return (struct forecast_told){log_of * 2 / trigamma, 2 / trigamma};
}

/* What is thought of the spread of a cell's processes: what earlier runs had, or what is usual, and
 * those of the other cells of this run. Of logarithms, for one framework's may be ten times
 * another's. */
static void believe(const struct forecast *f, const struct forecast_cell *cell,
		    struct stopping_known *out)
{
	struct forecast_told own = told_by(cell);
	bool seen = cell->earlier_spread > 0;
	double prior = seen ? cell->earlier_spread : usual_spread(f);
	double others = f->told.weight - own.weight;
	double part = others > OTHERS_WEIGHT ? OTHERS_WEIGHT / others : 1;
	out->weight = seen ? EARLIER_WEIGHT : USUAL_WEIGHT;
	out->prior = exp((out->weight * log(prior) + part * (f->told.logs - own.logs)) /
			 (out->weight + part * others));
	out->shared = !seen;
}

/* What holds in all cells, and is known better by each process that has ended. */
static void draw_machine(struct forecast *f)
{
	struct random random;
	if (f->drawn == f->learned)
		return;
	f->drawn = f->learned;
	random_init_named(&random, 0, "disturbed");
	double disturbed = f->disturbed.sum, others = f->disturbed.count - disturbed;
	for (int d = 0; d < STOPPING_DRAWS; d++)
		f->lost[d] = share_variate(&random, disturbed, others + UNDISTURBED_BEFORE);
	if (f->effort->test_steadiness)
		warm_ups_draw(&f->warm_ups, f->warm_up_draws, STOPPING_DRAWS);
}

/* Draws how many processes an open cell may have in the end, beside those that do not count so far.
 * Each cell has a seed of its own: what is foretold moves when something was learned, never by
 * itself. */
static void draw_counts(struct forecast *f, size_t i)
{
	struct forecast_cell *cell = &f->cells[i];
	if (cell->drawn == f->learned || cell->ended || forecast_is_fixed(f))
		return;
	draw_machine(f);
	struct stopping_known known = {.n = (int)cell->n, .spread = cell->spread, .lost = f->lost};
	believe(f, cell, &known);
	stopping_draw(&f->rule, &known, i, cell->counts);
	cell->drawn = f->learned;
}

/* Processes of which the effort has had its number. */
static size_t had_of(const struct forecast *f, const struct forecast_cell *cell)
{
	return forecast_is_fixed(f) ? cell->good : cell->n;
}

/* Processes that the cell will have had, in one of the draws. */
static int processes_of(const struct forecast *f, const struct forecast_cell *cell, int draw)
{
	int had = (int)had_of(f, cell), failed = cell->tried - had;
	int most = f->repeat > 0 ? f->repeat : f->effort->processes_cap;
	if (cell->ended || f->gate_only)
		return cell->tried;
	int all = (forecast_is_fixed(f) ? (most > had ? most : had) : cell->counts[draw]) + failed;
	all = all < 2 * most ? all : 2 * most; /* no cell tries more (stats/effort.c) */
	return all > cell->tried ? all : cell->tried;
}

/* sign 1 or -1: into the sums, or out of them. */
static void count_share(struct forecast_sums *sums, const struct forecast_share *share, int sign)
{
	sums->gates += sign * share->gate;
	sums->references += sign * share->references;
	sums->tried += sign * share->tried;
	for (int d = 0; d < STOPPING_DRAWS; d++) {
		sums->seconds[d] += sign * share->more[d] * share->each;
		sums->warm_ups[d] += sign * share->more[d] * share->warm_up;
		sums->more[d] += sign * share->more[d];
		sums->open[d] += share->warm_up > 0 ? sign * share->more[d] : 0;
	}
}

static void look_at(struct forecast *f, size_t i)
{
	struct forecast_cell *cell = &f->cells[i];
	struct forecast_share share = {.in = true, .tried = cell->tried};
	draw_counts(f, i);
	if (!cell->ended) {
		double each = process_of(f, cell);
		share.gate = cell->gate ? gate_of(f, cell) : 0;
		share.references = cell->reference + cell->loss;
		share.each = isfinite(each) ? each : 0; /* it could never be taken out again */
		share.warm_up = warm_up_is_open(f, cell) ? expected_warm_up(f, cell) : 0;
		for (int d = 0; d < STOPPING_DRAWS; d++)
			share.more[d] = processes_of(f, cell, d) - cell->tried;
	}
	if (cell->share.in)
		count_share(&f->sums, &cell->share, -1);
	count_share(&f->sums, &share, 1);
	cell->share = share;
	f->looks++;
}

/* What the plan and earlier runs say of warm-ups. */
static void know_warm_ups(struct forecast *f)
{
	double sum = 0, open = 0, known = 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct forecast_cell *cell = &f->cells[i];
		if (cell->ended || !warm_up_is_open(f, cell))
			continue;
		sum += expected_warm_up(f, cell);
		open++;
		known += cell->warm_up > 0;
	}
	f->usual_warm_up = open > 0 ? sum / open : 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct forecast_cell *cell = &f->cells[i];
		if (!cell->ended && warm_up_is_open(f, cell) && cell->warm_up > 0)
			warm_ups_learn(&f->warm_ups, cell->warm_up, EARLIER_WARM_UPS / known);
	}
}

/* What was learned of one cell may change all; they are looked at by turns. */
static void look_at_due(struct forecast *f)
{
	if (!f->asked)
		know_warm_ups(f);
	for (size_t i = 0; f->due > 0 && (!f->asked || i < FORECAST_LOOKS); i++) {
		f->next = f->next < f->count ? f->next : 0;
		look_at(f, f->next++);
		f->due--;
	}
	f->asked = true;
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
	double steps = of->gate_steps * step_of(f, of);
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
	double warm_up = seconds_of(record->warm_up_ns), window = seconds_of(record->window_ns);
	of->passed += seconds - warm_up;
	of->warmed += warm_up;
	of->seen++;
	learn(&group->start, fmax(seconds - warm_up - window, 0));
	if (warm_up_is_open(f, of)) {
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
		      fmax(seconds - seconds_of(record->window_ns), 0));
}

void forecast_estimate(struct forecast *f, size_t cell, const struct estimate *estimate)
{
	struct forecast_told before = told_by(&f->cells[cell]), after;
	f->cells[cell].n = estimate->n;
	f->cells[cell].spread = estimate->n >= 2 ? estimate->cv_between : NAN;
	after = told_by(&f->cells[cell]);
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
		look_at(f, cell);
}

struct forecast_range forecast_range(const struct forecast *f)
{
	struct forecast_range range = {.low = 0};
	for (size_t i = 0; i < f->count; i++) {
		const struct forecast_cell *cell = &f->cells[i];
		double low, high, step = step_of(f, cell), start = start_of(f, cell);
		if (cell->ended)
			continue;
		double references = (cell->reference + cell->loss) * DOUBT;
		range.high += references + (cell->gate ? gate_of(f, cell) * DOUBT : 0);
		if (f->gate_only) {
			range.low_processes++;
			range.high_processes++;
			continue;
		}
		int least = f->repeat > 0 ? f->repeat : f->effort->processes_start;
		int most = forecast_is_fixed(f) ? least : f->effort->processes_cap;
		int had = (int)had_of(f, cell);
		least = least > had ? least - had : 0;
		most = most > had ? most - had : 0;
		range.low_processes += least;
		range.high_processes += most;
		warm_up_of(f, cell, step / DOUBT, &low, &high);
		range.low += least * (start / DOUBT + low + window_of(f, cell, step / DOUBT));
		warm_up_of(f, cell, step * DOUBT, &low, &high);
		range.high += most * (start * DOUBT + high + window_of(f, cell, step * DOUBT));
	}
	if (f->budget > 0) {
		range.low = fmin(range.low, f->budget);
		range.high = fmin(range.high, f->budget);
	}
	return range;
}

double forecast_processes(struct forecast *f)
{
	double draws[STOPPING_DRAWS];

	look_at_due(f);
	for (int d = 0; d < STOPPING_DRAWS; d++)
		draws[d] = (double)(f->sums.tried + f->sums.more[d]);
	return median_of(draws, STOPPING_DRAWS);
}

/* What of the current gate or reference is done already, of what was expected of it. */
static double done_of(const struct forecast *f, const struct forecast_now *now)
{
	const struct forecast_cell *cell = &f->cells[now->cell];
	double expected = 0;
	switch (now->part) {
	case FORECAST_NOTHING:
	case FORECAST_PROCESS: /* rest_of_process() */
		return 0;
	case FORECAST_GATE:
		expected = cell->gate ? gate_of(f, cell) : 0;
		break;
	case FORECAST_REFERENCE:
		expected = (cell->gate ? cell->reference : cell->loss) * reference_scale(f);
		/* Its own word counts the more, the further it has come. */
		if (now->fraction > 0) {
			double weight = fmin(now->fraction / TELLING_FRACTION, 1);
			double told = now->passed * (1 - now->fraction) / now->fraction;
			double left = fmax(expected - now->passed, 0);
			return expected - (weight * told + (1 - weight) * left);
		}
		break;
	}
	return fmin(now->passed, expected);
}

/* However long it took to come to its window: that is still before it, and what comes after. */
static double rest_of_process(const struct forecast *f, const struct forecast_now *now)
{
	const struct forecast_cell *cell = &f->cells[now->cell];
	double window = window_of(f, cell, step_of(f, cell));
	double end = window + mean_or(&f->groups[cell->group].tail, 0);
	if (now->measures)
		return fmax(end - now->measured, 0);
	if (now->warmed > 0)
		return warm_up_after(f, cell, now->warmed) - now->warmed + end;
	return fmax(process_of(f, cell) - now->passed, expected_warm_up(f, cell) + end);
}

/* The process that runs: seconds to its end, and what one to come of its cell takes, which it may
 * tell already; of either what its warm-up is expected to be. */
struct running {
	bool is, open; /* open: its warm-up may still end sooner or later */
	double rest, warm_up;
	double each, each_warm_up;
};

static struct running running_of(const struct forecast *f, const struct forecast_now *now)
{
	if (now->part != FORECAST_PROCESS || now->cell >= f->count)
		return (struct running){.is = false};
	const struct forecast_cell *cell = &f->cells[now->cell];
	struct running r = {.is = true,
			    .open = cell->share.warm_up > 0 && !now->measures,
			    .rest = rest_of_process(f, now),
			    .warm_up = warm_up_after(f, cell, now->warmed),
			    .each = cell->share.each,
			    .each_warm_up = cell->share.warm_up};
	/* The first one tells already while it goes on. */
	if (cell->seen == 0 && now->passed + r.rest > r.each) {
		double longer = now->passed + r.rest - r.each;
		r.each += longer;
		/* In its window nobody says any more how long it has warmed up. */
		double most = now->measures ? seconds_of(f->effort->warm_up_cap_ns) : r.warm_up;
		if (r.each_warm_up > 0)
			r.each_warm_up += fmin(longer, fmax(most - r.each_warm_up, 0));
	}
	return r;
}

/* Seconds until the end in one of the draws, of processes: with warm-ups as long as is expected;
 * `doubt`: by how much they may be longer or shorter. */
static double processes_left(const struct forecast *f, const struct forecast_now *now,
			     const struct running *r, int d, double *doubt)
{
	const struct forecast_share *share = r->is ? &f->cells[now->cell].share : NULL;
	const struct warm_up_draw *draw = &f->warm_up_draws[d];
	double seconds = f->sums.seconds[d], warm_ups = f->sums.warm_ups[d];
	double open = (double)f->sums.open[d];
	*doubt = 0;
	if (r->is && share->more[d] > 0) {
		int later = share->more[d] - 1;
		seconds += r->rest + later * r->each - share->more[d] * share->each;
		warm_ups += later * r->each_warm_up - share->more[d] * share->warm_up;
		open -= share->warm_up > 0;
		if (r->open)
			*doubt = warm_ups_end(&f->warm_ups, draw, now->warmed) - r->warm_up;
	}
	if (open > 0)
		*doubt += warm_ups_together(&f->warm_ups, draw, open, warm_ups,
					    mean_or(&f->warm_up, f->usual_warm_up)) -
			  warm_ups;
	return seconds;
}

/* Seconds until the end in each of the draws: with warm-ups as long as is expected, and as long as
 * they may be. */
static void draw_left(struct forecast *f, const struct forecast_now *now,
		      double expected[STOPPING_DRAWS], double doubted[STOPPING_DRAWS])
{
	look_at_due(f);
	/* The one that runs is never out of date. */
	if (now->cell < f->count)
		look_at(f, now->cell);
	draw_machine(f);
	struct running running = running_of(f, now);
	double known = f->sums.references * reference_scale(f) + f->sums.gates - done_of(f, now);
	double most = f->budget > 0 ? fmax(f->budget - now->whole, 0) : INFINITY;
	for (int d = 0; d < STOPPING_DRAWS; d++) {
		double doubt, left = known + processes_left(f, now, &running, d, &doubt);
		doubted[d] = fmin(fmax(left + doubt, 0), most);
		expected[d] = fmin(fmax(left, 0), most);
	}
}

struct forecast_time forecast_left(struct forecast *f, const struct forecast_now *now)
{
	double expected[STOPPING_DRAWS], doubted[STOPPING_DRAWS];

	draw_left(f, now, expected, doubted);
	double middle = median_of(expected, STOPPING_DRAWS);
	return (struct forecast_time){
		.low = fmin(percentile_of(doubted, STOPPING_DRAWS, LEFT_LOW), middle),
		.middle = middle,
		.high = fmax(percentile_of(doubted, STOPPING_DRAWS, LEFT_HIGH), middle),
	};
}
