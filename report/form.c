#include "report/form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/form_internal.h"
#include "report/summary.h"
#include "report/text.h"

#define KEY "form="

enum form form_of(const struct stored_run *run)
{
	enum form form = FORM_OURS;

	for (const char *line = run->meta.spec; line && *line;) {
		size_t length = strcspn(line, "\n");
		char word[CELL_WORD_BYTES];

		if (!strncmp(line, KEY, strlen(KEY)) && length < sizeof word) {
			snprintf(word, sizeof word, "%.*s", (int)(length - strlen(KEY)),
				 line + strlen(KEY));
			form_parse(word, &form);
		}
		line += length + (line[length] == '\n');
	}
	return form;
}

/* The mean of all trials under one timer. */
static void form_vgg(const struct stored_cell *cell, const struct process_record *record,
		     struct strbuf *out)
{
	strbuf_printf(out, "Batch size: %lld\nIterations: %lld\nTime per iteration: %7.3f ms\n",
		      (long long)cell->cell.batch, (long long)record->steps,
		      form_timed(record) * 1e3 / (double)record->steps);
}

/* Seconds of a step, the mean over all steps of all processes; NaN without one. */
static double mean_step(const struct stored_cell *cell)
{
	double seconds = 0, steps = 0;

	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *record = form_process(cell, p);

		seconds += record ? form_timed(record) : 0;
		steps += record ? (double)record->steps : 0;
	}
	return steps > 0 ? seconds / steps : NAN;
}

/* What the origin calls a stage; NULL for one that it does not have. */
static const char *bench_stage(enum stage stage)
{
	return stage == STAGE_FORWARD ? "eval" : stage == STAGE_TRAIN ? "train" : NULL;
}

static void form_precision(const struct stored_run *run, struct strbuf *out)
{
	char when[32];

	clock_format_utc(run->meta.started_wall_ns, when, sizeof when);
	strbuf_puts(out, "Timestamp,Framework,Algorithm,BenchStage,Precision,Result\n");
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct cell *cell = &run->cells[i].cell;
		double seconds = mean_step(&run->cells[i]);

		if (isnan(seconds) || !bench_stage(cell->stage))
			continue;
		strbuf_printf(out, "%s,", when);
		text_csv(cell->framework, out);
		strbuf_putc(out, ',');
		text_csv(cell->network, out);
		strbuf_printf(out, ",%s,%s,%.3f\n", bench_stage(cell->stage),
			      precision_name(cell->precision), seconds * 1e3);
	}
}

/* Images a second, the mean over processes; what is not known is empty, as in the original. */
static void form_thesis(const struct stored_run *run, struct strbuf *out)
{
	strbuf_puts(out, "metric,dataset,network,framework,device,value\n");
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		const struct cell *c = &cell->cell;
		double speed = form_total_speed(cell);

		strbuf_puts(out, c->stage == STAGE_TRAIN ? "training_images_per_second,"
							 : "images_per_second,");
		text_csv(c->dataset, out);
		strbuf_putc(out, ',');
		text_csv(c->network, out);
		strbuf_putc(out, ',');
		text_csv(c->framework, out);
		strbuf_putc(out, ',');
		text_csv(c->device, out);
		strbuf_putc(out, ',');
		if (isfinite(speed))
			strbuf_printf(out, "%.1f", speed);
		strbuf_putc(out, '\n');
	}
}

static void write_process(const struct stored_cell *cell, const struct process_record *record,
			  enum form form, const struct form_layers *layers, struct strbuf *out)
{
	if (form == FORM_ALEXNET)
		form_alexnet(cell, record, layers, out);
	else if (form == FORM_CNN)
		form_cnn(cell, record, out);
	else
		form_vgg(cell, record, out);
}

static void write_cells(const struct stored_run *run, enum form form,
			const struct form_layers *layers, struct strbuf *out)
{
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		bool shown = false;

		for (size_t p = 0; p < cell->process_count; p++) {
			const struct process_record *record = form_process(cell, p);

			if (!record)
				continue;
			form_heading(cell, p, out);
			write_process(cell, record, form, layers, out);
			shown = true;
		}
		if (!shown)
			form_heading(cell, cell->process_count, out);
	}
}

void form_write(const struct stored_run *run, enum form form, const struct form_layers *layers,
		struct strbuf *out)
{
	switch (form) {
	case FORM_PRECISION:
		form_precision(run, out);
		return;
	case FORM_THESIS:
		form_thesis(run, out);
		return;
	case FORM_ALEXNET:
	case FORM_VGG:
		write_cells(run, form, layers, out);
		return;
	case FORM_CNN:
		write_cells(run, form, layers, out);
		form_cnn_tables(run, out);
		return;
	case FORM_OURS:
	case FORM_COUNT:
		return;
	}
}
