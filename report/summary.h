/* A stored run turned into rows: one per cell, with estimate, rate, overhead over the floor. */
#ifndef PRONY_REPORT_SUMMARY_H
#define PRONY_REPORT_SUMMARY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "report/replicates.h"
#include "report/table.h"
#include "samples/disturbance.h"
#include "stats/components.h"
#include "stats/diagnoses.h"
#include "stats/estimate.h"
#include "stats/order.h"
#include "store/store.h"

/* What a step costs, and its share of what the machine can do; NaN where it is not known. Medians
 * over processes. */
struct summary_costs {
	double joules_per_step;				      /* of the processor packages */
	double memory_joules_per_step, board_joules_per_step; /* the board contains the packages */
	double watts;					      /* of the packages, in the windows */
	double peak_flops, peak_share; /* of as many cores, in FLOP/s (store/machine_figures.h) */
};

/* What the machine did to processes of a cell, or of all cells; kept here, because of large runs
 * few cells keep their processes. */
struct disturbances {
	size_t all, disturbed; /* processes, and those of them that were disturbed by anything */
	unsigned causes;       /* bits (samples/disturbance.h) */
	double most[DISTURBANCE_CAUSES]; /* the largest figure of each cause; NaN */
};

#define SUMMARY_LATENCIES 3

struct summary_row {
	const struct stored_cell *cell; /* borrowed from the run */
	struct estimate
		step; /* ns per step over replicates_of; n = 0 without replicates_have_figures */
	size_t processes, processes_disturbed; /* with a step time; of all, disturbed by anything */
	struct estimate undisturbed;	       /* the same of step_undisturbed_ns; n = 0 without */
	double gap, gap_low, gap_high; /* step / undisturbed - 1 of the same processes, 95 %; NaN */
	struct diagnoses diagnoses; /* over replicates_of; of blocks where intervals were loaded */
	struct components components; /* of the same */
	/* p50, p90, p99 of single steps, ns; n = 0 unless each was waited for (report/latency.h) */
	struct estimate latency[SUMMARY_LATENCIES];
	struct contrast floor;		   /* step / native's step of the same work; NaNs without */
	enum order floor_order;		   /* to native; ORDER_UNKNOWN without */
	struct contrast floor_undisturbed; /* undisturbed step / native's; NaNs without */
	enum order undisturbed_order;	   /* to native by that; ORDER_UNKNOWN without */
	double to_first_step_ns;	   /* median over processes; NaN without */
	double rss_peak_bytes;		   /* median over processes; NaN without */
	double cores;			   /* processor time / time; median over processes; NaN */
	double flops_per_step;		   /* 2 x MACs x (3 when training); NaN without */
	double tokens;			   /* of a sample; NaN of what is no sequence */
	struct summary_costs costs;
	struct disturbances disturbances;
	size_t comparison; /* number of its comparison, from 0 */
	bool disturbed;	   /* the machine did other things in what counts of it, or of its floor */
	bool unsettled;	   /* because of that its order to another one is not known */
	bool comparable;   /* it is ok, its gate passed, and it has a step time */
	int rank; /* 1 = fastest of its comparison; 0 = none: it is not comparable, or its order to
		     another one is not known */
	int rank_low, rank_high;  /* the ranks that are possible; 0 when it is not comparable */
	bool tied;		  /* others have this rank: they cannot be told apart */
	size_t processes_to_rank; /* of each contender, that would settle the order; 0: unknown, or
				     nothing to settle */
	bool folded;		  /* left out of tables: summary_absent names its framework */
};

struct summary {
	struct arena arena;
	const struct stored_run *run;
	json_t *environment;	  /* the run's machine record; NULL where it is none */
	struct summary_row *rows; /* as rendered: comparison by comparison, each in order of rank */
	size_t count, comparison_count;
	size_t *first; /* row of each comparison, and the number of rows */
	bool full; /* the text has a table for each comparison also of a sweep, all diagnoses and
		      splits */
};

/* The record of a run's machine; NULL where it is none. New reference. */
json_t *run_environment(const struct stored_run *run);

void summary_init(struct summary *summary, const struct stored_run *run);
void summary_release(struct summary *summary);

/* What all rows of a comparison have in common: "lenet, mnist-sample, train with sgd, batch 64,
 * cpu, fp32". */
void summary_comparison_title(const struct cell *cell, char *out, size_t out_bytes);

/* The key of a cell's comparison, which is made of all axes but the framework. Returns its length
 * in bytes. */
#define SUMMARY_KEY_BYTES (AXIS_COUNT * (CELL_WORD_BYTES + 1))
size_t summary_comparison_key(const struct cell *cell, char key[SUMMARY_KEY_BYTES]);

/* Version that the framework gave; "" when it never said. Borrowed. */
const char *summary_version(const struct summary_row *row);

/* "ok", "ok (not-steady)", "unsupported". Flags that the whole run carries (screening of a quick
 * run) are left out. */
void summary_status_text(const struct summary *summary, const struct summary_row *row, char *out,
			 size_t out_bytes);

