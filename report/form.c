/* Prints a run in the format of the benchmark that its suite repeats. */
#include "report/form.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/costs.h"
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

/* Prints the mean of all trials under one timer. */
static void form_vgg(const struct stored_cell *cell, const struct process_record *record,
		     struct strbuf *out)
{
	strbuf_printf(out, "Batch size: %lld\nIterations: %lld\nTime per iteration: %7.3f ms\n",
		      (long long)cell->cell.batch, (long long)record->steps,
		      form_timed(record) * 1e3 / (double)record->steps);
}

/*
 * Returns the seconds of a step, the mean over all steps of all processes; NaN if there are none.
 */
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

/* Returns the original's name of a stage; NULL if it has no such stage. */
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

static double process_memory(const struct process_record *record)
{
	return record->rss_peak_bytes == RECORD_NONE ? NAN
						     : (double)record->rss_peak_bytes / 0x1p20;
}

static double process_power(const struct process_record *record)
{
	return record->power_mean_run;
}

/* Returns the mean over the processes that have a value, as the original does over three runs; NaN
 * if none has one. */
static double mean_over(const struct stored_cell *cell,
			double (*of)(const struct process_record *record))
{
	double sum = 0;
	int count = 0;

	for (size_t p = 0; p < cell->process_count; p++) {
		const struct process_record *record = form_process(cell, p);

		if (record && isfinite(of(record))) {
			sum += of(record);
			count++;
		}
	}
	return count ? sum / count : NAN;
}

static void thesis_row(const char *metric, const struct cell *cell, double value,
		       struct strbuf *out)
{
	const char *const words[] = {metric, cell->dataset, cell->network, cell->framework,
				     cell->device};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		text_csv(words[i], out);
		strbuf_putc(out, ',');
	}
	if (isfinite(value))
		strbuf_printf(out, "%.1f", value);
	strbuf_putc(out, '\n');
}

/* Adds why there is no power, from the first cell whose processes give a reason. */
static void no_power(const struct stored_run *run, struct strbuf *out)
{
	struct strbuf why;
	bool known = false;

	strbuf_init(&why, 0);
	for (size_t i = 0; i < run->cell_count && !known; i++)
		known = costs_power_reason(&run->cells[i], &why);
	char *line = text_line(strbuf_text(&why));
	if (known)
		strbuf_printf(out, "# cpu_power_w: %s\n", line);
	free(line);
	strbuf_release(&why);
}

/* Prints speed, memory and power. Unknown values are empty, as in the original, with the reason at
 * the end. The original's memory and power are those of GPUs, for which prony has no sensor. On a
 * CPU, prony measures other quantities under other names: the worker's largest resident set, and
 * the power of the processor packages. */
static void form_thesis(const struct stored_run *run, struct strbuf *out)
{
	bool gpus = false;

	strbuf_puts(out, "metric,dataset,network,framework,device,value\n");
	for (size_t i = 0; i < run->cell_count; i++)
		thesis_row(run->cells[i].cell.stage == STAGE_TRAIN ? "training_images_per_second"
								   : "images_per_second",
			   &run->cells[i].cell, form_total_speed(&run->cells[i]), out);
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		bool cpu = device_is_cpu(cell->cell.device);

		thesis_row(cpu ? "memory_mib" : "gpu_memory_mib", &cell->cell,
			   cpu ? mean_over(cell, process_memory) : NAN, out);
		thesis_row(cpu ? "cpu_power_w" : "gpu_power_w", &cell->cell,
			   cpu ? mean_over(cell, process_power) : NAN, out);
		gpus |= !cpu;
	}
	if (gpus)
		strbuf_puts(out, "# gpu_memory_mib, gpu_power_w: no sensor reads GPUs\n");
	no_power(run, out);
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
