/* A stored run turned into rows: one per cell, with estimate, rate, and ratio to the floor. */
#ifndef PRONY_REPORT_SUMMARY_H
#define PRONY_REPORT_SUMMARY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "report/replicates.h"
#include "report/table.h"
#include "samples/disturbance.h"
#include "stats/break_even.h"
#include "stats/diagnoses.h"
#include "stats/estimate.h"
#include "stats/order.h"
#include "stats/target.h"
#include "store/store.h"

/*
 * The costs of a step, and its share of the machine's peak; NaN if unknown. Medians over processes.
 */
struct summary_costs {
	/* Energy and power of the processor packages, over the processes that count and were alone
	 * on the machine; n = 0 without. The ratio of the energy to native's; NaNs without. */
	struct estimate joules_per_step, watts;
	struct contrast joules_floor;
	double memory_joules_per_step, board_joules_per_step; /* the board includes the packages */
	double peak_flops, peak_share; /* peak of the same number of cores, in FLOP/s
					  (store/machine_figures.h) */
	double bandwidth_share;	       /* read_per_step / step, of the bandwidth of as many cores */
	/* Of the GPUs of a cell: bytes, less those in use before; watts in the windows; share of
	 * them in which the power cap held the clock down; energy of a step over replicates_of, n =
	 * 0 without. */
	double gpu_memory, gpu_watts, gpu_power_held;
	struct estimate gpu_joules_per_step;
	char gpu_grade[2]; /* the worst grade of that energy; "" without */
};

/* Disturbances of the processes of a cell, or of all cells. They are kept here because in large
 * runs only few cells keep their processes. */
struct disturbances {
	size_t all, disturbed; /* number of processes, and of those disturbed by anything */
	unsigned causes;       /* bits (samples/disturbance.h) */
	double most[DISTURBANCE_CAUSES]; /* the largest figure of each cause; NaN if none */
};

#define SUMMARY_LATENCIES 3

/* What several ranks share: the batch of one rank; or each has such a batch. */
enum scaling { SCALING_STRONG, SCALING_WEAK, SCALINGS };

/* Of trainings until a target (--until); seeds 0: it has none. */
struct summary_target {
	const char *what;	      /* "accuracy=0.99"; borrowed from the run */
	size_t seeds, reached;	      /* its trainings, and those that reached it */
	int64_t most;		      /* steps of the longest training */
	struct median_interval steps; /* its own, or those of `against` if `shared` */
	struct target_time time;
	const struct stored_cell *against; /* the row with the most trainings; may be itself */
	struct sameness same;		   /* of `against` and this row; NaNs for itself */
	bool differs;			   /* proved to have another distribution than `against` */
	bool shared;			   /* compared, and not proved to */
};

struct summary_row {
	const struct stored_cell *cell; /* borrowed from the run */
	struct estimate
		step; /* ns per step over replicates_of; n = 0 without replicates_have_figures */
	size_t processes, processes_disturbed; /* processes with a step time; of all processes,
						  those disturbed by anything */
	size_t needed;			       /* replicates_needed */
	struct estimate undisturbed;	       /* the same for step_undisturbed_ns; n = 0 without */
	double gap, gap_low, gap_high;	       /* step / undisturbed - 1 of the same processes, 95 %
						  interval; NaN without */
	struct diagnoses diagnoses;	       /* over replicates_of */
	/* p50, p90, p99 of single steps, ns; n = 0 unless each step was waited for
	 * (report/latency.h) */
	struct estimate latency[SUMMARY_LATENCIES];
	struct contrast floor;	/* step / native's step for the same work; NaNs without */
	enum order floor_order; /* order relative to native; ORDER_UNKNOWN without */
	struct contrast floor_undisturbed; /* undisturbed step / native's; NaNs without */
	enum order undisturbed_order;	   /* order relative to native by that ratio; ORDER_UNKNOWN
					      without */
	struct summary_target target;
	const struct stored_cell *overtakes; /* the cell that starts sooner; NULL without */
	struct break_even break_even;	     /* steps until then; NaNs without */
	/* Of several ranks: T1 / (R TR) with the step T1 of one rank of as many cores and the same
	 * batch (strong), T1 / TR with the batch of a rank (weak), by the rounds of both; NaNs
	 * without such a cell. */
	struct contrast efficiency[SCALINGS];
	struct contrast lead;  /* step / that of the comparison's leader (below); NaNs without */
	enum order lead_order; /* order relative to the leader */
	struct median_interval to_first_step_ns; /* over processes; NaN without */
	double rss_peak_bytes;			 /* median over processes; NaN without */
	double cores;	       /* processor time / time; median over processes; NaN without */
	double read_per_step;  /* bytes of weights and caches, of a decode step; NaN without */
	double flops_per_step; /* 2 x MACs x (3 when training); NaN without */
	double tokens;	       /* tokens of a sample; NaN if it is not a sequence */
	struct summary_costs costs;
	struct disturbances disturbances;
	size_t comparison; /* number of its comparison, from 0 */
	bool disturbed;	   /* processes that count in it, or in its floor, were disturbed */
	/* Why its order relative to another row is unknown: for that reason; the interval of the
	 * ratio contains 1; it excludes 1, but the processes are too few to prove it. */
	bool unsettled, wide, few;
	bool leads; /* the row with the least step among those that none is proved faster than */
	bool comparable; /* replicates_suffice, its gate passed, and it has a step time */
	int rank; /* 1 = fastest of its comparison; 0 = no rank: it is not comparable, or its order
		     relative to another row is unknown */
	int rank_low, rank_high;  /* the possible ranks; 0 if not comparable */
	bool tied;		  /* other rows have this rank: they cannot be distinguished */
	size_t processes_to_rank; /* processes needed of each contender to settle the order; 0:
				     unknown, or nothing to settle */
	bool open;   /* no rank, because other cells of its comparison have too few processes */
	bool folded; /* left out of tables; summary_absent names its framework */
};

