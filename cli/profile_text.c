#include "cli/profile_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/write.h"
#include "report/format.h"
#include "report/summary.h"
#include "report/table.h"
#include "report/text.h"

/* The number of functions whose lines are shown, and the columns of a path. */
enum { FUNCTIONS_SHOWN = 4, PATH_SHOWN = 60 };

static void duration_cell(struct table *table, double ns)
{
	char text[FORMAT_BYTES];
	format_duration(ns, text, sizeof text);
	table_cell(table, ns > 0 ? text : "", NULL);
}

static void share_cell(struct table *table, double share)
{
	char text[FORMAT_BYTES];
	format_percent(share, text, sizeof text);
	table_cell(table, text, NULL);
}

static void finish_table(struct table *table, bool colour, int width, struct strbuf *out)
{
	table_render_text(table, colour, width, out);
	table_free(table);
	strbuf_putc(out, '\n');
}

static void phase_row(struct table *table, const struct profile *profiles, size_t count, int phase)
{
	int64_t steps = 0;
	bool any = false;
	char text[FORMAT_BYTES];
	for (size_t i = 0; i < count; i++) {
		any = any || profiles[i].phases[phase].ns >= 0;
		steps = profiles[i].phases[phase].steps > steps ? profiles[i].phases[phase].steps
								: steps;
	}
	if (!any)
		return;
	table_row(table);
	table_cell(table, profile_phase_name(phase), NULL);
	for (size_t i = 0; i < count; i++) {
		const struct profile_phase *at = &profiles[i].phases[phase];
		duration_cell(table, at->ns < 0 ? NAN : (double)at->ns);
		snprintf(text, sizeof text, "%" PRId64, at->steps);
		table_cell(table, at->ns >= 0 && at->steps ? text : "", NULL);
	}
}

/* Adds the table of phases, with the profiles side by side. */
static void phases_table(const struct profile *profiles, size_t count, bool colour, int width,
			 struct strbuf *out)
{
	struct table_column *columns = calloc(2 * count + 1, sizeof *columns);
	if (!columns)
		return;
	columns[0] = (struct table_column){.title = "phase", .key = "phase"};
	for (size_t i = 0; i < count; i++) {
		columns[1 + 2 * i] =
			(struct table_column){.title = profiles[i].cell->cell.framework,
					      .key = "ns",
					      .align = TABLE_RIGHT};
		columns[2 + 2 * i] = (struct table_column){
			.title = "steps", .key = "steps", .align = TABLE_RIGHT};
	}
	struct table *table = table_new(columns, 2 * count + 1);
	for (int phase = 0; phase < PROFILE_PHASE_COUNT; phase++)
		phase_row(table, profiles, count, phase);
	table_row(table);
	table_cell(table, "step, not profiled", NULL);
	for (size_t i = 0; i < count; i++) {
		duration_cell(table, profiles[i].step_ns);
		table_cell(table, "", NULL);
	}
	finish_table(table, colour, width, out);
	free(columns);
}

static void layer_row(struct table *table, const struct profile *profile,
		      const struct profile_layer *layer, bool passes)
{
	double steps = (double)profile->layer_steps, ns = profile_layer_ns(layer) / steps;
	char *name = text_line(layer->fused ? layer->fused : layer->name);
	char *kind = text_line(layer->kind);
	table_row(table);
	table_cell(table, name, NULL);
	table_cell(table, kind, NULL);
	if (passes) {
		duration_cell(table, layer->forward_ns / steps);
		duration_cell(table, layer->backward_ns / steps);
	}
	duration_cell(table, ns);
	share_cell(table, ns / profile->layer_step_ns);
	free(name);
	free(kind);
}

/* Adds a sentence, wrapped at the terminal's width. */
PRONY_PRINTF(3, 4) static void say(int width, struct strbuf *out, const char *format, ...)
{
	struct strbuf text;
	va_list arguments;
	strbuf_init(&text, 0);
	va_start(arguments, format);
	strbuf_vprintf(&text, format, arguments);
	va_end(arguments);
	text_wrap(strbuf_text(&text), 0, width, "", "", out);
	strbuf_release(&text);
}

/* Adds "GPU: busy 83 % of the step ...". */
static void device_text(const struct profile *profile, int width, struct strbuf *out)
{
	const struct profile_device_sum *sums = profile->device;
	double steps = (double)profile->layer_steps;
	double idle = profile->layer_step_ns - profile->device_ns;
	char share[FORMAT_BYTES], none[FORMAT_BYTES];
	format_percent(profile->device_ns / profile->layer_step_ns, share, sizeof share);
	format_duration(idle > 0 ? idle : 0, none, sizeof none);
	say(width, out,
	    "GPU: busy %s of the step, idle for %s; per step %.4g kernels, %.4g copies (%.4g MiB) "
	    "and %.4g fills",
	    share, none, (double)sums[PROFILE_DEVICE_KERNEL].calls / steps,
	    (double)sums[PROFILE_DEVICE_COPY].calls / steps,
	    (double)sums[PROFILE_DEVICE_COPY].bytes / steps / (1 << 20),
	    (double)sums[PROFILE_DEVICE_FILL].calls / steps);
}

