#include "study/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/names.h"
#include "report/summary.h"
#include "study/counted.h"

#define SECOND_NS 1e9
#define HOURS_MAX 1e4
#define WAITS 2 /* a cell waits while another half width is more than so many times as wide */

enum prony_status budget_parse(const char *text, struct budget *out, struct error *err)
{
	static const struct {
		const char *suffix;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
	const char *suffix = NULL;
	char *end = NULL;
	double number = 0, unit = 0;

	*out = (struct budget){.length_ns = 0};
	if (!text)
		return PRONY_OK;
	suffix = text + strspn(text, "0123456789.");
	number = strtod(text, &end);
	/* strtod alone would accept exponents, signs and words. */
	for (size_t i = 0; end == suffix && i < sizeof units / sizeof *units; i++)
		if (!strcmp(suffix, units[i].suffix))
			unit = units[i].seconds;
	if (!(number * unit > 0) || number * unit > HOURS_MAX * 3600)
		return error_set(
			err, PRONY_USAGE,
			"--budget: \"%.40s\" is not a time; write for example 90s, 30m or 1.5h",
			text);
	out->length_ns = (int64_t)(number * unit * SECOND_NS);
	return PRONY_OK;
}

/* The cells of a plan that differ only in their framework. */
struct comparison {
	double cost; /* sum of its cells, then their mean */
	size_t number, cells;
};

static int compare_costs(const void *a, const void *b)
{
	const struct comparison *x = a, *y = b;
	return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost)
				  : (x->number > y->number) - (x->number < y->number);
}

/* Numbers the comparisons by the mean cost of their cells. */
static void take_turns(struct budget *budget, const struct plan *plan, const struct time_left *left,
		       int least)
{
	struct names names = {.count = 0};
	struct comparison *all = memory_alloc((plan->count + 1) * sizeof *all);
	size_t *places = memory_alloc((plan->count + 1) * sizeof *places);
	for (size_t i = 0; i < plan->count; i++) {
		char key[SUMMARY_KEY_BYTES];
		double reference;
		if (left->cells[i].ended)
			continue;
		size_t known = names.count;
		size_t at =
			names_add(&names, key, summary_comparison_key(&plan->cells[i].cell, key));
		if (at == known)
			all[at] = (struct comparison){.number = at};
		budget->costs[i] = time_left_first(left, i, least, &reference);
		budget->turns[i] = at;
		all[at].cost += budget->costs[i] + reference;
		all[at].cells++;
	}
	for (size_t c = 0; c < names.count; c++)
		all[c].cost /= (double)all[c].cells;
	qsort(all, names.count, sizeof *all, compare_costs);
	for (size_t c = 0; c < names.count; c++)
		places[all[c].number] = c;
	for (size_t i = 0; i < plan->count; i++)
		if (!left->cells[i].ended)
			budget->turns[i] = places[budget->turns[i]];
	names_release(&names);
	free(places);
	free(all);
}

void budget_begin(struct budget *budget, const struct plan *plan, const struct time_left *left,
		  int least, int64_t window_ns)
{
	if (budget->length_ns == 0)
		return;
	budget->deadline_ns = clock_monotonic_ns() + budget->length_ns;
	budget->others_ns = window_ns > 0 ? budget->length_ns / 2 : budget->length_ns;
	budget->measured_ns = 0;
	budget->refused = memory_alloc((plan->count + 1) * sizeof *budget->refused);
	memset(budget->refused, 0, (plan->count + 1) * sizeof *budget->refused);
	budget->least_ns = memory_alloc((plan->count + 1) * sizeof *budget->least_ns);
	budget->costs = memory_alloc((plan->count + 1) * sizeof *budget->costs);
	budget->turns = memory_alloc((plan->count + 1) * sizeof *budget->turns);
	for (size_t i = 0; i < plan->count; i++)
		budget->least_ns[i] = plan->cells[i].steps > 0 ? 0 : window_ns;
	take_turns(budget, plan, left, least);
}

void budget_release(struct budget *budget)
{
	free(budget->least_ns);
	free(budget->costs);
	free(budget->turns);
	free(budget->refused);
	budget->least_ns = NULL;
}

