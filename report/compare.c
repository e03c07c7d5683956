/* Matches the cells of two sides and gives each pair a verdict. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/compare_internal.h"
#include "report/names.h"
#include "report/replicates.h"
#include "report/summary.h"
#include "stats/contrast.h"
#include "stats/rounds.h"
#include "store/machine_figures.h"

/* Returns no means for a cell that has too few processes. */
static struct replicates counted(struct compare *compare, const struct compare_side *side,
				 const struct stored_cell *cell)
{
	struct replicates found = replicates_of(&compare->arena, cell);

	if (!replicates_suffice(&side->run->meta, cell, found.all))
		found.means.count = found.undisturbed.count = 0;
	return found;
}

static void contrast_rows(struct compare *compare, struct compare_row *row)
{
	struct replicates of_a = counted(compare, &compare->a, row->a);
	struct replicates of_b = counted(compare, &compare->b, row->b);
	struct round_means a = of_a.means, b = of_b.means;

	row->disturbed_a = of_a.loss > 0;
	row->disturbed_b = of_b.loss > 0;
	replicates_estimate(&compare->a.run->meta, a.means, a.count, &row->step_a);
	replicates_estimate(&compare->b.run->meta, b.means, b.count, &row->step_b);
	row->judged = a.count > 0 && b.count > 0;
	if (compare->paired)
		contrast_of_rounds(&a, &b, &row->contrast);
	else
		contrast_welch(a.means, a.count, b.means, b.count, &row->contrast);
	a = of_a.undisturbed;
	b = of_b.undisturbed;
	if (compare->paired)
		contrast_of_rounds(&a, &b, &row->undisturbed);
	else
		contrast_welch(a.means, a.count, b.means, b.count, &row->undisturbed);
	row->undisturbed_verdict = contrast_claim(&row->undisturbed, compare->threshold);
}

/* Returns why a cell has no figures. */
static const char *ending(const struct compare *compare, const struct stored_cell *cell,
			  const char *side)
{
	struct arena *arena = (struct arena *)&compare->arena;

	if (cell->status == CELL_OK && cell->flags & CELL_FLAG_GATE_ONLY)
		return arena_printf(arena, "only the gate ran in %s", side);
	if (cell->status == CELL_PENDING)
		return arena_printf(arena, "not finished in %s", side);
	if (cell->status == CELL_OK)
		return arena_printf(arena, "no process of %s has a step time", side);
	return arena_printf(arena, "%s in %s%s%s", cell_status_name(cell->status), side,
			    *cell->reason ? ": " : "", cell->reason);
}

static bool is_claim(enum verdict verdict)
{
	return verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
}

/* Returns why an interval outside the threshold proves nothing; NULL if it proves a difference. */
static const char *doubt(struct compare *compare, const struct compare_row *row,
			 const struct strictness *strictness)
{
	double most = contrast_discoveries(&row->contrast, strictness);
	if (row->p_adjusted <= most)
		return NULL;
	if (row->p_adjusted > CONTRAST_DISCOVERIES)
		return arena_printf(&compare->arena,
				    "the interval is outside the threshold, but among %zu cells "
				    "this may be chance (Benjamini-Hochberg %.2g)",
				    compare->hypotheses, row->p_adjusted);
	return arena_printf(
		&compare->arena,
		"the 95 %% interval is outside the threshold, but the %g %% interval must be, "
		"because %s (%s%.2g)",
		100 * (1 - most),
		most == CONTRAST_DISCOVERIES_FEW ? "there are so few processes" : "it is so wide",
		compare->hypotheses > 1 ? "Benjamini-Hochberg " : "p = ", row->p_adjusted);
}