/* Adds "6.98 ms of 7.11 ms (98.2 %) are in layers ...". */
static void layers_sum(const struct profile *profile, int width, struct strbuf *out)
{
	char sum[FORMAT_BYTES], step[FORMAT_BYTES], share[FORMAT_BYTES], rest[FORMAT_BYTES];
	char named[FORMAT_BYTES], plain[FORMAT_BYTES];
	double none = profile->layer_step_ns - profile->covered_ns;
	format_duration(profile->layers_ns, sum, sizeof sum);
	format_duration(profile->layer_step_ns, step, sizeof step);
	format_percent(profile->layers_ns / profile->layer_step_ns, share, sizeof share);
	format_duration(none > 0 ? none : 0, rest, sizeof rest);
	format_percent(profile->named_ns / profile->layers_ns, named, sizeof named);
	format_duration(profile->step_ns, plain, sizeof plain);
	say(width, out,
	    "sum %s of a step of %s (%s); unaccounted for: %s; %s of the sum is named after a "
	    "layer of the network",
	    sum, step, share, rest, named);
	say(width, out, "the %" PRId64 " profiled steps took %s each; without profiling, %s",
	    profile->layer_steps, step, plain);
	if (profile->covered_ns < 0.99 * profile->layers_ns)
		say(width, out, "layers ran in parallel, so their sum exceeds the elapsed time");
	if (profile->has_device)
		device_text(profile, width, out);
	strbuf_putc(out, '\n');
}

static void layers_table(const struct profile *profile, size_t top, bool colour, int width,
			 struct strbuf *out)
{
	static const struct table_column all[] = {
		{.title = "layer", .key = "layer"},
		{.title = "operator", .key = "operator"},
		{.title = "forward", .key = "forward_ns", .align = TABLE_RIGHT},
		{.title = "backward", .key = "backward_ns", .align = TABLE_RIGHT},
		{.title = "a step", .key = "ns", .align = TABLE_RIGHT},
		{.title = "share", .key = "share", .align = TABLE_RIGHT},
	};
	static const struct table_column one[] = {
		{.title = "layer", .key = "layer"},
		{.title = "operator", .key = "operator"},
		{.title = "a step", .key = "ns", .align = TABLE_RIGHT},
		{.title = "share", .key = "share", .align = TABLE_RIGHT},
	};
	bool passes = profile->cell->recipe.stage != STAGE_FORWARD;
	struct table *table = passes ? table_new(all, sizeof all / sizeof *all)
				     : table_new(one, sizeof one / sizeof *one);
	struct profile_layer rest = {.kind = "", .name = NULL};
	char name[64];
	for (size_t i = 0; i < profile->layer_count; i++) {
		const struct profile_layer *layer = &profile->layers[i];
		if (i < top) {
			layer_row(table, profile, layer, passes);
			continue;
		}
		rest.forward_ns += layer->forward_ns;
		rest.backward_ns += layer->backward_ns;
		rest.other_ns += layer->other_ns;
	}
	if (profile->layer_count > top) {
		snprintf(name, sizeof name, "%zu more", profile->layer_count - top);
		rest.name = name;
		layer_row(table, profile, &rest, passes);
	}
	table_render_text(table, colour, width, out);
	table_free(table);
	layers_sum(profile, width, out);
}

static void line_row(struct table *table, const struct profile *profile,
		     const struct profile_line *line)
{
	char text[FORMAT_BYTES];
	char *code = text_line(line->text);
	double steps = (double)profile->line_steps;
	table_row(table);
	snprintf(text, sizeof text, "%" PRId64, line->line);
	table_cell(table, text, NULL);
	snprintf(text, sizeof text, "%.4g", (double)line->hits / steps);
	table_cell(table, text, NULL);
	duration_cell(table, (double)line->ns / steps);
	duration_cell(table, line->hits ? (double)line->ns / (double)line->hits : 0);
	share_cell(table, (double)line->ns / (double)profile->lines_total_ns);
	table_cell(table, code, NULL);
	free(code);
}

/* Returns the end of a path, which distinguishes files. */
static const char *path_end(const char *path)
{
	size_t length = strlen(path);
	if (length <= PATH_SHOWN)
		return path;
	const char *slash = strchr(path + length - PATH_SHOWN, '/');
	return slash ? slash + 1 : path + length - PATH_SHOWN;
}

