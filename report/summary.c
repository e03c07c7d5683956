#include "report/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "report/format.h"
#include "stats/effort.h"

/* The positive, finite step means of a cell's ok processes. */
struct means {
	double *values;
	size_t count;
};

static bool same(const char *a, const char *b)
{
	return !strcmp(a, b);
}

bool summary_same_comparison(const struct cell *a, const struct cell *b)
{
	for (int id = 0; id < AXIS_COUNT; id++)
		if (id != AXIS_FRAMEWORK && !axis_equal(&axes[id], a, b))
			return false;
	return true;
}

static bool gate_passed(const struct stored_cell *cell)
{
	return cell->evidence && cell->gate == CELL_OK;
}

static bool is_ok(const struct process_record *record)
{
	return same(record->status, cell_status_name(CELL_OK));
}

bool summary_has_figures(const struct stored_cell *cell)
{
	bool refused = cell->evidence && cell->gate != CELL_OK;
	return !refused && (cell->status == CELL_OK || cell->status == CELL_PENDING);
}

static struct means gather_means(struct arena *arena, const struct stored_cell *cell)
{
	struct means means = {.values =
				      arena_array(arena, cell->process_count + 1, sizeof(double))};
	for (size_t i = 0; summary_has_figures(cell) && i < cell->process_count; i++) {
		double mean = cell->processes[i].step_mean_ns;
		if (is_ok(&cell->processes[i]) && isfinite(mean) && mean > 0)
			means.values[means.count++] = mean;
	}
	return means;
}

static double target_half_width(const char *effort)
{
	for (size_t i = 0; i < sizeof effort_table / sizeof *effort_table; i++)
		if (same(effort_table[i].name, effort))
			return effort_table[i].stop_half_width;
	return 0;
}

/* Median over ok processes of an integer field; NaN when none measured it. */
static double median_field(struct arena *arena, const struct stored_cell *cell,
			   int64_t (*field)(const struct process_record *record))
{
	double *values = arena_array(arena, cell->process_count + 1, sizeof *values);
	size_t count = 0;
	for (size_t i = 0; summary_has_figures(cell) && i < cell->process_count; i++) {
		int64_t value = field(&cell->processes[i]);
		if (is_ok(&cell->processes[i]) && value != RECORD_NONE)
			values[count++] = (double)value;
	}
	return median_of(values, count);
}

static int64_t field_to_first_step(const struct process_record *record)
{
	return record->to_first_step_ns;
}

static int64_t field_rss_peak(const struct process_record *record)
{
	return record->rss_peak_bytes;
}

/* Multiply-accumulates of one sample, forward: from any gate of the run that counted this network;
 * a framework that cannot count them does the same work as the one that can. NaN when none did. */
static double macs_per_sample(const struct stored_run *run, const struct cell *cell)
{
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *other = &run->cells[i];
		if (!gate_passed(other) || !same(other->cell.network, cell->network) ||
		    !same(other->cell.dataset, cell->dataset))
			continue;
		double macs = json_real_or(other->evidence, "macs", NAN);
		double batch = json_real_or(other->evidence, "gate_batch", NAN);
		if (macs > 0 && batch > 0)
			return macs / batch;
	}
	return NAN;
}

/* The backward pass costs about twice the forward one: it multiplies for the inputs and the
 * weights. */
static double flops_per_step(const struct stored_run *run, const struct cell *cell)
{
	double passes = cell->stage == STAGE_FORWARD ? 1 : cell->stage == STAGE_LOAD ? NAN : 3;
	return 2 * macs_per_sample(run, cell) * (double)cell->batch * passes;
}

static void fill_row(struct summary *summary, const struct stored_cell *cell,
		     const struct means *means, struct summary_row *row)
{
	const double second_ns = 1e9;
	row->cell = cell;
	estimate_compute(means->values, means->count, target_half_width(summary->run->meta.effort),
			 &row->step);
	row->items_per_second = (double)cell->cell.batch / row->step.center * second_ns;
	row->flops = flops_per_step(summary->run, &cell->cell) / row->step.center * second_ns;
	row->to_first_step_ns = median_field(&summary->arena, cell, field_to_first_step);
	row->rss_peak_bytes = median_field(&summary->arena, cell, field_rss_peak);
	row->floor_ratio = row->floor_low = row->floor_high = NAN;
}

static bool rankable(const struct summary_row *row)
{
	return row->cell->status == CELL_OK && gate_passed(row->cell) && row->step.n > 0;
}

/* Rankable rows by step time, then the others as they came. */
static bool stands_before(const struct summary_row *a, const struct summary_row *b)
{
	if (rankable(a) != rankable(b))
		return rankable(a);
	return rankable(a) && a->step.center < b->step.center;
}

struct sorted {
	struct summary_row row;
	struct means means;
};

/* Insertion, because rows that are equal keep their order and comparisons are small. */
static void sort_rows(struct sorted *rows, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct sorted row = rows[i];
		size_t at = i;
		for (; at > 0 && stands_before(&row.row, &rows[at - 1].row); at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
}

/* The native executor as it is used when nothing is said: the floor of the comparison. */
static const struct sorted *find_floor(const struct sorted *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rankable(&rows[i].row) && same(rows[i].row.cell->cell.framework, "native"))
			return &rows[i];
	return NULL;
}