/* "3", "1=" (shared), "1-2" (its order to another one is not known), "-". */
void summary_rank_text(const struct summary_row *row, char *out, size_t out_bytes);

/* Whether the row is proved faster than native: the interval of the ratio lies below 1, is at most
 * ORDER_WIDTH_MAX wide, and neither was disturbed (threads that wait for each other lose more to
 * other programs). */
bool summary_breaks_floor(const struct summary_row *row);

/* Adds "faster than native: mxnet (0.87x, 95 % interval 0.85x to 0.89x)", no line feed,
 * where a row of the comparison does; else nothing, and false. */
bool summary_floor_broken(const struct summary *summary, size_t comparison, struct strbuf *out);

/* What the signs mean that occur in the tables. */
void summary_legend(const struct summary *summary, struct strbuf *out);

/* Adds which contenders of the comparison have no rank, and what it would take, without a line
 * feed; false, and nothing, when all have one. */
bool summary_undecided(const struct summary *summary, size_t comparison, struct strbuf *out);

/* The same over several comparisons, of a sweep. */
bool summary_undecided_among(const struct summary *summary, const size_t *comparisons, size_t count,
			     struct strbuf *out);

/* Adds which frameworks have typical steps far above their undisturbed steps, and whether the
 * machine or the framework causes it. False, and nothing added, where none has. */
bool summary_gaps(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds the time that steps lose to waiting for batches and copying them, compared with resident and
 * synthetic batches and with loading alone. False where no batches are loaded. */
bool summary_input(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks compare differently with native by undisturbed steps than by typical ones.
 * False, and nothing added, where none does. */
bool summary_disagreement(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks did not run as asked: other threads, fewer cores, another precision. False,
 * and nothing added, where all did. */
bool summary_effective(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks had too few steps in a window for a percentile. False, and nothing added,
 * where all have enough or steps are not timed one by one. */
bool summary_short_windows(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which cells of a comparison have a diagnosis, what it means and what helps, in at most 100
 * characters without a line feed; false where no cell has it. */
bool summary_diagnosis(const struct summary *summary, size_t comparison, enum diagnosis_id id,
		       struct strbuf *out);

/* Adds how each contender's time would be split best between processes and windows, where the text
 * is full and that is known; no line feed. */
bool summary_splits(const struct summary *summary, size_t comparison, struct strbuf *out);

/* The lines that may stand under the table of a comparison. */
typedef bool summary_verdict(const struct summary *summary, size_t comparison, struct strbuf *out);
extern summary_verdict *const summary_verdicts[];
extern const size_t summary_verdict_count;

/* Whether it was timed with nothing to prove: batches were loaded, and nothing computed. */
bool summary_only_loads(const struct summary_row *row);

/* Why a row is not comparable; "" when it is. Borrowed. */
const char *summary_reason(const struct summary_row *row);

/* The parity line, without a line feed. */
void summary_parity(const struct summary *summary, struct strbuf *out);

/* Adds what the record of a machine says would spoil the figures, with or without remedies. False,
 * and nothing added, where there is nothing. */
bool conditions_found(const json_t *record, bool remedies, struct strbuf *out);

/* The same for the run's machine, with remedies. */
bool summary_findings(const struct summary *summary, struct strbuf *out);

/* What stands under the tables, each without a line feed: which frameworks of the run are not on
 * the machine and have no rows, that the machine was busy, and variables of the environment that
 * change how fast a framework is. False, and nothing added, when there is nothing to say. */
bool summary_absent(const struct summary *summary, struct strbuf *out);
bool summary_disturbance(const struct summary *summary, struct strbuf *out);
bool summary_settings(const struct summary *summary, struct strbuf *out);

/* One line that names the run: number, uid, suite, when, where, effort. */
void summary_heading(const struct summary *summary, struct strbuf *out);

/* The table of one comparison, with the figures of these bits (SHOW_ of report/figures.h). */
struct table *summary_table(const struct summary *summary, size_t comparison, unsigned shown);

/* One that stands under it: SHOW_LATENCY or SHOW_DETAILS. NULL where nothing of it is known. The
 * caller frees. */
struct table *summary_more(const struct summary *summary, size_t comparison, unsigned shown);

/* The output of `run` and `show`: a table for each comparison, or for each sweep, lines on each of
 * them, the parity line, and lines on the machine. */
void summary_render(const struct summary *summary, bool colour, int width, struct strbuf *out);

/* {"run": {...}, "cells": [...]}: documented in docs/exports.md; new reference. */
json_t *summary_to_json(const struct summary *summary);
json_t *summary_run_to_json(const struct summary *summary);
/* "a,b" as an array of strings; empty for NULL and "". New reference. */
json_t *words_to_json(const char *words);
json_t *summary_cell_to_json(const struct summary_row *row);
/* Every field of PROCESS_FIELDS. */
json_t *summary_process_to_json(const struct process_record *record);

/* "1.234 ms", "12.34 us"; never wider than 10. report/format.h has more. */
void format_duration(double ns, char *out, size_t out_bytes);
void format_bytes(double bytes, char *out, size_t out_bytes);
void format_rate(double per_second, char *out, size_t out_bytes);

#endif
