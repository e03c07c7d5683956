/* Exports in the formats that services for continuous benchmarking and monitoring read. */
#include "report/export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/figures.h"
#include "report/labels.h"
#include "report/text.h"

enum { NAME_BYTES = 512 };
#define NS_PER_MS 1e6
#define NS_PER_SECOND 1e9

/* Writes "native: lenet, mnist-sample, forward, batch 64, cpu, fp32": the same in every run. */
static void benchmark_name(const struct cell *cell, char out[NAME_BYTES])
{
	const struct labels none = {.varies = {false}};
	char rest[NAME_BYTES - CELL_WORD_BYTES];
	label_common(&none, cell, rest, sizeof rest);
	snprintf(out, NAME_BYTES, "%.*s: %s", CELL_WORD_BYTES - 2, cell->framework, rest);
}

static enum prony_status put_json(json_t *document, struct strbuf *out, struct error *err)
{
	char *text = text_of_json(document, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	strbuf_puts(out, text);
	strbuf_putc(out, '\n');
	free(text);
	json_decref(document);
	return export_finish(out, err);
}

/* Returns {"value": ..., "lower_value": ..., "upper_value": ...}; ends only if they are known. */
static json_t *bmf_metric(enum figure_id id, const struct summary_row *row)
{
	struct figure_value figure = figure_value(id, row);
	json_t *metric = json_object();
	json_object_set_new(metric, "value", json_number(figure.value));
	if (isfinite(figure.low) && isfinite(figure.high)) {
		json_object_set_new(metric, "lower_value", json_number(figure.low));
		json_object_set_new(metric, "upper_value", json_number(figure.high));
	}
	return metric;
}

enum prony_status export_bmf(const struct summary *summary, struct strbuf *out, struct error *err)
{
	/* The names of the measures that Bencher has from the start. */
	static const struct {
		const char *measure;
		enum figure_id figure;
	} measures[] = {{"latency", FIGURE_STEP}, {"throughput", FIGURE_SAMPLES}};
	json_t *document = json_object();
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		char name[NAME_BYTES];
		if (!row->comparable)
			continue;
		json_t *metrics = json_object();
		for (size_t m = 0; m < sizeof measures / sizeof *measures; m++)
			json_object_set_new(metrics, measures[m].measure,
					    bmf_metric(measures[m].figure, row));
		benchmark_name(&row->cell->cell, name);
		json_object_set_new(document, name, metrics);
	}
	return put_json(document, out, err);
}

enum prony_status export_github(const struct summary *summary, struct strbuf *out,
				struct error *err)
{
	json_t *document = json_array();
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		char name[NAME_BYTES], width[FORMAT_BYTES];
		if (!row->comparable)
			continue;
		benchmark_name(&row->cell->cell, name);
		figure_width_text(FIGURE_STEP, row, width);
		json_t *entry = json_object();
		json_object_set_new(entry, "name", text_json(name));
		json_object_set_new(entry, "unit", json_string("ms"));
		json_object_set_new(entry, "value", json_number(row->step.center / NS_PER_MS));
		if (isfinite(row->step.half_width))
			json_object_set_new(entry, "range", json_sprintf("± %s", width));
		json_array_append_new(document, entry);
	}
	return put_json(document, out, err);
}

static void add_label(const char *name, const char *value, struct strbuf *out)
{
	char *clean = text_line(value);
	strbuf_printf(out, "%s=\"", name);
	for (const char *c = clean; *c; c++) {
		if (*c == '"' || *c == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, *c);
	}
	strbuf_putc(out, '"');
	free(clean);
}

static void add_labels(const struct summary *summary, const struct summary_row *row,
		       struct strbuf *out)
{
	strbuf_putc(out, '{');
	for (int id = 0; id < AXIS_COUNT; id++) {
		char text[CELL_WORD_BYTES];
		if (!axis_applies(&axes[id], &row->cell->cell))
			continue;
		axis_text(&axes[id], axis_value(&axes[id], &row->cell->cell), text);
		add_label(axes[id].name, text, out);
		strbuf_putc(out, ',');
	}
	add_label("host", summary->run->meta.host, out);
	strbuf_puts(out, "} ");
}

/* Writes the name of a family from a CSV column: durations are in seconds, as OpenMetrics has them.
 */
static void family_name(const char *word, bool duration, char out[FIGURE_WORD_BYTES])
{
	size_t length = strlen(word) - (duration ? strlen("_ns") : 0);
	snprintf(out, FIGURE_WORD_BYTES, "%.*s%s", (int)length, word, duration ? "_seconds" : "");
}

/* Adds the family of one part of a figure; nothing if no cell knows it. */
static void add_family(const struct summary *summary, enum figure_id id, enum figure_part part,
		       struct strbuf *out)
{
	static const char *const what[PART_COUNT] = {
		"", "lower end of the 95 % interval of: ", "upper end of the 95 % interval of: ",
		"relative half width of the 95 % interval of: ", "number of processes of: "};
	bool duration = figures[id].unit == UNIT_NS && part <= PART_HIGH, begun = false;
	char word[FIGURE_WORD_BYTES], name[FIGURE_WORD_BYTES];
	figure_part_word(figures[id].word, part, word);
	family_name(word, duration, name);
	for (size_t i = 0; i < summary->count; i++) {
		struct figure_value figure = figure_value(id, &summary->rows[i]);
		double value = figure_part_of(&figure, part) / (duration ? NS_PER_SECOND : 1);
		if (!summary->rows[i].comparable || !isfinite(value))
			continue;
		if (!begun)
			strbuf_printf(out, "# TYPE prony_%s gauge\n# HELP prony_%s %s%s\n", name,
				      name, what[part], figures[id].help);
		begun = true;
		strbuf_printf(out, "prony_%s", name);
		add_labels(summary, &summary->rows[i], out);
		strbuf_printf(out, "%.15g\n", value);
	}
}

enum prony_status export_openmetrics(const struct summary *summary, struct strbuf *out,
				     struct error *err)
{
	for (int id = 0; id < FIGURE_COUNT; id++)
		for (int part = 0; part < PART_COUNT; part++)
			if (figures[id].csv >> part & 1)
				add_family(summary, (enum figure_id)id, (enum figure_part)part,
					   out);
	strbuf_puts(out, "# EOF\n");
	return export_finish(out, err);
}