static void judge(struct compare *compare, struct compare_row *row, bool force)
{
	struct strictness strictness = verdict_strictness(compare->threshold);
	const char *reason = NULL;
	row->verdict = VERDICT_INCONCLUSIVE;
	if (!row->judged) {
		row->reason = row->step_a.n > 0 ? ending(compare, row->b, "B")
						: ending(compare, row->a, "A");
		return;
	}
	row->verdict = contrast_verdict(&row->contrast, compare->threshold);
	bool claim = is_claim(row->verdict);
	/* Equality is not proved either: a disturbance of one side may hide a difference. */
	if (row->verdict != VERDICT_INCONCLUSIVE && (row->disturbed_a || row->disturbed_b) &&
	    !force)
		reason = arena_printf(&compare->arena,
				      "other programs used the machine while %s measured: run "
				      "again on an idle machine, or use --force",
				      !row->disturbed_b	  ? "A was"
				      : !row->disturbed_a ? "B was"
							  : "both were");
	else if (claim)
		reason = doubt(compare, row, &strictness);
	if (reason || row->verdict == VERDICT_INCONCLUSIVE)
		row->needed = contrast_needed(&row->contrast, compare->threshold, &strictness);
	if (reason) {
		row->verdict = VERDICT_INCONCLUSIVE;
		row->reason = reason;
	}
}

static bool belongs(const struct compare_side *side, const struct compare_settings *settings,
		    const struct stored_cell *cell)
{
	if (side->framework && strcmp(side->framework, cell->cell.framework) != 0)
		return false;
	return !settings->wanted || settings->wanted(cell, settings->context);
}

/* Makes the match key. Cells match if their keys are equal: they are the same cell, or the same
 * except for the two frameworks compared. */
static size_t match_key(const struct compare *compare, const struct stored_cell *cell,
			char key[SUMMARY_KEY_BYTES])
{
	if (compare->a.framework && compare->b.framework)
		return summary_cell_key(cell, key);
	memcpy(key, cell->hash, CELL_HASH_BYTES);
	return CELL_HASH_BYTES;
}

static void match(struct compare *compare, const struct compare_settings *settings)
{
	const struct stored_run *a = compare->a.run, *b = compare->b.run;
	const struct stored_cell **of_a = memory_alloc((a->cell_count + 1) * sizeof *of_a);
	struct compare_row *rows =
		arena_array(&compare->arena, a->cell_count + b->cell_count + 1, sizeof *rows);
	struct names names = {.count = 0};
	char key[SUMMARY_KEY_BYTES];
	size_t only_in_b = 0; /* rows of B only, appended at the end */
	struct compare_row *only_b = memory_alloc((b->cell_count + 1) * sizeof *only_b);

	for (size_t i = 0; i < a->cell_count; i++)
		if (belongs(&compare->a, settings, &a->cells[i]))
			of_a[names_add(&names, key, match_key(compare, &a->cells[i], key))] =
				&a->cells[i];
	for (size_t i = 0; i < b->cell_count; i++) {
		const struct stored_cell *cell = &b->cells[i];
		if (!belongs(&compare->b, settings, cell))
			continue;
		size_t number = names_find(&names, key, match_key(compare, cell, key));
		/* A store from another machine may contain a cell twice. */
		if (number == NAMES_NONE || !of_a[number]) {
			only_b[only_in_b++] = (struct compare_row){.b = cell, .reason = ""};
			continue;
		}
		rows[compare->matched++] =
			(struct compare_row){.a = of_a[number], .b = cell, .reason = ""};
		of_a[number] = NULL;
	}
	compare->count = compare->matched;
	for (size_t i = 0; i < names.count; i++)
		if (of_a[i])
			rows[compare->count++] = (struct compare_row){.a = of_a[i], .reason = ""};
	compare->only_a = compare->count - compare->matched;
	compare->only_b = only_in_b;
	memcpy(&rows[compare->count], only_b, only_in_b * sizeof *rows);
	compare->count += only_in_b;
	compare->rows = rows;
	names_release(&names);
	free(only_b);
	free(of_a);
}

