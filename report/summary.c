/* Turns a stored run into rows: estimates, comparisons, ranks. */
#include "report/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "report/accuracy.h"
#include "report/break_even.h"
#include "report/costs.h"
#include "report/format.h"
#include "report/latency.h"
#include "report/names.h"
#include "report/ranking.h"
#include "report/summary_internal.h"

bool summary_is_global(const struct stored_cell *cell)
{
	return !strcmp(json_string_or(cell->evidence, "batch_statistics", ""), "global");
}

/* The work of one sample, for each network on each data set. */
struct work {
	struct names names; /* keys of network_key */
	struct sample {
		double macs; /* multiply-accumulates of the forward pass */
		double tokens;
		double weights_read, caches_read; /* elements, of a decode step */
	} * samples;				  /* by number of the key */
};

static const struct sample unknown = {NAN, NAN, NAN, NAN};

static size_t network_key(const struct cell *cell, char key[3 * CELL_WORD_BYTES])
{
	return (size_t)snprintf(key, 3 * CELL_WORD_BYTES, "%s\n%s\n%" PRId64 "%s", cell->network,
				cell->dataset, cell->sequence,
				stage_has_cache(cell->stage) ? stage_name(cell->stage) : "");
}

/* Takes the counts from the first gates of the run that have them: a framework that cannot count
 * does the same work as one that can. */
static void work_init(struct work *work, const struct stored_run *run)
{
	char key[3 * CELL_WORD_BYTES];
	*work = (struct work){.samples =
				      memory_alloc((run->cell_count + 1) * sizeof *work->samples)};
	for (size_t i = 0; i < run->cell_count; i++) {
		const struct stored_cell *cell = &run->cells[i];
		double macs = json_real_or(cell->evidence, "macs", NAN);
		double batch = json_real_or(cell->evidence, "gate_batch", NAN);
		if (!summary_gate_passed(cell))
			continue;
		size_t known = work->names.count;
		size_t number = names_add(&work->names, key, network_key(&cell->cell, key));
		struct sample *sample = &work->samples[number];
		if (number == known)
			*sample = unknown;
		/* A gate on shorter sequences counts other multiplications. */
		if (isnan(sample->macs) && macs > 0 && batch > 0)
			sample->macs = json_real_or(cell->evidence, "sample_macs", macs / batch);
		if (isnan(sample->tokens))
			sample->tokens = json_real_or(cell->evidence, "tokens", NAN);
		if (isnan(sample->weights_read)) {
			sample->weights_read = json_real_or(cell->evidence, "weights_read", NAN);
			sample->caches_read = json_real_or(cell->evidence, "caches_read", NAN);
		}
	}
}

static void work_release(struct work *work)
{
	names_release(&work->names);
	free(work->samples);
}

/* Returns NaNs if no gate has counted it. */
static struct sample sample_of(const struct work *work, const struct cell *cell)
{
	char key[3 * CELL_WORD_BYTES];
	size_t number = names_find(&work->names, key, network_key(cell, key));
	return number == NAMES_NONE ? unknown : work->samples[number];
}

/* The backward pass costs about twice the forward pass: it multiplies for the inputs and for the
 * weights. */
static double flops_per_step(double macs, const struct cell *cell)
{
	double passes = cell->stage == STAGE_FORWARD || stage_has_cache(cell->stage) ? 1
			: cell->stage == STAGE_LOAD				     ? NAN
										     : 3;
	return 2 * macs * (double)cell->batch * passes;
}

static double read_per_step(const struct sample *sample, const struct cell *cell)
{
	bool half = cell->precision == PRECISION_BF16 || cell->precision == PRECISION_FP16;

	return (half ? 2 : 4) * (sample->weights_read + sample->caches_read * (double)cell->batch);
}

/* Fills the ratio of step to undisturbed step, process by process. */
static void fill_undisturbed(struct arena *arena, const struct run_meta *meta,
			     const struct replicates *replicates, struct summary_row *row)
{
	const struct round_means *undisturbed = &replicates->undisturbed;
	double *typical = arena_array(arena, undisturbed->count + 1, sizeof *typical);
	size_t count = 0;
	struct contrast gap;
	for (size_t i = 0; i < replicates->means.count; i++)
		if (replicates_has_undisturbed(replicates->records[i]))
			typical[count++] = replicates->means.means[i];
	replicates_estimate(meta, undisturbed->means, count, &row->undisturbed);
	contrast_paired(undisturbed->means, typical, count, &gap);
	row->gap = gap.ratio - 1;
	row->gap_low = gap.low - 1;
	row->gap_high = gap.high - 1;
}

