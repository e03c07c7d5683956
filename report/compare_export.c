/* Writes a comparison for programs: JSON and CSV (docs/exports.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "report/compare_internal.h"
#include "report/text.h"

static json_t *side_to_json(const struct compare_side *side)
{
	const struct run_meta *meta = &side->run->meta;
	char when[32];
	json_t *object = json_object();
	clock_format_utc(meta->started_wall_ns, when, sizeof when);
	json_object_set_new(object, "run", json_integer(meta->id));
	json_object_set_new(object, "uid", text_json(meta->uid));
	json_object_set_new(object, "name", text_json_or_null(meta->name));
	json_object_set_new(object, "framework", text_json_or_null(side->framework));
	json_object_set_new(object, "suite", text_json_or_null(meta->suite));
	json_object_set_new(object, "started", json_string(when));
	json_object_set_new(object, "host", text_json_or_null(meta->host));
	json_object_set_new(object, "effort", text_json_or_null(meta->effort));
	json_object_set_new(object, "version", text_json_or_null(meta->version));
	return object;
}

static json_t *step_to_json(const struct stored_cell *cell, const struct estimate *step)
{
	json_t *object = json_object();
	json_object_set_new(object, "key", text_json(cell->key));
	json_object_set_new(object, "hash", text_json(cell->hash));
	json_object_set_new(object, "status", json_string(cell_status_name(cell->status)));
	json_object_set_new(object, "processes", json_integer((json_int_t)step->n));
	json_object_set_new(object, "center_ns", json_number(step->n ? step->center : NAN));
	json_object_set_new(object, "low_ns", json_number(step->n ? step->low : NAN));
	json_object_set_new(object, "high_ns", json_number(step->n ? step->high : NAN));
	return object;
}

static json_t *ratio_to_json(const struct contrast *contrast)
{
	json_t *object = json_object();
	json_object_set_new(object, "ratio", json_number(contrast->ratio));
	json_object_set_new(object, "low", json_number(contrast->low));
	json_object_set_new(object, "high", json_number(contrast->high));
	json_object_set_new(object, "method", json_string(contrast->paired ? "paired" : "welch"));
	json_object_set_new(object, "degrees_of_freedom", json_number(contrast->df));
	return object;
}

/* Returns the ratio of undisturbed steps with its own verdict; null if one side has none. */
static json_t *undisturbed_to_json(const struct compare_row *row)
{
	if (!row->judged || isnan(row->undisturbed.ratio))
		return json_null();
	json_t *object = ratio_to_json(&row->undisturbed);
	json_object_set_new(object, "verdict", json_string(verdict_word(row->undisturbed_verdict)));
	return object;
}

static json_t *row_to_json(const struct compare *compare, const struct compare_row *row)
{
	json_t *object = json_object();
	char *note = compare_note(compare, row);
	cell_axes_to_json(&row->b->cell, object);
	json_object_set_new(object, "a", step_to_json(row->a, &row->step_a));
	json_object_set_new(object, "b", step_to_json(row->b, &row->step_b));
	json_object_set_new(object, "ratio",
			    row->judged ? ratio_to_json(&row->contrast) : json_null());
	json_object_set_new(object, "undisturbed", undisturbed_to_json(row));
	json_object_set_new(object, "p", json_number(row->judged ? row->p : NAN));
	json_object_set_new(object, "p_adjusted", json_number(row->judged ? row->p_adjusted : NAN));
	json_object_set_new(
		object, "e",
		json_number(row->judged ? contrast_e(&row->contrast, compare->threshold) : NAN));
	json_object_set_new(object, "verdict",
			    row->judged ? json_string(verdict_word(row->verdict)) : json_null());
	json_object_set_new(object, "processes_needed",
			    row->needed ? json_integer((json_int_t)row->needed) : json_null());
	json_object_set_new(object, "reason", text_json_or_null(note));
	free(note);
	return object;
}

static json_t *keys_to_json(const struct compare *compare, bool of_a)
{
	size_t from = compare->matched + (of_a ? 0 : compare->only_a);
	size_t count = of_a ? compare->only_a : compare->only_b;
	json_t *array = json_array();
	for (size_t i = from; i < from + count; i++) {
		const struct compare_row *row = &compare->rows[i];
		json_array_append_new(array, text_json((of_a ? row->a : row->b)->key));
	}
	return array;
}

static json_t *differences_to_json(const struct compare *compare)
{
	json_t *object = json_object();
	for (int kind = 0; kind < DIFFERENCE_KINDS; kind++) {
		json_t *array = json_array();
		for (size_t i = 0; i < compare->difference_count; i++) {
			const struct compare_difference *at = &compare->differences[i];
			if ((int)at->kind != kind)
				continue;
			json_t *row = json_object();
			json_object_set_new(row, "what", text_json(at->what));
			json_object_set_new(row, "a", text_json(at->a));
			json_object_set_new(row, "b", text_json(at->b));
			json_array_append_new(array, row);
		}
		json_object_set_new(object, difference_kind_name((enum difference_kind)kind),
				    array);
	}
	return object;
}

