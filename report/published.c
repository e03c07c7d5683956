/* Reads figures that others published, and prints them beside prony's. */
#include "report/published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "report/figures.h"

#define FILE_NAME "suites/published.tsv"
#define FILE_BYTES_MAX ((size_t)4 << 20)
#define LINES_MAX ((size_t)1 << 16)
#define BATCH_MAX (1 << 24)

/* The columns of the file, in order. */
enum column {
	COLUMN_SUITE,
	COLUMN_SOURCE,
	COLUMN_YEAR,
	COLUMN_HARDWARE,
	COLUMN_FRAMEWORK,
	COLUMN_NETWORK,
	COLUMN_DATASET,
	COLUMN_DEVICE,
	COLUMN_PRECISION,
	COLUMN_BATCH,
	COLUMN_STAGE,
	COLUMN_METRIC,
	COLUMN_VALUE,
	COLUMN_SPREAD,
	COLUMN_COUNT
};
static const char heading[] = "suite\tsource\tyear\thardware\tframework\tnetwork\tdataset\tdevice"
			      "\tprecision\tbatch\tstage\tmetric\tvalue\tspread";

double published_samples_per_second(const struct published_row *row)
{
	double v = row->value, b = (double)row->batch;

#define X(word, rate)                                                                              \
	if (!strcmp(row->metric, word))                                                            \
		return rate;
	PUBLISHED_METRICS(X)
#undef X
	return NAN;
}

static bool is_metric(const char *word)
{
#define X(known, rate)                                                                             \
	if (!strcmp(word, known))                                                                  \
		return true;
	PUBLISHED_METRICS(X)
#undef X
	return false;
}

/* Parses a positive decimal number; an empty text is NaN. */
static bool take_number(const char *text, double *out)
{
	char *end;

	*out = NAN;
	if (!*text)
		return true;
	if (strspn(text, "0123456789.") != strlen(text))
		return false;
	*out = strtod(text, &end);
	return *end == '\0' && isfinite(*out) && *out > 0;
}

/* Returns the error in a line's columns; NULL if there is none. */
static const char *fill_row(char *const columns[COLUMN_COUNT], struct published_row *row)
{
	enum precision precision;
	enum stage stage;
	double batch;

	*row = (struct published_row){.suite = columns[COLUMN_SUITE],
				      .source = columns[COLUMN_SOURCE],
				      .year = columns[COLUMN_YEAR],
				      .hardware = columns[COLUMN_HARDWARE],
				      .framework = columns[COLUMN_FRAMEWORK],
				      .network = columns[COLUMN_NETWORK],
				      .dataset = columns[COLUMN_DATASET],
				      .device = columns[COLUMN_DEVICE],
				      .precision = columns[COLUMN_PRECISION],
				      .stage = columns[COLUMN_STAGE],
				      .metric = columns[COLUMN_METRIC]};
	if (!precision_parse(row->precision, &precision))
		return "precision: needs fp32, tf32, fp16 or bf16";
	if (!stage_parse(row->stage, &stage))
		return "stage: needs forward, forward-backward or train";
	if (!is_metric(row->metric))
		return "metric: needs images_per_second, milliseconds_per_step, seconds_per_step, "
		       "gpu_memory_mib or gpu_power_w";
	if (!take_number(columns[COLUMN_BATCH], &batch) || !(batch <= BATCH_MAX) ||
	    batch != floor(batch))
		return "batch: needs a whole number above 0";
	if (!take_number(columns[COLUMN_VALUE], &row->value))
		return "value: needs a number above 0, or nothing if not available";
	if (!take_number(columns[COLUMN_SPREAD], &row->spread))
		return "spread: needs a number above 0, or nothing";
	row->batch = (int64_t)batch;
	return NULL;
}

/* Splits a line at its tabs; returns the number of columns, at most COLUMN_COUNT + 1. */
static int split(char *line, char *columns[COLUMN_COUNT])
{
	int count = 0;

	for (char *at = line; count <= COLUMN_COUNT; count++) {
		char *tab = strchr(at, '\t');

		if (count < COLUMN_COUNT)
			columns[count] = at;
		if (!tab)
			return count + 1;
		*tab = '\0';
		at = tab + 1;
	}
	return count;
}

static enum prony_status parse(const char *path, char *text, struct published *out,
			       struct error *err)
{
	bool headed = false;
	int number = 0;

	for (char *line = text, *next; line && *line; line = next) {
		char *columns[COLUMN_COUNT], *end = strchr(line, '\n');
		const char *wrong;

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		number++;
		if (*line == '#')
			continue;
		if (!headed && strcmp(line, heading) != 0)
			return error_set(err, PRONY_BAD_INPUT, "%s:%d: needs the heading \"%s\"",
					 path, number, heading);
		if (!headed) {
			headed = true;
			continue;
		}
		if (split(line, columns) != COLUMN_COUNT || out->count == LINES_MAX)
			return error_set(
				err, PRONY_BAD_INPUT,
				"%s:%d: needs %d columns separated by tabs, and at most %zu lines",
				path, number, COLUMN_COUNT, LINES_MAX);
		wrong = fill_row(columns, &out->rows[out->count]);
		if (wrong)
			return error_set(err, PRONY_BAD_INPUT, "%s:%d: %s", path, number, wrong);
		out->count++;
	}
	return PRONY_OK;
}

