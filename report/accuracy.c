#include "report/accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/summary_internal.h"

/* Seed of the permutations: a table says the same each time. */
#define SEED 1
/* Share of the frameworks named for another distribution that have the same. */
#define DISCOVERIES 0.05

/* The trainings of a row in arrays of its own. */
struct own_trainings {
	struct trainings trainings;
	double *steps, **curves;
	int64_t *seeds;
};

static bool is_training(const struct process_record *record)
{
	return *record->target && !strcmp(record->status, "ok") && record->steps != RECORD_NONE;
}

/* Reads the values of a curve; returns their number. */
static size_t read_curve(const char *text, double *out)
{
	size_t count = 0;

	for (char *end; *text; text = end) {
		out[count] = strtod(text, &end);
		if (end == text)
			break;
		count++;
	}
	return count;
}

static void take_training(struct own_trainings *own, const struct process_record *record)
{
	struct trainings *of = &own->trainings;
	/* A value takes at least two bytes. */
	double *curve = memory_alloc((sizeof record->target_curve / 2 + 1) * sizeof *curve);
	size_t evaluations = read_curve(record->target_curve, curve);

	own->steps[of->count] =
		record->target_steps == RECORD_NONE ? INFINITY : (double)record->target_steps;
	own->curves[of->count] = curve;
	own->seeds[of->count] = record->seed;
	if (of->count == 0 || evaluations < of->evaluations)
		of->evaluations = evaluations;
	of->count++;
}

static void trainings_of(const struct summary_row *row, struct own_trainings *own)
{
	const struct stored_cell *cell = row->cell;
	size_t room = cell->process_count + 1;

	*own = (struct own_trainings){.steps = memory_alloc(room * sizeof *own->steps),
				      .curves = memory_alloc(room * sizeof *own->curves),
				      .seeds = memory_alloc(room * sizeof *own->seeds)};
	own->trainings.steps = own->steps;
	own->trainings.seeds = own->seeds;
	own->trainings.curves = (const double *const *)own->curves;
	for (size_t i = 0; i < cell->process_count && row->step.n > 0; i++)
		if (is_training(&cell->processes[i]))
			take_training(own, &cell->processes[i]);
}

static void trainings_release(struct own_trainings *own)
{
	for (size_t i = 0; i < own->trainings.count; i++)
		free(own->curves[i]);
	free(own->curves);
	free(own->seeds);
	free(own->steps);
}

/* Fills what is known of the row alone. */
static void fill_own(struct summary_row *row, const struct trainings *trainings)
{
	const struct stored_cell *cell = row->cell;
	struct summary_target *target = &row->target;

	*target = (struct summary_target){.same = {NAN, NAN, NAN, 0, NAN, NAN, NAN},
					  .time = {NAN, NAN, NAN}};
	target->steps = (struct median_interval){NAN, NAN, NAN};
	target->seeds = trainings->count;
	for (size_t i = 0; i < cell->process_count && trainings->count > 0; i++) {
		const struct process_record *record = &cell->processes[i];

		if (!is_training(record))
			continue;
		target->what = record->target;
		if (1 + record->steps > target->most)
			target->most = 1 + record->steps;
		target->reached += record->target_steps != RECORD_NONE;
	}
	median_interval_of(trainings->steps, trainings->count, &target->steps);
}

/* A framework that did not pass the gate, such as null, trains something else. */
static bool may_share(const struct summary_row *row, const struct own_trainings *own)
{
	return own->trainings.count > 0 && summary_gate_passed(row->cell);
}

/* Compares all rows with the leader; names those whose distribution is another one, within a false
 * discovery rate. */
static void compare_all(struct summary_row *rows, const struct own_trainings *own, size_t count,
			size_t lead)
{
	double *p = memory_alloc((count + 1) * sizeof *p);
	double *adjusted = memory_alloc((count + 1) * sizeof *adjusted);

	for (size_t i = 0; i < count; i++) {
		if (i != lead && may_share(&rows[i], &own[i]) && may_share(&rows[lead], &own[lead]))
			trainings_compare(&own[lead].trainings, &own[i].trainings, SEED,
					  &rows[i].target.same);
		p[i] = rows[i].target.same.p;
	}
	adjust_for_many(p, count, adjusted);
	for (size_t i = 0; i < count; i++) {
		rows[i].target.differs = adjusted[i] <= DISCOVERIES;
		rows[i].target.against = rows[lead].cell;
	}
	free(p);
	free(adjusted);
}

/* Whether row i is a better leader: proved, with more trainings, asked for sooner (cells of a run
 * are in that order). */
static bool leads(const struct summary_row *rows, const struct own_trainings *own, size_t i,
		  size_t lead)
{
	bool proved = may_share(&rows[i], &own[i]), other = may_share(&rows[lead], &own[lead]);
	size_t count = own[i].trainings.count, most = own[lead].trainings.count;

	if (proved != other)
		return proved;
	return count != most ? count > most : rows[i].cell < rows[lead].cell;
}