struct summary {
	struct arena arena;
	const struct stored_run *run;
	json_t *environment;	  /* the run's machine record; NULL if there is none */
	struct summary_row *rows; /* in print order: by comparison, then by rank */
	size_t count, comparison_count;
	size_t *first; /* first row of each comparison, followed by the number of rows */
	bool full; /* the text has a table for each comparison even in a sweep, and all diagnoses */
};

/* Returns the record of a run's machine; NULL if there is none. New reference. */
json_t *run_environment(const struct stored_run *run);
/* The same from its text, which may be NULL. */
json_t *machine_parse(const char *text);

void summary_init(struct summary *summary, const struct stored_run *run);
void summary_release(struct summary *summary);

/* Writes what all rows of a comparison have in common: "lenet, mnist-sample, train with sgd, batch
 * 64, cpu, fp32". */
void summary_comparison_title(const struct cell *cell, char *out, size_t out_bytes);

/* Makes the key of a cell's comparison, from all axes except the framework. Returns its length in
 * bytes. */
#define SUMMARY_KEY_BYTES (AXIS_COUNT * (CELL_WORD_BYTES + 1))
size_t summary_comparison_key(const struct cell *cell, char key[SUMMARY_KEY_BYTES]);

/* Returns the version reported by the framework; "" if it reported none. Borrowed. */
const char *summary_version(const struct summary_row *row);

/* Whether the cell's ranks normalise by the statistics of the whole batch. */
bool summary_is_global(const struct stored_cell *cell);

/* The same for a cell with results: ranks that normalise by the statistics of the whole batch
 * compute something else than those that normalise by their own. */
size_t summary_cell_key(const struct stored_cell *cell, char key[SUMMARY_KEY_BYTES]);

/* Writes "ok", "ok (not-steady)", "unsupported", "2 of 3 processes, no rank". Flags that the whole
 * run has (screening of a quick run) are left out. */
void summary_status_text(const struct summary *summary, const struct summary_row *row, char *out,
			 size_t out_bytes);

/* Writes "3", "1=" (shared), "1-2" (its order relative to another row is unknown), "-". */
void summary_rank_text(const struct summary_row *row, char *out, size_t out_bytes);

/* Whether the row is proved faster than native: the interval of the ratio lies below 1, is at most
 * ORDER_WIDTH_MAX wide, and neither was disturbed (threads that wait for each other lose more time
 * to other programs). */
bool summary_breaks_floor(const struct summary_row *row);

/* Adds "faster than native: mxnet (0.87x, 95 % interval 0.85x to 0.89x)" without a line feed, if a
 * row of the comparison is; else adds nothing and returns false. */