static void rank_rows(struct sorted *rows, size_t count)
{
	const struct sorted *floor = find_floor(rows, count);
	size_t first = 0; /* of those that share a rank */
	for (size_t i = 0; i < count && rankable(&rows[i].row); i++) {
		struct summary_row *row = &rows[i].row;
		struct ratio ratio;
		if (floor) {
			ratio_welch(rows[i].means.values, rows[i].means.count, floor->means.values,
				    floor->means.count, &ratio);
			row->floor_ratio = ratio.center;
			row->floor_low = ratio.low;
			row->floor_high = ratio.high;
		}
		row->disturbed = (row->cell->flags | (floor ? floor->row.cell->flags : 0)) &
				 CELL_FLAG_DISTURBED;
		row->rank = (int)i + 1;
		if (i == 0)
			continue;
		ratio_welch(rows[i].means.values, rows[i].means.count, rows[first].means.values,
			    rows[first].means.count, &ratio);
		if (ratio.low <= 1 && ratio.high >= 1) {
			row->rank = rows[first].row.rank;
			row->tied = rows[first].row.tied = true;
		} else {
			first = i;
		}
	}
}

/* Moves the rows of the next comparison, that of run cell `first`, into the summary. */
static void add_comparison(struct summary *summary, size_t first, bool *taken)
{
	const struct stored_run *run = summary->run;
	struct sorted *rows = arena_array(&summary->arena, run->cell_count, sizeof *rows);
	size_t count = 0;
	for (size_t i = first; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		if (taken[i] || !summary_same_comparison(&cell->cell, &run->cells[first].cell))
			continue;
		taken[i] = true;
		rows[count].means = gather_means(&summary->arena, cell);
		fill_row(summary, cell, &rows[count].means, &rows[count].row);
		rows[count].row.comparison = summary->comparison_count;
		count++;
	}
	sort_rows(rows, count);
	rank_rows(rows, count);
	for (size_t i = 0; i < count; i++)
		summary->rows[summary->count++] = rows[i].row;
	summary->comparison_count++;
}

void summary_init(struct summary *summary, const struct stored_run *run)
{
	*summary = (struct summary){.run = run};
	arena_init(&summary->arena, 0);
	summary->rows = arena_array(&summary->arena, run->cell_count + 1, sizeof *summary->rows);
	bool *taken = arena_array(&summary->arena, run->cell_count + 1, sizeof *taken);
	for (size_t i = 0; i < run->cell_count; i++)
		if (!taken[i])
			add_comparison(summary, i, taken);
}

void summary_release(struct summary *summary)
{
	if (summary)
		arena_release(&summary->arena);
}

const char *summary_version(const struct summary_row *row)
{
	return json_string_or(row->cell->framework, "version", "");
}

void summary_floor_text(const struct summary_row *row, char *out, size_t out_bytes)
{
	char ratio[FORMAT_BYTES];
	format_ratio(row->floor_ratio, ratio, sizeof ratio);
	bool alike = row->floor_low <= 1 && row->floor_high >= 1;
	/* Native's own ratio is 1 by definition, not by measurement. */
	bool itself = !strcmp(row->cell->cell.framework, "native");
	snprintf(out, out_bytes, "%s%s", alike && !itself ? "~" : "", ratio);
}

bool summary_breaks_floor(const struct summary_row *row)
{
	return row->rank > 0 && row->floor_high < 1 && !row->disturbed;
}

bool summary_floor_broken(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool broken = false;
	for (size_t i = 0; i < summary->count; i++) {
		const struct summary_row *row = &summary->rows[i];
		char ratio[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
		if (row->comparison != comparison || !summary_breaks_floor(row))
			continue;
		format_ratio(row->floor_ratio, ratio, sizeof ratio);
		format_ratio(row->floor_low, low, sizeof low);
		format_ratio(row->floor_high, high, sizeof high);
		strbuf_printf(out, "%s%s (%s, 95 %% interval %s to %s)",
			      broken ? ", " : "the floor is broken by ", row->cell->cell.framework,
			      ratio, low, high);
		broken = true;
	}
	return broken;
}

const char *summary_reason(const struct summary_row *row)
{
	const struct stored_cell *cell = row->cell;
	if (row->rank > 0 || (cell->status == CELL_OK && cell->flags & CELL_FLAG_GATE_ONLY))
		return "";
	if (cell->reason && *cell->reason)
		return cell->reason;
	if (cell->status == CELL_PENDING)
		return "not finished: the same command with --resume goes on";
	if (cell->status == CELL_OK && !cell->evidence)
		return "not ranked: the parity gate did not run";
	if (cell->status == CELL_OK && !gate_passed(cell))
		return "not ranked: it did not pass the parity gate";
	if (cell->status == CELL_OK)
		return "not ranked: no process delivered a step time";
	return "no reason was stored";
}