static void judge_all(struct compare *compare, bool force)
{
	size_t n = compare->matched, judged = 0;
	double *p = memory_alloc((n + 1) * sizeof *p),
	       *adjusted = memory_alloc((n + 1) * sizeof *p);
	struct contrast *contrasts = memory_alloc((n + 1) * sizeof *contrasts);

	for (size_t i = 0; i < n; i++) {
		struct compare_row *row = &compare->rows[i];
		contrast_rows(compare, row);
		p[i] = row->p = contrast_p(&row->contrast, compare->threshold);
		compare->hypotheses += isnan(row->p) ? 0 : 1;
		if (row->judged)
			contrasts[judged++] = row->contrast;
		compare->broken += row->a->status == CELL_OK && row->b->status != CELL_OK;
	}
	adjust_for_many(p, n, adjusted);
	for (size_t i = 0; i < n; i++) {
		struct compare_row *row = &compare->rows[i];
		row->p_adjusted = adjusted[i];
		judge(compare, row, force);
		if (row->judged)
			compare->verdicts[row->verdict]++;
	}
	contrast_mean(contrasts, judged, &compare->overall);
	free(contrasts);
	free(adjusted);
	free(p);
}

static struct labels labels_of_rows(const struct compare *compare)
{
	const struct cell **cells = memory_alloc((compare->matched + 1) * sizeof *cells);

	for (size_t i = 0; i < compare->matched; i++)
		cells[i] = &compare->rows[i].b->cell;
	struct labels labels = labels_of(cells, compare->matched);
	free(cells);
	return labels;
}

/* Takes the floor of a run if it is the larger one so far. */
static void take_floor(const json_t *record, double floor, double age, struct compare *compare)
{
	const char *when = machine_noise_measured_at(record);

	compare->noise_floor = floor;
	compare->noise_measured_at = when ? arena_strdup(&compare->arena, when) : NULL;
	compare->noise_age_days = age;
}

/* Returns a text in the arena; NULL: nothing. */
static const char *noise_elsewhere(const json_t *record, struct arena *arena)
{
	struct strbuf text;
	const char *found = NULL;

	strbuf_init(&text, 0);
	if (compare_noise_elsewhere(record, &text))
		found = arena_strdup(arena, strbuf_text(&text));
	strbuf_release(&text);
	return found;
}

/* Reads the noise measured on a run's machine; the larger noise of both runs is kept. */
static void take_noise(const struct stored_run *run, struct compare *compare)
{
	json_t *record = run_environment(run);

	if (record) {
		compare->noise = fmax(compare->noise, machine_noise(record));
		double floor = machine_noise_floor(record);
		double age = machine_noise_age_days(record, run->meta.started_wall_ns);
		/* If both runs have the same floor, its age counts from the later run. */
		bool same = floor == compare->noise_floor;
		bool larger = !isnan(floor) && !(floor <= compare->noise_floor);
		if (larger || (same && age > compare->noise_age_days))
			take_floor(record, floor, age, compare);
		/* If one of the machines has changed since, the floor is valid for neither run. */
		if (larger || (same && !compare->noise_elsewhere))
			compare->noise_elsewhere = noise_elsewhere(record, &compare->arena);
	}
	json_decref(record);
}

void compare_init(struct compare *compare, const struct compare_side *a,
		  const struct compare_side *b, const struct compare_settings *settings)
{
	*compare = (struct compare){.a = *a,
				    .b = *b,
				    .threshold = settings->threshold,
				    .noise = NAN,
				    .noise_floor = NAN,
				    .noise_age_days = NAN,
				    .paired = !strcmp(a->run->meta.uid, b->run->meta.uid)};
	arena_init(&compare->arena, 0);
	take_noise(a->run, compare);
	take_noise(b->run, compare);
	if (isnan(compare->threshold))
		compare->threshold = fmax(COMPARE_THRESHOLD, compare->noise);
	match(compare, settings);
	judge_all(compare, settings->force);
	compare->labels = labels_of_rows(compare);
	compare_find_differences(compare);
}

void compare_release(struct compare *compare)
{
	if (compare)
		arena_release(&compare->arena);
}

enum verdict compare_verdict(const struct compare *compare)
{
	if (compare->verdicts[VERDICT_SLOWER])
		return VERDICT_SLOWER;
	if (compare->verdicts[VERDICT_INCONCLUSIVE])
		return VERDICT_INCONCLUSIVE;
	if (compare->verdicts[VERDICT_FASTER])
		return VERDICT_FASTER;
	return compare->verdicts[VERDICT_SAME] ? VERDICT_SAME : VERDICT_INCONCLUSIVE;
}
