/* The charts, as Vega-Lite specifications: data and encodings only, nothing is drawn here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/format.h"
#include "report/html_internal.h"
#include "report/text.h"

enum { ROW_PIXELS = 34, SUB_ROW_PIXELS = 22 };

/* Told apart on light and dark ground alike. The floor is grey: it is no contender. */
#define FLOOR_COLOUR "#8b919a"
static const char *const palette[] = {
	"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759",
	"#76b7b2", "#d4a72c", "#ff9da7", "#9c755f", "#6b8e9e",
};

/* Phases up to the end of the first step, in the order in which they happen. */
static const struct {
	const char *field, *title, *colour;
} phases[] = {
	{"spawn_ns", "start process", "#9aa3ad"}, {"import_ns", "load framework", "#4e79a7"},
	{"open_ns", "open device", "#76b7b2"},	  {"build_ns", "build and compile", "#f28e2b"},
	{"feed_ns", "feed batches", "#59a14f"},	  {"first_step_ns", "first step", "#e15759"},
	{NULL, "requests between", "#d3cfe0"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The unit in which the largest figure of a chart reads well. */
struct chart_unit {
	double ns;
	const char *name;
};

static struct chart_unit choose_unit(double largest_ns)
{
	static const struct chart_unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	for (size_t i = 0; i < COUNT(units); i++)
		if (largest_ns >= units[i].ns)
			return units[i];
	return (struct chart_unit){1, "ns"};
}

static const char *framework_colour(const struct html_page *page, size_t framework)
{
	size_t contender = 0;
	if (!strcmp(page->frameworks[framework], "native"))
		return FLOOR_COLOUR;
	for (size_t i = 0; i < framework; i++)
		contender += !!strcmp(page->frameworks[i], "native");
	return palette[contender % COUNT(palette)];
}

/* A field of the data on a channel; `type` "quantitative" or "nominal"; title NULL: none. */
static json_t *channel(const char *field, const char *type, const char *title)
{
	json_t *object = json_pack("{s:s, s:s}", "field", field, "type", type);
	json_object_set_new(object, "title", title ? json_string(title) : json_null());
	return object;
}

/* The rows of a chart: frameworks, or with several runs every framework of every run. */
static json_t *row_channel(void)
{
	json_t *y = channel("row", "nominal", NULL);
	json_object_set_new(y, "sort", json_null());
	json_object_set_new(y, "axis",
			    json_pack("{s:i, s:b, s:b, s:i}", "labelLimit", 280, "ticks", 0,
				      "domain", 0, "labelPadding", 8));
	return y;
}

static json_t *x_channel(const char *field, const char *title, double end)
{
	json_t *x = channel(field, "quantitative", title);
	json_object_set_new(x, "axis", json_pack("{s:i, s:b}", "tickCount", 6, "labelOverlap", 1));
	json_object_set_new(x, "scale", json_pack("{s:[i, f], s:b}", "domain", 0, end, "nice", 0));
	return x;
}

static json_t *tooltip(const char *const (*rows)[2], size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			array, json_pack("{s:s, s:s}", "field", rows[i][0], "title", rows[i][1]));
	return array;
}

static json_t *layer(json_t *mark, json_t *encoding, const char *filter)
{
	json_t *object = json_pack("{s:o, s:o}", "mark", mark, "encoding", encoding);
	if (filter)
		json_object_set_new(object, "transform", json_pack("[{s:s}]", "filter", filter));
	return object;
}

static json_t *chart(json_t *values, json_t *layers, size_t rows, bool several)
{
	size_t pixels = rows * (several ? SUB_ROW_PIXELS : ROW_PIXELS);
	return json_pack("{s:s, s:i, s:{s:s, s:s}, s:{s:o}, s:o}", "width", "container", "height",
			 (int)pixels, "autosize", "type", "fit-x", "contains", "padding", "data",
			 "values", values, "layer", layers);
}

static void row_name(const struct html_page *page, size_t run, const char *framework, char *out,
		     size_t out_bytes)
{
	if (page->count > 1)
		snprintf(out, out_bytes, "%s, %s", framework, page->labels[run]);
	else
		snprintf(out, out_bytes, "%s", framework);
}

/* Called for the rows of a comparison, the fastest framework first, each one's runs side by side.
 */
typedef void visit_row(const struct html_page *page, size_t run, size_t framework,
		       const struct summary_row *row, void *context);

/* Step time of a framework's fastest run; infinite when it has no rank in any. */
static double best_step(const struct html_page *page, size_t comparison, size_t framework)
{
	double best = INFINITY;
	for (size_t run = 0; run < page->count; run++) {
		const struct summary_row *row =
			html_find(page, run, comparison, page->frameworks[framework]);
		if (row && row->rank > 0 && row->step.center < best)
			best = row->step.center;
	}
	return best;
}

/* Frameworks by their best step, those without one at the end as they came; the caller frees. */
static size_t *order_frameworks(const struct html_page *page, size_t comparison)
{
	size_t *order = memory_alloc((page->framework_count + 1) * sizeof *order);
	double *best = memory_alloc((page->framework_count + 1) * sizeof *best);
	for (size_t i = 0; i < page->framework_count; i++) {
		best[i] = best_step(page, comparison, i);
		size_t at = i;
		for (; at > 0 && best[i] < best[order[at - 1]]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	free(best);
	return order;
}

static size_t visit_rows(const struct html_page *page, size_t comparison, visit_row *visit,
			 void *context)
{
	size_t *order = order_frameworks(page, comparison), rows = 0;
	for (size_t i = 0; i < page->framework_count; i++) {
		const char *name = page->frameworks[order[i]];
		for (size_t run = 0; run < page->count; run++) {
			const struct summary_row *row = html_find(page, run, comparison, name);
			if (!row)
				continue;
			rows++;
			visit(page, run, order[i], row, context);
		}
	}
	free(order);
	return rows;
}

struct step_data {
	json_t *values, *points, *floors;
	double slowest_ns; /* process */
	double largest_ns; /* of what is drawn */
	struct chart_unit unit;
};

/* An interval of three processes can be a hundred times as long as what it belongs to; the axis
 * follows the processes, and gives intervals half as much again. */
#define INTERVAL_ROOM 1.5

static void find_slowest(const struct html_page *page, size_t run, size_t framework,
			 const struct summary_row *row, void *context)
{
	struct step_data *data = context;
	(void)page, (void)run, (void)framework;
	if (row->rank > 0 && row->step.max > data->slowest_ns)
		data->slowest_ns = row->step.max;
}

static void find_largest(const struct html_page *page, size_t run, size_t framework,
			 const struct summary_row *row, void *context)
{
	struct step_data *data = context;
	(void)page, (void)run, (void)framework;
	double high = fmin(row->step.high, INTERVAL_ROOM * data->slowest_ns);
	data->largest_ns = fmax(data->largest_ns, data->slowest_ns);
	if (row->rank > 0 && isfinite(row->step.high) && high > data->largest_ns)
		data->largest_ns = high;
}

static void add_process_points(const struct step_data *data, const struct summary_row *row,
			       const char *name)
{
	for (size_t p = 0; p < row->cell->process_count; p++) {
		const struct process_record *record = &row->cell->processes[p];
		if (strcmp(record->status, "ok") || !isfinite(record->step_mean_ns))
			continue;
		char step[FORMAT_BYTES];
		format_duration(record->step_mean_ns, step, sizeof step);
		json_array_append_new(
			data->points,
			json_pack("{s:o, s:o, s:I, s:s}", "row", text_json(name), "step",
				  json_number(record->step_mean_ns / data->unit.ns), "process",
				  (json_int_t)record->replicate, "text", step));
	}
}

static void add_step_row(const struct html_page *page, size_t run, size_t framework,
			 const struct summary_row *row, void *context)
{
	struct step_data *data = context;
	char name[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4], label[96], step[FORMAT_BYTES];
	char half[FORMAT_BYTES], rate[FORMAT_BYTES], ratio[FORMAT_BYTES];
	bool known = row->rank > 0, interval = known && isfinite(row->step.half_width);
	row_name(page, run, page->frameworks[framework], name, sizeof name);
	format_duration_within(row->step.center, row->step.half_width, step, sizeof step);
	format_percent(row->step.half_width, half, sizeof half);
	format_rate(row->items_per_second, rate, sizeof rate);
	summary_floor_text(row, ratio, sizeof ratio);
	snprintf(label, sizeof label, "%s%s%s", known ? step : cell_status_name(row->cell->status),
		 interval ? " +/- " : "", interval ? half : "");
	/* The whisker ends with the axis; the label stands beyond whatever is drawn in its row. */
	bool whole = row->step.high <= data->largest_ns;
	double high = whole ? row->step.high : data->largest_ns;
	double end = !known ? 0 : interval ? fmax(high, row->step.max) : row->step.max;
	json_t *value = json_object();
	json_object_set_new(value, "row", text_json(name));
	json_object_set_new(value, "step",
			    json_number(known ? row->step.center / data->unit.ns : NAN));
	json_object_set_new(value, "low", json_number(row->step.low / data->unit.ns));
	json_object_set_new(value, "high", json_number(interval ? high / data->unit.ns : NAN));
	json_object_set_new(value, "cap", json_number(whole ? high / data->unit.ns : NAN));
	json_object_set_new(value, "end", json_number(end / data->unit.ns));
	json_object_set_new(value, "label", json_string(label));
	json_object_set_new(value, "version", text_json(summary_version(row)));
	json_object_set_new(value, "rate", json_string(rate));
	json_object_set_new(value, "ratio", json_string(ratio));
	json_object_set_new(value, "processes", json_integer((json_int_t)row->step.n));
	json_object_set_new(value, "reason", text_json(summary_reason(row)));
	json_object_set_new(value, "colour", json_string(framework_colour(page, framework)));
	json_array_append_new(data->values, value);
	if (known)
		add_process_points(data, row, name);
	if (known && !strcmp(page->frameworks[framework], "native") && page->count == 1)
		json_array_append_new(data->floors,
				      json_pack("{s:f}", "step", row->step.center / data->unit.ns));
}

/* Colours are in the data, so that a framework has the same one in every chart of the page. */
static json_t *own_colour(void)
{
	json_t *colour = channel("colour", "nominal", NULL);
	json_object_set_new(colour, "scale", json_null());
	return colour;
}

static json_t *step_layers(const struct step_data *data, const char *title, double end)
{
	static const char *const about[][2] = {
		{"row", "framework"},	{"version", "version"}, {"label", "step"},
		{"rate", "throughput"}, {"ratio", "vs native"}, {"processes", "processes"},
		{"reason", "reason"},
	};
	static const char *const about_process[][2] = {{"process", "process"},
						       {"text", "mean step"}};
	json_t *layers = json_array();
	json_array_append_new(layers,
			      layer(json_pack("{s:s, s:i, s:{s:f}}", "type", "bar",
					      "cornerRadiusEnd", 2, "height", "band", 0.62),
				    json_pack("{s:o, s:o, s:o, s:o}", "y", row_channel(), "x",
					      x_channel("step", title, end), "color", own_colour(),
					      "tooltip", tooltip(about, COUNT(about))),
				    "isValid(datum.step)"));
	if (json_array_size(data->floors) > 0) {
		json_t *floor = layer(json_pack("{s:s, s:s}", "type", "rule", "style", "floor"),
				      json_pack("{s:o}", "x", x_channel("step", title, end)), NULL);
		json_object_set_new(floor, "data", json_pack("{s:O}", "values", data->floors));
		json_array_append_new(layers, floor);
	}
	json_t *points = layer(
		json_pack("{s:s, s:s, s:i}", "type", "point", "style", "process", "size", 26),
		json_pack("{s:o, s:o, s:o}", "y", row_channel(), "x", x_channel("step", title, end),
			  "tooltip", tooltip(about_process, COUNT(about_process))),
		NULL);
	json_object_set_new(points, "data", json_pack("{s:O}", "values", data->points));
	json_array_append_new(layers, points);
	json_array_append_new(layers,
			      layer(json_pack("{s:s, s:s}", "type", "rule", "style", "interval"),
				    json_pack("{s:o, s:o, s:{s:s}}", "y", row_channel(), "x",
					      x_channel("low", title, end), "x2", "field", "high"),
				    "isValid(datum.low)"));
	for (int i = 0; i < 2; i++)
		json_array_append_new(
			layers, layer(json_pack("{s:s, s:s, s:i, s:i}", "type", "tick", "style",
						"interval", "size", 10, "thickness", 2),
				      json_pack("{s:o, s:o}", "y", row_channel(), "x",
						x_channel(i ? "cap" : "low", title, end)),
				      i ? "isValid(datum.cap)" : "isValid(datum.low)"));
	json_array_append_new(
		layers,
		layer(json_pack("{s:s, s:s, s:i}", "type", "text", "align", "left", "dx", 8),
		      json_pack("{s:o, s:o, s:{s:s}}", "y", row_channel(), "x",
				x_channel("end", title, end), "text", "field", "label"),
		      NULL));
	return layers;
}

json_t *html_step_chart(const struct html_page *page, size_t comparison)
{
	struct step_data data = {
		.values = json_array(), .points = json_array(), .floors = json_array()};
	json_t *spec = NULL;
	size_t rows = visit_rows(page, comparison, find_slowest, &data);
	visit_rows(page, comparison, find_largest, &data);
	if (data.largest_ns > 0) {
		char title[64];
		data.unit = choose_unit(data.largest_ns);
		visit_rows(page, comparison, add_step_row, &data);
		snprintf(title, sizeof title, "time per step (%s), less is better", data.unit.name);
		/* Room for the labels on the right. */
		json_t *layers = step_layers(&data, title, 1.6 * data.largest_ns / data.unit.ns);
		spec = chart(json_incref(data.values), layers, rows, page->count > 1);
	}
	json_decref(data.values);
	json_decref(data.points);
	json_decref(data.floors);
	return spec;
}

struct startup_data {
	json_t *values, *totals;
	double largest_ns;
	struct chart_unit unit;
};

/* A phase's median; what no phase accounts for is the last one, so that the bar's end is the
 * start-up. */
static double phase_ns(const struct summary_row *row, size_t phase)
{
	if (phases[phase].field)
		return html_median(row->cell, phases[phase].field);
	double rest = html_median(row->cell, "to_first_step_ns");
	for (size_t i = 0; i < COUNT(phases); i++) {
		double known = phases[i].field ? html_median(row->cell, phases[i].field) : NAN;
		rest -= isfinite(known) ? known : 0;
	}
	return rest > 0 ? rest : NAN;
}

static void find_longest_start(const struct html_page *page, size_t run, size_t framework,
			       const struct summary_row *row, void *context)
{
	struct startup_data *data = context;
	double sum = 0;
	(void)page, (void)run, (void)framework;
	for (size_t i = 0; i < COUNT(phases); i++) {
		double phase = phase_ns(row, i);
		sum += isfinite(phase) ? phase : 0;
	}
	if (sum > data->largest_ns)
		data->largest_ns = sum;
}

static void add_startup_row(const struct html_page *page, size_t run, size_t framework,
			    const struct summary_row *row, void *context)
{
	struct startup_data *data = context;
	char name[CELL_WORD_BYTES + HTML_LABEL_BYTES + 4], text[FORMAT_BYTES];
	double sum = 0;
	row_name(page, run, page->frameworks[framework], name, sizeof name);
	for (size_t i = 0; i < COUNT(phases); i++) {
		double phase = phase_ns(row, i);
		if (!isfinite(phase))
			continue;
		sum += phase;
		format_duration_within(phase, NAN, text, sizeof text);
		json_array_append_new(data->values,
				      json_pack("{s:o, s:s, s:i, s:f, s:s}", "row", text_json(name),
						"phase", phases[i].title, "order", (int)i, "time",
						phase / data->unit.ns, "text", text));
	}
	if (sum <= 0)
		return;
	format_duration_within(sum, NAN, text, sizeof text);
	json_array_append_new(data->totals, json_pack("{s:o, s:f, s:s}", "row", text_json(name),
						      "time", sum / data->unit.ns, "label", text));
}

static json_t *phase_colour(void)
{
	json_t *domain = json_array(), *range = json_array();
	for (size_t i = 0; i < COUNT(phases); i++) {
		json_array_append_new(domain, json_string(phases[i].title));
		json_array_append_new(range, json_string(phases[i].colour));
	}
	json_t *colour = channel("phase", "nominal", NULL);
	json_object_set_new(colour, "scale",
			    json_pack("{s:o, s:o}", "domain", domain, "range", range));
	json_object_set_new(colour, "legend",
			    json_pack("{s:s, s:s, s:i, s:i}", "orient", "top", "direction",
				      "horizontal", "columns", 3, "labelLimit", 200));
	return colour;
}

json_t *html_startup_chart(const struct html_page *page, size_t comparison)
{
	static const char *const about[][2] = {
		{"row", "framework"}, {"phase", "phase"}, {"text", "median"}};
	struct startup_data data = {.values = json_array(), .totals = json_array()};
	json_t *spec = NULL;
	visit_rows(page, comparison, find_longest_start, &data);
	if (data.largest_ns > 0) {
		char title[64];
		data.unit = choose_unit(data.largest_ns);
		double end = 1.15 * data.largest_ns / data.unit.ns;
		visit_rows(page, comparison, add_startup_row, &data);
		snprintf(title, sizeof title, "time until the first step is done (%s)",
			 data.unit.name);
		json_t *layers = json_array(), *x = x_channel("time", title, end);
		json_object_set_new(x, "stack", json_string("zero"));
		json_array_append_new(
			layers,
			layer(json_pack("{s:s, s:{s:f}}", "type", "bar", "height", "band", 0.62),
			      json_pack("{s:o, s:o, s:o, s:{s:s, s:s}, s:o}", "y", row_channel(),
					"x", x, "color", phase_colour(), "order", "field", "order",
					"type", "quantitative", "tooltip",
					tooltip(about, COUNT(about))),
			      NULL));
		json_t *totals = layer(
			json_pack("{s:s, s:s, s:i}", "type", "text", "align", "left", "dx", 6),
			json_pack("{s:o, s:o, s:{s:s}}", "y", row_channel(), "x",
				  x_channel("time", title, end), "text", "field", "label"),
			NULL);
		json_object_set_new(totals, "data", json_pack("{s:O}", "values", data.totals));
		json_array_append_new(layers, totals);
		spec = chart(json_incref(data.values), layers, json_array_size(data.totals),
			     page->count > 1);
	}
	json_decref(data.values);
	json_decref(data.totals);
	return spec;
}
