/* Between the files of the forecast: what parts of a cell take (forecast_parts.c), how many
 * processes it will have (forecast_counts.c), and what of both is left (forecast_left.c). */
#ifndef PRONY_STATS_FORECAST_INTERNAL_H
#define PRONY_STATS_FORECAST_INTERNAL_H

#include "stats/forecast.h"

static inline double forecast_seconds_of(int64_t ns)
{
	return (double)ns / 1e9;
}

static inline double forecast_mean_or(const struct forecast_mean *mean, double otherwise)
{
	return mean->count > 0 ? mean->sum / mean->count : otherwise;
}

/* Seconds of parts of a cell, as far as it is known now. */

double forecast_start_seconds(const struct forecast *f, const struct forecast_cell *cell);
/* As long as this framework's steps were against what was said, else as all steps were. */
double forecast_step_seconds(const struct forecast *f, const struct forecast_cell *cell);
/* Without its reference. */
double forecast_gate_seconds(const struct forecast *f, const struct forecast_cell *cell);
double forecast_window_seconds(const struct forecast *f, const struct forecast_cell *cell,
			       double step);
/* The shortest and the longest warm-up. */
void forecast_warm_up_limits(const struct forecast *f, const struct forecast_cell *cell,
			     double step, double *low, double *high);
/* Whether steadiness decides how long processes warm up: with steps longer than the cap there is
 * nothing to decide. */
bool forecast_warm_up_is_open(const struct forecast *f, const struct forecast_cell *cell);
/* Of a cell's own processes and of all: before one was seen, as in earlier runs. */
double forecast_expected_warm_up(const struct forecast *f, const struct forecast_cell *cell);
/* One that has lasted so long already ends between now and its longest. */
double forecast_warm_up_after(const struct forecast *f, const struct forecast_cell *cell,
			      double warmed);
double forecast_process_seconds(const struct forecast *f, const struct forecast_cell *cell);
/* How many times longer references took than was said. */
double forecast_reference_scale(const struct forecast *f);

/* Processes. */

/* What a cell's processes tell of the spread of others'. */
struct forecast_told forecast_told_by(const struct forecast_cell *cell);
/* What holds in all cells, and is known better by each process that has ended. */
void forecast_draw_machine(struct forecast *f);
/* Draws how many processes an open cell may have in the end, beside those that do not count so far.
 * Each cell has a seed of its own: what is foretold moves when something was learned, never by
 * itself. */
void forecast_draw_counts(struct forecast *f, size_t i);
/* Those of which the effort has had its number. */
size_t forecast_had(const struct forecast *f, const struct forecast_cell *cell);
/* Those that the cell will have had, in one of the draws. */
int forecast_processes_drawn(const struct forecast *f, const struct forecast_cell *cell, int draw);

/* Puts what the cell has left into the sums anew. */
void forecast_look_at(struct forecast *f, size_t i);

#endif
