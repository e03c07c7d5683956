/* Code shared by the benchmark forms: processes, headings, steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/form_internal.h"
#include "report/summary.h"
#include "report/text.h"

const struct process_record *form_process(const struct stored_cell *cell, size_t p)
{
	const struct process_record *record = &cell->processes[p];
	bool good = replicates_have_figures(cell) && record->intervals && record->steps > 0 &&
		    !strcmp(record->status, cell_status_name(CELL_OK));

	return good ? record : NULL;
}

void form_heading(const struct stored_cell *cell, size_t p, struct strbuf *out)
{
	const struct cell *c = &cell->cell;
	char *version = text_line(json_string_or(cell->framework, "version", ""));

	strbuf_printf(out, "# %s%s%s, %s, %s, batch %lld, %s, %s", c->framework,
		      *version ? " " : "", version, c->network, stage_name(c->stage),
		      (long long)c->batch, c->device, precision_name(c->precision));
	free(version);
	if (p < cell->process_count) {
		strbuf_printf(out, "; process %zu of %zu\n", p + 1, cell->process_count);
		return;
	}
	char *reason = text_line(cell->reason);
	strbuf_printf(out, ": %s%s%s\n", cell_status_name(cell->status), *reason ? ": " : "",
		      reason);
	free(reason);
}

double form_step(const struct process_record *record, size_t i)
{
	return (double)(record->intervals[i].end_ns - record->intervals[i].begin_ns) * FORM_NS;
}

bool form_has_steps(const struct process_record *record, struct strbuf *out)
{
	if (record->block_steps == 1 && record->interval_count > 0)
		return true;
	strbuf_puts(out, "# its steps were not waited for one by one (--sync step)\n");
	return false;
}

double form_timed(const struct process_record *record)
{
	double seconds = 0;

	for (size_t i = 0; i < record->interval_count; i++)
		seconds += form_step(record, i);
	return seconds;
}

double form_total_speed(const struct stored_cell *cell)
{
	double sum = 0;
	int count = 0;

	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *record = form_process(cell, p);

		if (!record)
			continue;
		sum += (double)cell->cell.batch * (double)record->steps / form_timed(record);
		count++;
	}
	return count ? sum / count : NAN;
}
