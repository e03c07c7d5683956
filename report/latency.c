/* Computes percentiles of single steps. */
#include "report/latency.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "report/format.h"

/* A window needs at least this many steps above a percentile; with fewer, the percentile depends on
 * one or two steps. */
#define BEYOND_MIN 10

static const struct {
	const char *name;
	int64_t one_in; /* one step in this many is slower */
	size_t offset;	/* offset of a double in struct process_record */
} percentiles[SUMMARY_LATENCIES] = {
	{"p50", 2, offsetof(struct process_record, step_median_ns)},
	{"p90", 10, offsetof(struct process_record, step_p90_ns)},
	{"p99", 100, offsetof(struct process_record, step_p99_ns)},
};

/* Returns NaN if the window is too short for the percentile, or it was not stored. */
static double percentile_in(const struct process_record *record, int which)
{
	double value =
		*(const double *)(const void *)((const char *)record + percentiles[which].offset);
	bool enough =
		record->block_steps == 1 && record->steps >= BEYOND_MIN * percentiles[which].one_in;
	return enough && value > 0 ? value : NAN;
}

void latency_fill(struct arena *arena, const struct run_meta *meta, const struct stored_cell *cell,
		  const struct replicates *replicates, struct summary_row *row)
{
	size_t n = cell->cell.sync == SYNC_STEP ? replicates->means.count : 0;
	double *values = arena_array(arena, n + 1, sizeof *values);
	for (int which = 0; which < SUMMARY_LATENCIES; which++) {
		bool all = true;
		for (size_t i = 0; i < n; i++) {
			values[i] = percentile_in(replicates->records[i], which);
			all &= isfinite(values[i]);
		}
		/*
		 * If only some processes have the percentile, it would be that of the faster ones.
		 */
		replicates_estimate(meta, values, all ? n : 0, &row->latency[which]);
	}
}

bool summary_short_windows(const struct summary *summary, size_t comparison, struct strbuf *out)
{
	bool said = false;
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		int known = 0;
		while (known < SUMMARY_LATENCIES && row->latency[known].n > 0)
			known++;
		if (row->cell->cell.sync != SYNC_STEP || row->step.n == 0 ||
		    known == SUMMARY_LATENCIES)
			continue;
		strbuf_printf(out, "%sno %s for %s", said ? ", " : "", percentiles[known].name,
			      row->cell->cell.framework);
		said = true;
	}
	for (int which = 0; which < SUMMARY_LATENCIES && said; which++)
		strbuf_printf(out, "%s%s needs %lld",
			      which ? ", " : ": the windows have too few steps (--steps): ",
			      percentiles[which].name,
			      (long long)(BEYOND_MIN * percentiles[which].one_in));
	return said;
}