bool summary_floor_broken(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds the meaning of the signs that occur in the tables. */
void summary_legend(const struct summary *summary, struct strbuf *out);

/* Returns the row that leads a comparison without being proved the fastest (alone or shared); NULL
 * if the first rank is settled, or a single row is comparable. */
const struct summary_row *summary_leader(const struct summary *summary, size_t comparison);

/* Adds what is not proved slower than that leader: "; openvino (1.04x, 0.96x to 1.13x) may be as
 * fast; mxnet (7.13x, 4.94x to 10.3x) is slower by the figures, but this is not proved". */
void summary_rivals(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Returns what is said of that leader: "is fastest by the figures", or "has the least step time" if
 * another is ahead of it in the rounds that both have. */
const char *summary_lead_words(const struct summary *summary, size_t comparison);

/* Adds both as a sentence without a line feed; false, and nothing added, without such a leader. */
bool summary_led(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which contenders of the comparison have no rank, why, and what would be needed, without a
 * line feed. False, and nothing added, if all have one. */
bool summary_undecided(const struct summary *summary, size_t comparison, struct strbuf *out);

/* The same over several comparisons of a sweep. */
bool summary_undecided_among(const struct summary *summary, const size_t *comparisons, size_t count,
			     struct strbuf *out);

/* Adds which frameworks have typical steps far above their undisturbed steps, and whether the
 * machine or the framework causes it. False, and nothing added, if none has. */
bool summary_gaps(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds the time that steps lose to waiting for batches and copying them, compared with resident and
 * synthetic batches and with loading alone. False if no batches are loaded. */
bool summary_input(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks compare differently with native by undisturbed steps than by typical steps.
 * False, and nothing added, if none does. */
bool summary_disagreement(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks did not run as requested: other threads, fewer cores, another precision.
 * False, and nothing added, if all did. */
bool summary_effective(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which frameworks had too few steps in a window for a percentile. False, and nothing added,
 * if all have enough or steps are not timed one by one. */
bool summary_short_windows(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds after how many steps a framework that starts later overtakes another (break_even.h). False,
 * and nothing added, if none is proved to. */
bool summary_break_even(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds how many steps the trainings of a comparison need, and who trains alike. False, and nothing
 * added, if none has a target. */
bool summary_target(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds the efficiencies of ranks. False, and nothing added, if none is known. */
bool summary_scaling(const struct summary *summary, size_t comparison, struct strbuf *out);

/* Adds which cells of a comparison have a diagnosis, what it means and what helps, in at most 100
 * characters without a line feed. False if no cell has it. */
bool summary_diagnosis(const struct summary *summary, size_t comparison, enum diagnosis_id id,
		       struct strbuf *out);

/* A line that may be added under the table of a comparison. */
typedef bool summary_verdict(const struct summary *summary, size_t comparison, struct strbuf *out);
extern summary_verdict *const summary_verdicts[];
extern const size_t summary_verdict_count;

/* Whether the row was timed without a proof: batches were loaded, and nothing was computed. */
bool summary_only_loads(const struct summary_row *row);

/* Returns why a row is not comparable; "" if it is. Borrowed. */
const char *summary_reason(const struct summary_row *row);
/* The same for a note under the row: "" if it is unfinished, which summary_unfinished says once. */
const char *summary_note(const struct summary_row *row);

/* Adds the parity line, without a line feed. */
void summary_parity(const struct summary *summary, struct strbuf *out);

/* Adds the conditions in a machine record that would distort the figures, with or without remedies.
 * False, and nothing added, if there are none. */
bool conditions_found(const json_t *record, bool remedies, struct strbuf *out);

/* The same for the run's machine, with remedies. */
bool summary_findings(const struct summary *summary, struct strbuf *out);

/* Add the lines under the tables, each without a line feed: how many cells are unfinished, the
 * frameworks of the run that are not on the machine and have no rows, trained files that an
 * exporter may have changed, that the machine was busy, GPUs at their power cap, and environment
 * variables that change how fast a framework is. False, and nothing added, if there is nothing to
 * report. */
bool summary_unfinished(const struct summary *summary, struct strbuf *out);
/* Which parts of the run are missing or unfinished, and which were measured on other machines. */
bool summary_parts(const struct summary *summary, struct strbuf *out);
bool summary_absent(const struct summary *summary, struct strbuf *out);
bool summary_exports(const struct summary *summary, struct strbuf *out);
bool summary_disturbance(const struct summary *summary, struct strbuf *out);
bool summary_power_cap(const struct summary *summary, struct strbuf *out);
bool summary_settings(const struct summary *summary, struct strbuf *out);

/* Adds one line that identifies the run: number, uid, suite, time, machine, effort. */
void summary_heading(const struct summary *summary, struct strbuf *out);

/* Returns on how many nodes or hosts the parts of the run were measured; 1 for a run without. */
size_t summary_hosts(const struct summary *summary);

/* Adds the machine of a record in short, "AMD EPYC 7B13, 2 cores, 8 GiB"; false if it is not known.
 */
bool machine_text(const json_t *environment, struct strbuf *out);
/* The same of the run's. */
bool summary_machine(const struct summary *summary, struct strbuf *out);

/*
 * Returns the table of one comparison, with the figures of these bits (SHOW_ of report/figures.h).
 */
struct table *summary_table(const struct summary *summary, size_t comparison, unsigned shown);

/* Returns a second table under it: SHOW_LATENCY or SHOW_DETAILS. NULL if no row knows any of its
 * figures. The caller frees. */
struct table *summary_more(const struct summary *summary, size_t comparison, unsigned shown);

/* Writes the output of `run` and `show`: a table for each comparison, or for each sweep, the lines
 * on each of them, the parity line, and the lines on the machine. */
void summary_render(const struct summary *summary, bool colour, int width, struct strbuf *out);

/* Returns {"run": {...}, "cells": [...]}, documented in docs/exports.md; new reference. */
json_t *summary_to_json(const struct summary *summary);
json_t *summary_run_to_json(const struct summary *summary);
/* Returns "a,b" as an array of strings; empty for NULL and "". New reference. */
json_t *words_to_json(const char *words);
json_t *summary_cell_to_json(const struct summary_row *row);
/* Returns every field of PROCESS_FIELDS; new reference. */
json_t *summary_process_to_json(const struct process_record *record);

/* Writes "1.234 ms", "12.34 us"; never wider than 10. report/format.h has more formats. */
void format_duration(double ns, char *out, size_t out_bytes);
void format_bytes(double bytes, char *out, size_t out_bytes);
/* half_width: relative, of the interval; NaN: without one. */
void format_rate(double per_second, double half_width, char *out, size_t out_bytes);

#endif