static size_t count_lines(const char *text)
{
	size_t count = 1;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

enum prony_status published_load(const char *path, struct published *out, struct error *err)
{
	struct published published = {.count = 0};
	char *share = path ? NULL : path_share(), *found = NULL, *text = NULL;
	size_t length;

	if (!path && share)
		path = found = path_join(share, FILE_NAME);
	if (!path || (found && file_bytes(found) == 0)) {
		/* User-defined suites have no published figures. */
		free(found);
		free(share);
		*out = published;
		arena_init(&out->arena, 0);
		return PRONY_OK;
	}
	enum prony_status status = file_read(path, FILE_BYTES_MAX, &text, &length, err);
	arena_init(&published.arena, 0);
	if (status == PRONY_OK) {
		char *copy = arena_strdup(&published.arena, text);

		published.rows =
			arena_array(&published.arena, count_lines(text), sizeof *published.rows);
		status = parse(path, copy, &published, err);
	}
	free(text);
	free(found);
	free(share);
	if (status == PRONY_OK)
		*out = published;
	else
		arena_release(&published.arena);
	return status;
}

void published_release(struct published *published)
{
	arena_release(&published->arena);
	*published = (struct published){.count = 0};
}

/* Figures published for TensorFlow also apply to its Python interface. */
static bool is_of_framework(const char *published, const struct cell *cell)
{
	static const char library[] = "tensorflow", python[] = "tensorflow-python";

	const char *ours = cell->framework;

	if (!strncmp(published, library, sizeof(library) - 1) &&
	    !strncmp(ours, python, sizeof(python) - 1) &&
	    !strcmp(published + sizeof(library) - 1, ours + sizeof(python) - 1))
		return true;
	return !strcmp(published, ours);
}

bool published_matches(const struct published_row *row, const char *suite, const struct cell *cell)
{
	return !strcmp(row->suite, suite) && is_of_framework(row->framework, cell) &&
	       !strcmp(row->network, cell->network) && !strcmp(row->stage, stage_name(cell->stage));
}

/* Whether the row is a speed, or states that the speed was not available. */
static bool is_speed(const struct published_row *row)
{
	struct published_row known = *row;

	known.value = 1;
	return !isnan(published_samples_per_second(&known));
}

static void add_row(struct table *table, const struct summary_row *ours,
		    const struct published_row *theirs)
{
	const struct cell *cell = &ours->cell->cell;
	double rate = published_samples_per_second(theirs);
	char text[CELL_KEY_BYTES];

	table_row(table);
	snprintf(text, sizeof text, "%s %s b%lld", cell->network, stage_name(cell->stage),
		 (long long)cell->batch);
	table_cell(table, text, NULL);
	table_cell(table, cell->framework, NULL);
	figure_text(FIGURE_SAMPLES, ours, text);
	table_cell(table, text, NULL);
	/* As printed in the source, if it was a speed. */
	if (rate == theirs->value)
		snprintf(text, sizeof text, "%.10g /s", rate);
	else
		format_rate(rate, NAN, text, sizeof text);
	table_cell(table, isnan(rate) ? "not available" : text, NULL);
	snprintf(text, sizeof text, "batch %lld, %s", (long long)theirs->batch, theirs->precision);
	table_cell(table, text, NULL);
	table_cell(table, theirs->year, NULL);
	table_cell(table, theirs->hardware, NULL);
}

/* Adds the published rows for one of prony's rows: those of the same kind of device, or if there
 * are none, of any device. */
static size_t add_rows(struct table *table, const struct published *published, const char *suite,
		       const struct summary_row *ours)
{
	const struct cell *cell = &ours->cell->cell;
	bool same = false;
	size_t count = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < published->count; i++) {
			const struct published_row *row = &published->rows[i];
			bool like = device_is_cpu(row->device) == device_is_cpu(cell->device);

			if (!published_matches(row, suite, cell) || !is_speed(row))
				continue;
			if (pass == 0)
				same |= like;
			else if (like || !same)
				add_row(table, ours, row);
			count += pass == 1 && (like || !same);
		}
	}
	return count;
}

void published_render(const struct published *published, const struct summary *summary, bool colour,
		      int width, struct strbuf *out)
{
	static const struct table_column columns[] = {
		{"cell", "cell", TABLE_LEFT},	      {"framework", "framework", TABLE_LEFT},
		{"here", "here", TABLE_RIGHT},	      {"published", "published", TABLE_RIGHT},
		{"with", "with", TABLE_LEFT},	      {"year", "year", TABLE_RIGHT},
		{"hardware", "hardware", TABLE_LEFT},
	};
	const char *suite = summary->run->meta.suite;
	struct table *table = table_new(columns, sizeof columns / sizeof *columns);
	size_t count = 0;

	for (size_t i = 0; i < summary->count; i++)
		if (summary->rows[i].step.n > 0)
			count += add_rows(table, published, suite, &summary->rows[i]);
	if (count > 0) {
		strbuf_puts(out, "\n"
				 "published figures, from other machines, versions and data: for "
				 "comparison only\n");
		table_render_text(table, colour, width, out);
	}
	table_free(table);
}