static void drop_interval(struct estimate *estimate)
{
	estimate->low = estimate->high = estimate->half_width = NAN;
	estimate->needed = 0;
}

/* Leaves the figures of a cell that has too few processes without intervals. */
static void drop_intervals(struct summary_row *row)
{
	drop_interval(&row->step);
	drop_interval(&row->undisturbed);
	for (int i = 0; i < SUMMARY_LATENCIES; i++)
		drop_interval(&row->latency[i]);
	drop_interval(&row->costs.joules_per_step);
	drop_interval(&row->costs.watts);
	drop_interval(&row->costs.gpu_joules_per_step);
	row->gap_low = row->gap_high = NAN;
}

/* Returns the record of the machine of a part, which may be another than the run's. New reference.
 */
static json_t *environment_of(const struct summary *summary, int64_t part)
{
	const struct run_meta *meta = &summary->run->meta;
	for (size_t i = 0; i < meta->part_count; i++)
		if (meta->parts[i].part == part &&
		    strcmp(meta->parts[i].environment_hash, meta->environment_hash) != 0)
			return machine_parse(meta->parts[i].environment);
	return json_incref(summary->environment);
}

static void fill_row(struct summary *summary, const struct work *work,
		     const struct stored_cell *cell, const struct replicates *replicates,
		     struct summary_row *row)
{
	const struct contrast none = {.ratio = NAN, .low = NAN, .high = NAN};
	struct sample sample = sample_of(work, &cell->cell);
	row->cell = cell;
	replicates_estimate(&summary->run->meta, replicates->means.means, replicates->means.count,
			    &row->step);
	row->processes = replicates->all;
	row->processes_disturbed = replicates->flagged;
	row->disturbances = summary_disturbances(cell);
	fill_undisturbed(&summary->arena, &summary->run->meta, replicates, row);
	latency_fill(&summary->arena, &summary->run->meta, cell, replicates, row);
	summary_diagnose(&summary->arena, replicates, row);
	row->tokens = sample.tokens;
	row->flops_per_step = flops_per_step(sample.macs, &cell->cell);
	row->read_per_step = read_per_step(&sample, &cell->cell);
	row->to_first_step_ns = replicates_median_interval(cell, "to_first_step_ns");
	row->rss_peak_bytes = replicates_median(cell, "rss_peak_bytes");
	row->cores = replicates_median(cell, "window_cpu_cores");
	row->floor_order = row->undisturbed_order = row->lead_order = ORDER_UNKNOWN;
	row->floor = row->floor_undisturbed = row->lead = none;
	row->efficiency[SCALING_STRONG] = row->efficiency[SCALING_WEAK] = none;
	row->needed = replicates_needed(&summary->run->meta);
	bool suffice = replicates_suffice(&summary->run->meta, cell, row->processes);
	row->comparable = suffice && summary_gate_passed(cell) && row->step.n > 0;
	json_t *machine = environment_of(summary, cell->part);
	costs_fill(machine, &summary->run->meta, replicates, row);
	json_decref(machine);
	if (!suffice)
		drop_intervals(row);
}

struct sorted {
	struct summary_row row;
	struct replicates replicates;
	size_t place; /* original order */
};

/* Orders comparable rows by step time, then the others in their original order. Ranks may change
 * the order later. */
