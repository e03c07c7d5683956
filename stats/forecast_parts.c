#include <math.h>

#include "stats/forecast_internal.h"
#include "stats/steady.h"

/* The mean of all warm-ups weighs against those of a cell as much as so many of these. */
#define OTHERS_WARM_UPS 2

double forecast_start_seconds(const struct forecast *f, const struct forecast_cell *cell)
{
	const struct forecast_group *group = &f->groups[cell->group];
	/* The gate's process starts first, and reads its files from the disk: half of that counts.
	 */
	double launch = group->launch > 0 ? sqrt(group->launch * cell->start) : cell->start;
	return forecast_mean_or(&group->start, launch);
}

double forecast_step_seconds(const struct forecast *f, const struct forecast_cell *cell)
{
	if (cell->told > 0)
		return cell->told;
	return cell->step *
	       exp(forecast_mean_or(&f->groups[cell->group].step, forecast_mean_or(&f->step, 0)));
}

double forecast_gate_seconds(const struct forecast *f, const struct forecast_cell *cell)
{
	const struct forecast_group *group = &f->groups[cell->group];
	double start = forecast_mean_or(&group->gate, forecast_mean_or(&group->start, cell->start));
	return start + cell->gate_steps * forecast_step_seconds(f, cell);
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

double forecast_window_seconds(const struct forecast *f, const struct forecast_cell *cell,
			       double step)
{
	const struct effort_row *effort = f->effort;
	if (cell->steps > 0)
		return fixed_of(cell, cell->steps, step);
	double least = (double)effort->min_steps * step;
	return cut(fmax(forecast_seconds_of(effort->window_ns), least),
		   forecast_seconds_of(WINDOW_MAX_NS), step);
}

void forecast_warm_up_limits(const struct forecast *f, const struct forecast_cell *cell,
			     double step, double *low, double *high)
{
	*low = *high = fixed_of(cell, cell->warm_up_steps, step);
	if (cell->warm_up_steps >= 0)
		return;
	*high = forecast_seconds_of(f->effort->warm_up_cap_ns);
	*low = f->effort->test_steadiness ? fmin(*high, forecast_seconds_of(STEADY_MIN_NS)) : *high;
	*low = fmax(*low, step);
	*high = fmax(*high, step);
}

bool forecast_warm_up_is_open(const struct forecast *f, const struct forecast_cell *cell)
{
	return f->effort->test_steadiness && cell->warm_up_steps < 0 &&
	       forecast_step_seconds(f, cell) < forecast_seconds_of(f->effort->warm_up_cap_ns);
}

double forecast_expected_warm_up(const struct forecast *f, const struct forecast_cell *cell)
{
	double low, high;
	forecast_warm_up_limits(f, cell, forecast_step_seconds(f, cell), &low, &high);
	bool open = forecast_warm_up_is_open(f, cell);
	double expected = cell->warm_up > 0 ? cell->warm_up : sqrt(low * high);
	if (open)
		expected = forecast_mean_or(&f->warm_up, expected);
	expected = fmin(fmax(expected, low), high);
	double weight = open ? OTHERS_WARM_UPS : 0;
	return cell->seen > 0 ? (cell->warmed + weight * expected) / (cell->seen + weight)
			      : expected;
}

double forecast_warm_up_after(const struct forecast *f, const struct forecast_cell *cell,
			      double warmed)
{
	double low, high;
	forecast_warm_up_limits(f, cell, forecast_step_seconds(f, cell), &low, &high);
	return warmed < high ? fmax(forecast_expected_warm_up(f, cell), sqrt(warmed * high))
			     : warmed;
}

double forecast_process_seconds(const struct forecast *f, const struct forecast_cell *cell)
{
	double step = forecast_step_seconds(f, cell);
	if (cell->seen > 0)
		return cell->passed / cell->seen + forecast_expected_warm_up(f, cell);
	return forecast_start_seconds(f, cell) + step + forecast_expected_warm_up(f, cell) +
	       forecast_window_seconds(f, cell, step);
}

double forecast_reference_scale(const struct forecast *f)
{
	return f->reference_said > 0 ? f->reference_took / f->reference_said : 1;
}