/* Adds a table of a function's lines in order; if there are many, lines that took no time are left
 * out. */
static void function_table(const struct profile *profile, const struct profile_function *function,
			   size_t top, bool colour, int width, struct strbuf *out)
{
	static const struct table_column columns[] = {
		{.title = "line", .key = "line", .align = TABLE_RIGHT},
		{.title = "hits", .key = "hits", .align = TABLE_RIGHT},
		{.title = "time", .key = "ns", .align = TABLE_RIGHT},
		{.title = "per hit", .key = "per_hit", .align = TABLE_RIGHT},
		{.title = "% time", .key = "share", .align = TABLE_RIGHT},
		{.title = "line contents", .key = "text"},
	};
	struct table *table = table_new(columns, sizeof columns / sizeof *columns);
	char *name = text_line(function->name), *file = text_line(path_end(function->file));
	char text[FORMAT_BYTES];
	bool many = function->line_count > top;
	format_duration((double)function->ns / (double)profile->line_steps, text, sizeof text);
	say(width, out, "%s (%s:%" PRId64 "), %s a step", name, file, function->line, text);
	for (size_t i = 0; i < function->line_count; i++) {
		const struct profile_line *line = &function->lines[i];
		if (!many || (double)line->ns >= 0.005 * (double)function->ns)
			line_row(table, profile, line);
	}
	finish_table(table, colour, width, out);
	free(name);
	free(file);
}

static void lines_text(const struct profile *profile, size_t top, bool colour, int width,
		       struct strbuf *out)
{
	char total[FORMAT_BYTES], share[FORMAT_BYTES];
	double steps = (double)profile->line_steps;
	int64_t sum = profile_lines_sum(profile);
	format_duration((double)profile->lines_total_ns / steps, total, sizeof total);
	format_percent((double)sum / (double)profile->lines_total_ns, share, sizeof share);
	say(width, out,
	    "%s: lines of Python, per step; times include what a line calls, without the tracer's "
	    "own time",
	    profile->cell->cell.framework);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < profile->function_count && i < FUNCTIONS_SHOWN; i++)
		function_table(profile, &profile->functions[i], top, colour, width, out);
	say(width, out,
	    "%" PRId64 " steps took %s each; the lines' own times sum to %s of it; %zu functions, "
	    "all in --format json",
	    profile->line_steps, total, share, profile->function_count);
	strbuf_putc(out, '\n');
}

static void cores_text(const struct profile *profile, int width, struct strbuf *out)
{
	struct strbuf text;
	if (!profile->core_count)
		return;
	strbuf_init(&text, 0);
	strbuf_printf(&text, "%s: processor use in steps without profiling:",
		      profile->cell->cell.framework);
	for (size_t i = 0; i < profile->core_count; i++) {
		char share[FORMAT_BYTES];
		format_percent(fmin(profile->cores[i], 1), share, sizeof share);
		strbuf_printf(&text, "%s %s %s", i ? "," : "", profile->core_names[i],
			      isfinite(profile->cores[i]) ? share : "-");
	}
	text_wrap(strbuf_text(&text), 0, width, "", "", out);
	strbuf_putc(out, '\n');
	strbuf_release(&text);
}

static void one_profile(const struct profile *profile, size_t top, bool colour, int width,
			struct strbuf *out)
{
	if (profile->has_layers) {
		say(width, out, "%s %s: layers, per step", profile->cell->cell.framework,
		    profile->version);
		layers_table(profile, top, colour, width, out);
	} else {
		say(width, out, "%s %s: no times per layer from this framework%s%s",
		    profile->cell->cell.framework, profile->version,
		    profile->no_layers[0] ? ": " : "", profile->no_layers);
		strbuf_putc(out, '\n');
	}
	if (profile->has_lines)
		lines_text(profile, top, colour, width, out);
	cores_text(profile, width, out);
}

void profile_text(const struct profile *profiles, size_t count, size_t top, bool colour, int width,
		  struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	if (!count)
		return;
	summary_comparison_title(&profiles[0].cell->cell, title, sizeof title);
	text_wrap(title, 0, width, colour ? TEXT_BOLD : "", colour ? TEXT_PLAIN : "", out);
	text_wrap(profile_caution, 0, width, "", "", out);
	strbuf_putc(out, '\n');
	phases_table(profiles, count, colour, width, out);
	for (size_t i = 0; i < count; i++) {
		if (profiles[i].status == CELL_OK) {
			one_profile(&profiles[i], top, colour, width, out);
			continue;
		}
		say(width, out, "%s: %s: %s", profiles[i].cell->cell.framework,
		    cell_status_name(profiles[i].status), profiles[i].reason);
		strbuf_putc(out, '\n');
	}
}