json_t *compare_to_json(const struct compare *compare)
{
	json_t *object = json_object(), *cells = json_array(), *verdicts = json_object();
	for (size_t i = 0; i < compare->matched; i++)
		json_array_append_new(cells, row_to_json(compare, &compare->rows[i]));
	for (int v = 0; v < VERDICT_COUNT; v++)
		json_object_set_new(verdicts, verdict_word((enum verdict)v),
				    json_integer((json_int_t)compare->verdicts[v]));
	json_object_set_new(object, "a", side_to_json(&compare->a));
	json_object_set_new(object, "b", side_to_json(&compare->b));
	json_object_set_new(object, "verdict", json_string(verdict_word(compare_verdict(compare))));
	json_object_set_new(object, "method", json_string(compare->paired ? "paired" : "welch"));
	json_object_set_new(object, "threshold", json_number(compare->threshold));
	json_object_set_new(object, "noise", json_number(compare->noise));
	json_object_set_new(object, "noise_floor", json_number(compare->noise_floor));
	json_object_set_new(object, "noise_measured_at",
			    text_json_or_null(compare->noise_measured_at));
	json_object_set_new(object, "noise_age_days", json_number(compare->noise_age_days));
	json_object_set_new(object, "noise_elsewhere", text_json_or_null(compare->noise_elsewhere));
	json_object_set_new(object, "cells", cells);
	json_object_set_new(object, "verdicts", verdicts);
	json_object_set_new(object, "ok_in_a_only", json_integer((json_int_t)compare->broken));
	json_object_set_new(object, "geometric_mean", ratio_to_json(&compare->overall));
	json_object_set_new(object, "only_in_a", keys_to_json(compare, true));
	json_object_set_new(object, "only_in_b", keys_to_json(compare, false));
	json_object_set_new(object, "differences", differences_to_json(compare));
	return object;
}

static void add_text(const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	strbuf_putc(out, ',');
	text_csv(clean, out);
	free(clean);
}

static void add_number(double value, struct strbuf *out)
{
	strbuf_putc(out, ',');
	if (isfinite(value))
		strbuf_printf(out, "%.12g", value);
}

static void add_axes(const struct cell *cell, struct strbuf *out)
{
	for (int id = 0; id < AXIS_COUNT; id++) {
		char text[CELL_WORD_BYTES] = "";
		if (id == AXIS_FRAMEWORK)
			continue;
		if (axis_applies(&axes[id], cell))
			axis_text(&axes[id], axis_value(&axes[id], cell), text);
		add_text(text, out);
	}
}

static void add_step(const struct stored_cell *cell, const struct estimate *step,
		     struct strbuf *out)
{
	add_text(cell ? cell_status_name(cell->status) : "", out);
	strbuf_putc(out, ',');
	if (cell)
		strbuf_printf(out, "%zu", step->n);
	add_number(step->n ? step->center : NAN, out);
	add_number(step->n ? step->low : NAN, out);
	add_number(step->n ? step->high : NAN, out);
}

static void add_row(const struct compare *compare, const struct compare_row *row,
		    struct strbuf *out)
{
	char *note = compare_note(compare, row);
	bool judged = row->judged;
	strbuf_puts(out, judged	   ? verdict_word(row->verdict)
			 : !row->b ? "only in A"
			 : !row->a ? "only in B"
				   : "not judged");
	add_text(row->a ? row->a->cell.framework : "", out);
	add_text(row->b ? row->b->cell.framework : "", out);
	add_axes(row->b ? &row->b->cell : &row->a->cell, out);
	add_step(row->a, &row->step_a, out);
	add_step(row->b, &row->step_b, out);
	add_text(!judged ? "" : row->contrast.paired ? "paired" : "welch", out);
	add_number(judged ? row->contrast.ratio : NAN, out);
	add_number(judged ? row->contrast.low : NAN, out);
	add_number(judged ? row->contrast.high : NAN, out);
	add_number(judged ? row->undisturbed.ratio : NAN, out);
	add_number(judged ? row->undisturbed.low : NAN, out);
	add_number(judged ? row->undisturbed.high : NAN, out);
	add_number(judged ? row->p : NAN, out);
	add_number(judged ? row->p_adjusted : NAN, out);
	add_number(row->needed ? (double)row->needed : NAN, out);
	add_text(note, out);
	add_number(judged ? contrast_e(&row->contrast, compare->threshold) : NAN, out);
	strbuf_putc(out, '\n');
	free(note);
}

void compare_csv(const struct compare *compare, struct strbuf *out)
{
	static const char *const sides[] = {"a", "b"};
	strbuf_puts(out, "verdict,framework_a,framework_b");
	for (int id = 0; id < AXIS_COUNT; id++)
		if (id != AXIS_FRAMEWORK)
			strbuf_printf(out, ",%s", axes[id].name);
	for (int i = 0; i < 2; i++)
		strbuf_printf(out, ",%s_status,%s_processes,%s_center_ns,%s_low_ns,%s_high_ns",
			      sides[i], sides[i], sides[i], sides[i], sides[i]);
	strbuf_puts(out, ",method,ratio,ratio_low,ratio_high,undisturbed_ratio,undisturbed_low,"
			 "undisturbed_high,p,p_adjusted,processes_needed,reason,e\n");
	for (size_t i = 0; i < compare->count; i++)
		add_row(compare, &compare->rows[i], out);
}
