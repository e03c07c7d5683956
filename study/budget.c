#include "study/budget.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
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

	*out = (struct budget){.widest = NAN};
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

void budget_begin(struct budget *budget, size_t cells)
{
	if (budget->length_ns == 0)
		return;
	budget->deadline_ns = clock_monotonic_ns() + budget->length_ns;
	budget->last_ns = memory_alloc((cells + 1) * sizeof *budget->last_ns);
	memset(budget->last_ns, 0, (cells + 1) * sizeof *budget->last_ns);
}

void budget_release(struct budget *budget)
{
	free(budget->last_ns);
	budget->last_ns = NULL;
}

void budget_spend(struct budget *budget, size_t cell, int64_t ns)
{
	budget->widest = NAN;
	if (budget->last_ns)
		budget->last_ns[cell] = ns;
}

void budget_look_again(struct budget *budget)
{
	budget->widest = NAN;
}

bool budget_late(const struct budget *budget, size_t cell)
{
	if (!budget->last_ns)
		return false;
	int64_t left = budget->deadline_ns - clock_monotonic_ns();
	return left <= 0 || left < budget->last_ns[cell];
}

/* Returns the half width of a cell's interval; infinite if it is unknown. */
static double half_width(const struct run_cell *cell)
{
	struct estimate estimate;

	counted_estimate(cell, &estimate);
	return isfinite(estimate.half_width) ? estimate.half_width : INFINITY;
}

bool budget_later(struct budget *budget, const struct run_cell *cells, size_t count, size_t cell,
		  size_t least)
{
	if (!budget->last_ns || cells[cell].mean_count < least)
		return false;
	/* Computed once a round: no process ends while the round is listed. */
	if (isnan(budget->widest)) {
		budget->widest = 0;
		for (size_t i = 0; i < count; i++)
			if (cells[i].status == CELL_PENDING && cells[i].mean_count >= least)
				budget->widest = fmax(budget->widest, half_width(&cells[i]));
	}
	return WAITS * half_width(&cells[cell]) < budget->widest;
}
