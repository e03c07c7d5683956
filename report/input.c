/* Computes what a step with loaded batches loses to storage, decoding and copying. */
#include "report/input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns the mean of a figure over the processes that have it; NaN if none has. */
static double mean_of(const struct stored_cell *cell, size_t offset)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < cell->process_count; i++) {
		double value =
			*(const double *)(const void *)((const char *)&cell->processes[i] + offset);
		if (isfinite(value)) {
			sum += value;
			count++;
		}
	}
	return count ? sum / (double)count : NAN;
}

#define MEAN(cell, member) mean_of(cell, offsetof(struct process_record, member))

/* Returns the row of the same part that differs from `cell` only in input and stage, in the axes
 * that apply there; NULL if none has a step. */
static const struct summary_row *other(const struct summary *summary,
				       const struct stored_cell *stored, const struct cell *cell,
				       enum stage stage, enum input_mode input)
{
	struct cell wanted = *cell;
	char key[CELL_KEY_BYTES];
	wanted.stage = stage;
	wanted.input = input;
	cell_key(&wanted, key);
	for (size_t i = 0; i < summary->count; i++)
		if (summary->rows[i].step.n > 0 && summary->rows[i].cell->part == stored->part &&
		    !strcmp(summary->rows[i].cell->key, key))
			return &summary->rows[i];
	return NULL;
}

/* prony's own loader is measured with native. */
static const struct summary_row *loading(const struct summary *summary,
					 const struct stored_cell *stored)
{
	const struct cell *cell = &stored->cell;
	struct cell loaded = *cell;
	if (cell->input == INPUT_STREAM) {
		snprintf(loaded.framework, sizeof loaded.framework, "native");
		snprintf(loaded.name, sizeof loaded.name, "native");
		*loaded.environment = *loaded.backend = *loaded.options = '\0';
	}
	return other(summary, stored, &loaded, STAGE_LOAD, cell->input);
}

static bool arrives(const struct summary_row *row)
{
	return row->step.n > 0 && row->cell->cell.stage != STAGE_LOAD &&
	       isfinite(MEAN(row->cell, input_wait_ns));
}

bool input_split(const struct summary *summary, const struct summary_row *row,
		 struct input_split *split)
{
	const struct cell *cell = &row->cell->cell;
	if (!arrives(row))
		return false;
	const struct summary_row *resident =
		other(summary, row->cell, cell, cell->stage, INPUT_RESIDENT);
	double storage = MEAN(row->cell, load_storage_ns), decode = MEAN(row->cell, load_decode_ns);
	double copy = MEAN(row->cell, input_copy_ns), step = row->step.center;
	double wait = fmin(MEAN(row->cell, input_wait_ns), step);
	*split = (struct input_split){.copying = isfinite(copy) ? fmin(copy, step - wait) : 0};
	split->computing = step - wait - split->copying;
	/* Unknown if there are no intervals. */
	if (resident && resident->step.high < row->step.low - wait - split->copying) {
		split->slowed = split->computing - resident->step.center;
		split->computing = resident->step.center;
	}
	if (storage + decode > 0) {
		split->storage = wait * storage / (storage + decode);
		split->decoding = wait - split->storage;
	} else {
		split->loader = wait;
	}
	return true;
}

static void add_against(const struct summary_row *row, const struct summary_row *than,
			const char *input, struct strbuf *out)
{
	char step[32];
	if (!than)
		return;
	double more = 100 * (row->step.center / than->step.center - 1);
	format_duration(than->step.center, step, sizeof step);
	strbuf_printf(out, ", %s is %s (%+.0f %%)", input, step, fabs(more) < 0.5 ? 0 : more);
}

static void add_row(const struct summary *summary, const struct summary_row *row,
		    struct strbuf *out)
{
	const struct cell *cell = &row->cell->cell;
	const struct summary_row *load = loading(summary, row->cell);
	double storage = MEAN(row->cell, load_storage_ns), decode = MEAN(row->cell, load_decode_ns);
	char wait[32], copy[32], step[32];
	format_duration(MEAN(row->cell, input_wait_ns), wait, sizeof wait);
	format_duration(MEAN(row->cell, input_copy_ns), copy, sizeof copy);
	format_duration(row->step.center, step, sizeof step);
	strbuf_printf(out, "%s waits %s for the batch in each step of %s and copies it in %s",
		      cell->framework, wait, step, copy);
	add_against(row, other(summary, row->cell, cell, cell->stage, INPUT_RESIDENT), "resident",
		    out);
	add_against(row, other(summary, row->cell, cell, cell->stage, INPUT_SYNTHETIC), "synthetic",
		    out);
	if (load) {
		format_duration(load->step.center, step, sizeof step);
		strbuf_printf(out, ", loading alone takes %s", step);
	}
	if (isnan(storage))
		return;
	format_duration(storage, wait, sizeof wait);
	format_duration(decode, copy, sizeof copy);
	strbuf_printf(out, ", a batch took all threads %s of storage and %s of decoding", wait,
		      copy);
}

bool summary_input(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool said = false;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (!arrives(row))
			continue;
		strbuf_puts(out, said ? "; " : "input: ");
		add_row(summary, row, out);
		said = true;
	}
	return said;
}