void budget_spend(struct budget *budget, size_t cell, int64_t ns)
{
	if (!budget->least_ns)
		return;
	budget->least_ns[cell] = ns;
	budget->measured_ns += ns;
}

bool budget_affords(struct budget *budget, size_t cell, double seconds, int64_t *until_ns,
		    char why[RUN_REASON_BYTES])
{
	*until_ns = 0;
	if (!budget->least_ns)
		return true;
	int64_t now = clock_monotonic_ns(), left = budget->deadline_ns - now;
	int64_t spent = budget->length_ns - left - budget->measured_ns;
	int64_t share = budget->others_ns - spent;
	/* At least a process must follow. */
	if (share > left - budget->least_ns[cell])
		share = left - budget->least_ns[cell];
	*until_ns = now + share;
	budget->refused[cell] = seconds * SECOND_NS > (double)share;
	double part = (double)budget->others_ns / (double)budget->length_ns;
	double more = seconds - (double)share / SECOND_NS;
	if (budget->refused[cell])
		snprintf(why, RUN_REASON_BYTES,
			 "its reference and gate need about %.0f s, but --budget has %.0f s left "
			 "for them%s; --budget %.0fs is enough",
			 ceil(seconds), fmax(0, floor((double)share / SECOND_NS)),
			 part < 1 ? " (half of it is for measuring)" : "",
			 ceil((double)budget->length_ns / SECOND_NS + more / part));
	return !budget->refused[cell];
}

void budget_look_again(struct budget *budget)
{
	budget->known = false;
}

bool budget_late(const struct budget *budget, size_t cell)
{
	if (!budget->least_ns)
		return false;
	int64_t left = budget->deadline_ns - clock_monotonic_ns();
	return left <= 0 || left < budget->least_ns[cell] || budget->refused[cell];
}

/* Returns the half width of a cell's interval; infinite if it is unknown. */
static double half_width(const struct run_cell *cell)
{
	struct estimate estimate;

	counted_estimate(cell, true, &estimate);
	return isfinite(estimate.half_width) ? estimate.half_width : INFINITY;
}

/* Returns the turn of a cell that has too few processes: all cells get one process before a cell
 * gets another one. */
static size_t turn_of(const struct budget *budget, const struct run_cell *cells, size_t count,
		      size_t cell)
{
	return budget->turns[cell] + (cells[cell].mean_count > 0 ? count : 0);
}

/* Computed once an event: rounds of many cells ask for each of them. */
static void look(struct budget *budget, const struct run_cell *cells, size_t count, size_t least)
{
	if (budget->known)
		return;
	budget->known = true;
	budget->turn = SIZE_MAX;
	budget->widest = 0;
	for (size_t i = 0; i < count; i++) {
		if (cells[i].status != CELL_PENDING)
			continue;
		size_t turn = turn_of(budget, cells, count, i);
		if (cells[i].mean_count >= least)
			budget->widest = fmax(budget->widest, half_width(&cells[i]));
		else if (turn < budget->turn && !budget_late(budget, i))
			budget->turn = turn;
	}
}

bool budget_later(struct budget *budget, const struct run_cell *cells, size_t count, size_t cell,
		  size_t least)
{
	bool has_least = cells[cell].mean_count >= least;
	if (!budget->least_ns)
		return false;
	look(budget, cells, count, least);
	if (budget->turn < SIZE_MAX)
		return has_least || turn_of(budget, cells, count, cell) != budget->turn;
	return has_least && WAITS * half_width(&cells[cell]) < budget->widest;
}

void budget_order(const struct budget *budget, const struct run_cell *cells, size_t *round,
		  size_t count)
{
	bool first = false;
	for (size_t i = 0; i < count; i++)
		first |= cells[round[i]].mean_count == 0;
	for (size_t i = 1; first && i < count; i++)
		for (size_t k = i; k > 0 && budget->costs[round[k]] < budget->costs[round[k - 1]];
		     k--) {
			size_t cell = round[k];
			round[k] = round[k - 1];
			round[k - 1] = cell;
		}
}
