/*
 * Writes diagnoses of cells as lines under a table and as JSON, and the best split of their time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/summary.h"
#include "report/summary_internal.h"

/* The longest line in characters; frameworks that do not fit are only counted. */
enum { LINE_MAX_CHARACTERS = 100 };

void summary_diagnose(struct arena *arena, const struct replicates *replicates,
		      struct summary_row *row)
{
	const double second_ns = 1e9;
	size_t room = replicates->means.count + 1, count = 0;
	double window_ns = 0, cost_ns = 0;
	struct diagnosed_process *processes = arena_array(arena, room, sizeof *processes);
	double **blocks = arena_array(arena, room, sizeof *blocks);

	for (size_t i = 0; i < replicates->means.count; i++) {
		const struct process_record *record = replicates->records[i];
		struct diagnosed_process *process = &processes[count];
		process->number = (double)record->replicate + 1;
		process->mean = record->step_mean_ns;
		process->page_faults = record->page_faults_step;
		process->blocks = blocks[count] =
			process_record_blocks(record, &process->block_count);
		/* Either the clock was too coarse for blocks, or the store was edited. */
		for (size_t k = 0; k < process->block_count; k++)
			if (!(process->blocks[k] > 0))
				process->block_count = 0;
		count++;
		window_ns += (double)record->window_ns;
		/* An unknown time is RECORD_NONE. One of the means is then negative, and no split
		 * is proposed. */
		cost_ns += (double)record->total_ns - (double)record->window_ns;
	}
	components_of(processes, count, window_ns / (double)count / second_ns,
		      cost_ns / (double)count / second_ns, &row->components);
	diagnose(processes, count, &row->diagnoses);
	for (size_t i = 0; i < count; i++)
		free(blocks[i]);
}

/* "Two speeds: xla 40 % apart, mxnet 25 % apart and 2 more. The step is a mixture: ..." */
bool summary_diagnosis(const struct summary *summary, size_t comparison, enum diagnosis_id id,
		       struct strbuf *out)
{
	const size_t room = LINE_MAX_CHARACTERS - strlen(" and 99 more. ");
	const size_t fixed = strlen(diagnosis_title(id)) + strlen(diagnosis_remedy(id));
	size_t named = 0, left_out = 0;
	struct strbuf names, item;

	strbuf_init(&names, 0);
	strbuf_init(&item, 0);
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (isnan(row->diagnoses.values[id]))
			continue;
		strbuf_clear(&item);
		strbuf_printf(&item, "%s %s ", named > 0 ? "," : ":", row->cell->cell.framework);
		diagnosis_value(id, row->diagnoses.values[id], &item);
		if (named > 0 && fixed + names.length + item.length > room) {
			left_out++;
			continue;
		}
		strbuf_puts(&names, strbuf_text(&item));
		named++;
	}
	if (left_out > 0)
		strbuf_printf(&names, " and %zu more", left_out);
	if (named > 0)
		strbuf_printf(out, "%s%s. %s", diagnosis_title(id), strbuf_text(&names),
			      diagnosis_remedy(id));
	strbuf_release(&names);
	strbuf_release(&item);
	return named > 0;
}

bool summary_splits(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool any = false;

	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct components *found = &summary->rows[i].components;
		if (!summary->full || isnan(found->best_s))
			continue;
		strbuf_printf(out, "%s%s: windows of ",
			      any ? "; " : "best split of the same time, by variance components: ",
			      summary->rows[i].cell->cell.framework);
		strbuf_two_digits(out, found->best_s);
		strbuf_puts(out, " s (now ");
		strbuf_two_digits(out, found->window_s);
		strbuf_puts(out, " s; a process costs ");
		strbuf_two_digits(out, found->cost_s);
		strbuf_printf(out, " s beside it), interval %.0f %% narrower",
			      100 * (1 - found->error_ratio));
		any = true;
	}
	return any;
}

json_t *summary_components_to_json(const struct summary_row *row)
{
	const struct components *found = &row->components;
	json_t *object = json_object();

	json_object_set_new(object, "variance_within_s", json_number(found->within));
	json_object_set_new(object, "variance_between", json_number(found->between));
	json_object_set_new(object, "window_s", json_number(found->window_s));
	json_object_set_new(object, "cost_s", json_number(found->cost_s));
	json_object_set_new(object, "best_window_s", json_number(found->best_s));
	json_object_set_new(object, "error_ratio", json_number(found->error_ratio));
	return object;
}

json_t *summary_diagnoses_to_json(const struct summary_row *row)
{
	json_t *array = json_array();

	for (int i = 0; i < DIAGNOSIS_COUNT; i++) {
		enum diagnosis_id id = (enum diagnosis_id)i;
		struct strbuf text;
		if (isnan(row->diagnoses.values[id]))
			continue;
		json_t *object = json_object();
		strbuf_init(&text, 0);
		strbuf_printf(&text, "%s: ", diagnosis_title(id));
		diagnosis_value(id, row->diagnoses.values[id], &text);
		json_object_set_new(object, "what", json_string(diagnosis_word(id)));
		json_object_set_new(object, "value", json_real(row->diagnoses.values[id]));
		json_object_set_new(object, "text", json_string(strbuf_text(&text)));
		json_object_set_new(object, "remedy", json_string(diagnosis_remedy(id)));
		json_array_append_new(array, object);
		strbuf_release(&text);
	}
	return array;
}