static int compare_rows(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	bool comparable = x->row.comparable;
	if (comparable != y->row.comparable)
		return comparable ? -1 : 1;
	if (comparable && x->row.step.center != y->row.step.center)
		return x->row.step.center < y->row.step.center ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* Adds the rows of a comparison: the run's cells with these numbers. */
static void add_comparison(struct summary *summary, const struct work *work, size_t comparison,
			   const size_t *cells, size_t count)
{
	struct sorted *rows = memory_alloc(count * sizeof *rows);
	for (size_t i = 0; i < count; i++) {
		const struct stored_cell *cell = &summary->run->cells[cells[i]];
		rows[i] = (struct sorted){.place = i};
		rows[i].replicates = replicates_of(&summary->arena, cell);
		fill_row(summary, work, cell, &rows[i].replicates, &rows[i].row);
		rows[i].row.comparison = comparison;
	}
	qsort(rows, count, sizeof *rows, compare_rows);
	struct replicates *replicates = memory_alloc(count * sizeof *replicates);
	struct summary_row *first = &summary->rows[summary->count];
	for (size_t i = 0; i < count; i++) {
		replicates[i] = rows[i].replicates;
		summary->rows[summary->count++] = rows[i].row;
	}
	accuracy_fill(first, count);
	break_even_fill(&summary->arena, first, replicates, count);
	ranking_fill(first, replicates, count);
	free(replicates);
	free(rows);
}

size_t summary_cell_key(const struct stored_cell *cell, char key[SUMMARY_KEY_BYTES])
{
	size_t length = summary_comparison_key(&cell->cell, key);
	if (summary_is_global(cell) && length + 1 < SUMMARY_KEY_BYTES)
		key[length++] = 'g';
	return length;
}

/*
 * Returns the numbers of the run's cells, grouped by comparison: a counting sort. The caller frees.
 */
static size_t *gather_comparisons(struct summary *summary)
{
	const struct stored_run *run = summary->run;
	size_t *of_cell = memory_alloc((run->cell_count + 1) * sizeof *of_cell);
	size_t *order = memory_alloc((run->cell_count + 1) * sizeof *order);
	struct names names = {.count = 0};
	char key[SUMMARY_KEY_BYTES];
	for (size_t i = 0; i < run->cell_count; i++)
		of_cell[i] = names_add(&names, key, summary_cell_key(&run->cells[i], key));
	size_t count = names.count;
	size_t *next = memory_alloc((count + 1) * sizeof *next);
	summary->comparison_count = count;
	summary->first = arena_array(&summary->arena, count + 1, sizeof *summary->first);
	for (size_t i = 0; i < run->cell_count; i++)
		summary->first[of_cell[i] + 1]++;
	for (size_t c = 0; c < count; c++) {
		summary->first[c + 1] += summary->first[c];
		next[c] = summary->first[c];
	}
	for (size_t i = 0; i < run->cell_count; i++)
		order[next[of_cell[i]]++] = i;
	names_release(&names);
	free(next);
	free(of_cell);
	return order;
}

json_t *run_environment(const struct stored_run *run)
{
	return machine_parse(run->meta.environment);
}

json_t *machine_parse(const char *text)
{
	struct error ignored = ERROR_INIT;
	json_t *record = NULL;
	if (!text || json_parse(text, strlen(text), "environment", &record, &ignored) != PRONY_OK)
		return NULL;
	return record;
}

void summary_init(struct summary *summary, const struct stored_run *run)
{
	struct work work;
	*summary = (struct summary){.run = run, .environment = run_environment(run)};
	arena_init(&summary->arena, 0);
	summary->rows = arena_array(&summary->arena, run->cell_count + 1, sizeof *summary->rows);
	size_t *order = gather_comparisons(summary);
	work_init(&work, run);
	for (size_t c = 0; c < summary->comparison_count; c++)
		add_comparison(summary, &work, c, order + summary->first[c],
			       summary->first[c + 1] - summary->first[c]);
	work_release(&work);
	free(order);
	scaling_fill(summary);
	summary_fold(summary);
}

void summary_release(struct summary *summary)
{
	if (!summary)
		return;
	json_decref(summary->environment);
	arena_release(&summary->arena);
}

const char *summary_version(const struct summary_row *row)
{
	return json_string_or(row->cell->framework, "version", "");
}

bool summary_only_loads(const struct summary_row *row)
{
	return row->cell->status == CELL_OK && row->cell->cell.stage == STAGE_LOAD &&
	       row->step.n > 0;
}

const char *summary_reason(const struct summary_row *row)
{
	const struct stored_cell *cell = row->cell;
	if (row->comparable || (cell->status == CELL_OK && cell->flags & CELL_FLAG_GATE_ONLY))
		return "";
	if (cell->reason && *cell->reason)
		return cell->reason;
	if (cell->status == CELL_PENDING)
		return "not finished; to continue, run the same command with --resume";
	if (cell->status == CELL_OK && cell->cell.stage == STAGE_LOAD)
		return "not ranked: it only loads batches";
	if (cell->status == CELL_OK && !cell->evidence)
		return "not ranked: the parity gate did not run";
	if (cell->status == CELL_OK && !summary_gate_passed(cell))
		return "not ranked: it did not pass the parity gate";
	if (cell->status == CELL_OK)
		return "not ranked: no process has a step time";
	return "no reason was stored";
}

const char *summary_note(const struct summary_row *row)
{
	const char *reason = row->cell->reason;
	return row->cell->status == CELL_PENDING ? (reason ? reason : "") : summary_reason(row);
}