void accuracy_fill(struct summary_row *rows, size_t count)
{
	struct own_trainings *own = memory_alloc((count + 1) * sizeof *own);
	size_t lead = 0;

	for (size_t i = 0; i < count; i++) {
		trainings_of(&rows[i], &own[i]);
		fill_own(&rows[i], &own[i].trainings);
		if (leads(rows, own, i, lead))
			lead = i;
	}
	if (count > 0 && own[lead].trainings.count > 0)
		compare_all(rows, own, count, lead);
	for (size_t i = 0; i < count; i++) {
		struct summary_target *target = &rows[i].target;

		target->shared = i != lead && !isnan(target->same.p) && !target->differs;
		if (target->shared)
			target->steps = rows[lead].target.steps;
		if (target->seeds > 0)
			target_time_of(&target->steps, &rows[i].step, &target->time);
	}
	for (size_t i = 0; i < count; i++)
		trainings_release(&own[i]);
	free(own);
}

static void add_count(const char *before, double steps, struct strbuf *out)
{
	strbuf_printf(out, isfinite(steps) ? "%s%.0f" : "%snot reached", before, steps);
}

static void add_steps(const struct summary_row *row, struct strbuf *out)
{
	const struct summary_target *target = &row->target;

	if (isfinite(target->steps.median))
		add_count("", target->steps.median, out);
	else
		strbuf_printf(out, "more than %lld", (long long)target->most);
	if (!isnan(target->steps.low)) {
		add_count(" (", target->steps.low, out);
		add_count(" to ", target->steps.high, out);
		strbuf_putc(out, ')');
	}
	strbuf_printf(out, ", %zu seed%s of %s", target->seeds, target->seeds == 1 ? "" : "s",
		      row->cell->cell.framework);
	if (target->reached < target->seeds)
		strbuf_printf(out, ", %zu of which did not reach it in %lld steps",
			      target->seeds - target->reached, (long long)target->most);
}

/* Those that have the leader's distribution, with the smallest p and the largest distance. */
static void add_alike(const struct summary_row *rows, size_t count, struct strbuf *out)
{
	double least = INFINITY, apart = NAN;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!rows[i].target.shared)
			continue;
		strbuf_printf(out, "%s%s (%zu)", any ? ", " : "; same distribution in ",
			      rows[i].cell->cell.framework, rows[i].target.seeds);
		least = fmin(least, rows[i].target.same.p);
		apart = fmax(apart,
			     rows[i].target.same.apart); /* of a number and NaN: the number */
		any = true;
	}
	if (any)
		strbuf_printf(out, ", p %s %.2g", least < 1 ? "from" : "=", least);
	if (apart == 0)
		strbuf_puts(out, "; curves of the same seed are equal");
	else if (isfinite(apart))
		strbuf_printf(out,
			      "; curves of the same seed lie up to %.2g times as far apart as "
			      "curves of different seeds",
			      apart);
}

/* Names a row whose trainings differ, and by what. */
static void add_other(const struct summary_row *row, struct strbuf *out)
{
	const struct sameness *same = &row->target.same;

	strbuf_printf(out, "; %s trains differently (p = %.2g): ", row->cell->cell.framework,
		      same->p);
	if (same->p_curve <= same->p_steps)
		strbuf_printf(out, "%.4g against %.4g at evaluation %zu, ", same->b, same->a,
			      same->at + 1);
	strbuf_puts(out, "steps ");
	add_steps(row, out);
}

bool summary_target(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	size_t first = summary->first[comparison];
	size_t count = summary->first[comparison + 1] - first;
	const struct summary_row *rows = &summary->rows[first], *lead = NULL;

	for (size_t i = 0; i < count; i++)
		if (rows[i].target.seeds > 0 && rows[i].target.against == rows[i].cell)
			lead = &rows[i];
	if (!lead)
		return false;
	const char *what = lead->target.what, *equals = strchr(what, '=');
	strbuf_printf(out, "steps to %.*s %s: ", equals ? (int)(equals - what) : 0, what,
		      equals ? equals + 1 : what);
	add_steps(lead, out);
	add_alike(rows, count, out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].target.differs)
			add_other(&rows[i], out);
	for (size_t i = 0; i < count; i++)
		if (rows[i].target.seeds > 0 && &rows[i] != lead && isnan(rows[i].target.same.p)) {
			strbuf_puts(out, "; not compared: ");
			add_steps(&rows[i], out);
		}
	return true;
}

static json_t *steps_to_json(double steps)
{
	return isfinite(steps) ? json_real(steps) : json_null();
}

void accuracy_to_json(const struct summary_row *row, json_t *target)
{
	const struct summary_target *of = &row->target;

	if (of->seeds == 0)
		return;
	json_object_set_new(target, "what", json_string(of->what));
	json_object_set_new(target, "seeds", json_integer((json_int_t)of->seeds));
	json_object_set_new(target, "reached", json_integer((json_int_t)of->reached));
	json_object_set_new(target, "most_steps", json_integer(of->most));
	json_object_set_new(target, "steps", steps_to_json(of->steps.median));
	json_object_set_new(target, "steps_low", steps_to_json(of->steps.low));
	json_object_set_new(target, "steps_high", steps_to_json(of->steps.high));
	json_object_set_new(target, "steps_of",
			    json_string((of->shared ? of->against : row->cell)->cell.framework));
	json_object_set_new(target, "p", steps_to_json(of->same.p));
	json_object_set_new(target, "apart", steps_to_json(of->same.apart));
	json_object_set_new(target, "differs",
			    isnan(of->same.p) ? json_null() : json_boolean(of->differs));
}
