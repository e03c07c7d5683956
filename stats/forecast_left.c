#include <math.h>

#include "stats/forecast_internal.h"

/* What earlier runs had of warm-ups, in all cells together, weighs as much as so many of this one.
 */
#define EARLIER_WARM_UPS 2
/* A reference that has come this far tells how long it will take. */
#define TELLING_FRACTION 0.1
/* Between these parts of the draws the end of a run lies nearly always. */
#define LEFT_LOW 0.01
#define LEFT_HIGH (1 - LEFT_LOW)

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

void forecast_look_at(struct forecast *f, size_t i)
{
	struct forecast_cell *cell = &f->cells[i];
	struct forecast_share share = {.in = true, .tried = cell->tried};
	forecast_draw_counts(f, i);
	if (!cell->ended) {
		double each = forecast_process_seconds(f, cell);
		share.gate = cell->gate ? forecast_gate_seconds(f, cell) : 0;
		share.references = cell->reference + cell->loss;
		share.each = isfinite(each) ? each : 0; /* it could never be taken out again */
		share.warm_up =
			forecast_warm_up_is_open(f, cell) ? forecast_expected_warm_up(f, cell) : 0;
		for (int d = 0; d < STOPPING_DRAWS; d++)
			share.more[d] = forecast_processes_drawn(f, cell, d) - cell->tried;
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
		if (cell->ended || !forecast_warm_up_is_open(f, cell))
			continue;
		sum += forecast_expected_warm_up(f, cell);
		open++;
		known += cell->warm_up > 0;
	}
	f->usual_warm_up = open > 0 ? sum / open : 0;
	for (size_t i = 0; i < f->count; i++) {
		const struct forecast_cell *cell = &f->cells[i];
		if (!cell->ended && forecast_warm_up_is_open(f, cell) && cell->warm_up > 0)
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
		forecast_look_at(f, f->next++);
		f->due--;
	}
	f->asked = true;
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
		expected = cell->gate ? forecast_gate_seconds(f, cell) : 0;
		break;
	case FORECAST_REFERENCE:
		expected =
			(cell->gate ? cell->reference : cell->loss) * forecast_reference_scale(f);
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
	double window = forecast_window_seconds(f, cell, forecast_step_seconds(f, cell));
	double end = window + forecast_mean_or(&f->groups[cell->group].tail, 0);
	if (now->measures)
		return fmax(end - now->measured, 0);
	if (now->warmed > 0)
		return forecast_warm_up_after(f, cell, now->warmed) - now->warmed + end;
	return fmax(forecast_process_seconds(f, cell) - now->passed,
		    forecast_expected_warm_up(f, cell) + end);
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
			    .warm_up = forecast_warm_up_after(f, cell, now->warmed),
			    .each = cell->share.each,
			    .each_warm_up = cell->share.warm_up};
	/* The first one tells already while it goes on. */
	if (cell->seen == 0 && now->passed + r.rest > r.each) {
		double longer = now->passed + r.rest - r.each;
		r.each += longer;
		/* In its window nobody says any more how long it has warmed up. */
		double most =
			now->measures ? forecast_seconds_of(f->effort->warm_up_cap_ns) : r.warm_up;
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
					    forecast_mean_or(&f->warm_up, f->usual_warm_up)) -
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
		forecast_look_at(f, now->cell);
	forecast_draw_machine(f);
	struct running running = running_of(f, now);
	double known =
		f->sums.references * forecast_reference_scale(f) + f->sums.gates - done_of(f, now);
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
