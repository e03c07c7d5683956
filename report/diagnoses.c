/* Writes diagnoses of cells as lines under a table and as JSON. */
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
	size_t count = replicates->means.count;
	struct diagnosed_process *processes = arena_array(arena, count + 1, sizeof *processes);

	for (size_t i = 0; i < count; i++) {
		const struct process_record *record = replicates->records[i];
		processes[i] = (struct diagnosed_process){.number = (double)record->replicate + 1,
							  .mean = record->step_mean_ns,
							  .page_faults = record->page_faults_step};
	}
	diagnose(processes, count, &row->diagnoses);
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
