#include <math.h>

#include "base/random.h"
#include "stats/forecast_internal.h"
#include "stats/variates.h"

/* What is thought of a spread weighs as much as so many processes: by what is usual, by what
 * earlier runs of the cell had, and at most by what the others of this run have. */
#define USUAL_WEIGHT 2
#define EARLIER_WEIGHT 4
#define OTHERS_WEIGHT 4
/* Two processes may lie at one place: no cell is so quiet. */
#define SPREAD_LEAST 1e-4
/* Before any process was disturbed it is as if so many had not been. */
#define UNDISTURBED_BEFORE 10

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
	return calm * pow(busy / calm, forecast_mean_or(&f->disturbed, 0));
}

/* What a cell's processes tell of a spread. The logarithm of a variance from so many degrees of
 * freedom lies digamma(freedom / 2) - log(freedom / 2) off in the mean, with the variance
 * trigamma(freedom / 2) (Bartlett and Kendall, JRSS Suppl. 8, 1946): two processes that happen to
 * lie close tell little. Both by their recurrence and the first terms of their series. */
struct forecast_told forecast_told_by(const struct forecast_cell *cell)
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
	struct forecast_told own = forecast_told_by(cell);
	bool seen = cell->earlier_spread > 0;
	double prior = seen ? cell->earlier_spread : usual_spread(f);
	double others = f->told.weight - own.weight;
	double part = others > OTHERS_WEIGHT ? OTHERS_WEIGHT / others : 1;
	out->weight = seen ? EARLIER_WEIGHT : USUAL_WEIGHT;
	out->prior = exp((out->weight * log(prior) + part * (f->told.logs - own.logs)) /
			 (out->weight + part * others));
	out->shared = !seen;
}

void forecast_draw_machine(struct forecast *f)
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

void forecast_draw_counts(struct forecast *f, size_t i)
{
	struct forecast_cell *cell = &f->cells[i];
	if (cell->drawn == f->learned || cell->ended || forecast_is_fixed(f))
		return;
	forecast_draw_machine(f);
	struct stopping_known known = {.n = (int)cell->n, .spread = cell->spread, .lost = f->lost};
	believe(f, cell, &known);
	stopping_draw(&f->rule, &known, i, cell->counts);
	cell->drawn = f->learned;
}

size_t forecast_had(const struct forecast *f, const struct forecast_cell *cell)
{
	return forecast_is_fixed(f) ? cell->good : cell->n;
}

int forecast_processes_drawn(const struct forecast *f, const struct forecast_cell *cell, int draw)
{
	int had = (int)forecast_had(f, cell), failed = cell->tried - had;
	int most = f->repeat > 0 ? f->repeat : f->effort->processes_cap;
	if (cell->ended || f->gate_only)
		return cell->tried;
	int all = (forecast_is_fixed(f) ? (most > had ? most : had) : cell->counts[draw]) + failed;
	all = all < 2 * most ? all : 2 * most; /* no cell tries more (stats/effort.c) */
	return all > cell->tried ? all : cell->tried;
}
