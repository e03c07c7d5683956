/* The table of figures of a cell; tables, pages, exports, charts and `prony list metrics` loop over
 * it. */
#ifndef PRONY_REPORT_FIGURES_H
#define PRONY_REPORT_FIGURES_H

#include "report/format.h"
#include "report/summary.h"

/* The unit of a figure; each has a row in figure_units. */
enum figure_unit {
	UNIT_NS,
	UNIT_BYTES,
	UNIT_PER_SECOND,
	UNIT_FLOPS,
	UNIT_RATIO, /* ratio to native, or to the fastest */
	UNIT_SHARE, /* shown in percent */
	UNIT_JOULES,
	UNIT_WATTS,
	UNIT_CORES,
	UNIT_COUNT
};

/* The places where a figure is shown; exports have their own masks. */
enum {
	SHOW_FIRST = 1 << 0,	/* in the table of a comparison, at any width */
	SHOW_USUAL = 1 << 1,	/* in that table, on terminals of the usual width */
	SHOW_WIDE = 1 << 2,	/* in that table, if there is room */
	SHOW_KNOWN = 1 << 3,	/* in that table and on the page only if some row knows it */
	SHOW_INTERVAL = 1 << 4, /* with its interval */
	SHOW_LATENCY = 1 << 5,	/* in the table of single steps */
	SHOW_DETAILS = 1 << 6,	/* in the second table of `show --full` */
	SHOW_PAGE = 1 << 7,	/* as a column of the page */
	SHOW_APART = 1 << 8,	/* its interval has its own column on the page, the next one */
	SHOW_BELOW = 1 << 9,  /* on the page in small type, in the column of the figure before it */
	SHOW_CURVE = 1 << 10, /* as a curve over batch sizes and cores */
	SHOW_PRINT = 1 << 11, /* in the table for a printed column, without versions and status */
};

/* The parts of a figure in JSON and CSV. */
enum figure_part { PART_VALUE, PART_LOW, PART_HIGH, PART_HALF_WIDTH, PART_PROCESSES, PART_COUNT };
enum {
	HAS_NOTHING = 0,
	HAS_VALUE = 1 << PART_VALUE,
	HAS_ENDS = HAS_VALUE | 1 << PART_LOW | 1 << PART_HIGH,
	HAS_WIDTH = HAS_ENDS | 1 << PART_HALF_WIDTH,
	HAS_ALL = HAS_WIDTH | 1 << PART_PROCESSES,
};

/*
 * X(name, word, member, unit, title, label, value, shown, json, csv, help)
 *
 * word: the name for programs: its CSV column and its row of `prony list metrics`. member: its path
 * in a cell of JSON. The other parts replace `center` or `ratio` in both (step_low_ns,
 * floor.half_width), or follow (undisturbed.gap_low). title: its column heading. label: its name in
 * charts. value: computed from a struct summary_row *row by the functions of figures.c. json, csv:
 * the parts that each has.
 */
#define FIGURES(X)                                                                                 \
	X(STEP, "step_center_ns", "step.center_ns", NS, "step", "step time", ESTIMATE(row->step),  \
	  SHOW_FIRST | SHOW_INTERVAL | SHOW_PAGE | SHOW_APART | SHOW_CURVE | SHOW_PRINT, HAS_ALL,  \
	  HAS_ENDS, "time per step: geometric mean of the processes' means")                       \
	X(STEP_MEAN, "processes_mean_ns", "step.mean_ns", NS, "mean", "mean step",                 \
	  VALUE(row->step.mean), 0, HAS_VALUE, HAS_NOTHING,                                        \
	  "arithmetic mean of the processes' means")                                               \
	X(STEP_MEDIAN, "processes_median_ns", "step.median_ns", NS, "median", "median step",       \
	  VALUE(row->step.median), 0, HAS_VALUE, HAS_NOTHING, "median of the processes' means")    \
	X(STEP_SD, "processes_sd_ns", "step.sd_ns", NS, "sd", "standard deviation",                \
	  VALUE(row->step.sd), 0, HAS_VALUE, HAS_NOTHING,                                          \
	  "standard deviation of the processes' means")                                            \
	X(STEP_MAD, "processes_mad_ns", "step.mad_ns", NS, "mad", "median deviation",              \
	  VALUE(row->step.mad), 0, HAS_VALUE, HAS_NOTHING,                                         \
	  "1.4826 x median absolute deviation of the processes' means")                            \
	X(STEP_MIN, "processes_min_ns", "step.min_ns", NS, "least", "least step",                  \
	  VALUE(row->step.min), 0, HAS_VALUE, HAS_NOTHING, "smallest of the processes' means")     \
	X(STEP_MAX, "processes_max_ns", "step.max_ns", NS, "largest", "largest step",              \
	  VALUE(row->step.max), 0, HAS_VALUE, HAS_NOTHING, "largest of the processes' means")      \
	X(STEP_CV, "processes_cv_between", "step.cv_between", SHARE, "variation", "variation",     \
	  VALUE(row->step.cv_between), 0, HAS_VALUE, HAS_NOTHING,                                  \
	  "standard deviation of the logarithms of the processes' means")                          \
	X(UNDISTURBED, "undisturbed_center_ns", "undisturbed.center_ns", NS, "undisturbed",        \
	  "undisturbed step", ESTIMATE(row->undisturbed), SHOW_DETAILS | SHOW_INTERVAL, HAS_ALL,   \
	  HAS_ENDS, "time per step in blocks without a delay")                                     \
	X(GAP, "undisturbed_gap", "undisturbed.gap", SHARE, "gap", "gap",                          \
	  ENDS(row->gap, row->gap_low, row->gap_high), 0, HAS_ENDS, HAS_VALUE,                     \
	  "step / undisturbed step of the same processes, minus 1")                                \
	X(P50, "latency_p50_center_ns", "latency.p50.center_ns", NS, "p50", "median of steps",     \
	  ESTIMATE(row->latency[0]), SHOW_LATENCY | SHOW_INTERVAL | SHOW_BELOW, HAS_ALL, HAS_ENDS, \
	  "median of single steps (--sync step)")                                                  \
	X(P90, "latency_p90_center_ns", "latency.p90.center_ns", NS, "p90", "90th percentile",     \
	  ESTIMATE(row->latency[1]), SHOW_LATENCY | SHOW_INTERVAL | SHOW_BELOW, HAS_ALL, HAS_ENDS, \
	  "90th percentile of single steps (--sync step)")                                         \
	X(P99, "latency_p99_center_ns", "latency.p99.center_ns", NS, "p99", "99th percentile",     \
	  ESTIMATE(row->latency[2]), SHOW_LATENCY | SHOW_INTERVAL | SHOW_BELOW, HAS_ALL, HAS_ENDS, \
	  "99th percentile of single steps (--sync step)")                                         \
	X(SAMPLES, "samples_per_second", "samples_per_second", PER_SECOND, "samples",              \
	  "samples a second", PER_STEP((double)row->cell->cell.batch),                             \
	  SHOW_FIRST | SHOW_PAGE | SHOW_CURVE, HAS_VALUE, HAS_VALUE, "batch / step")               \
	X(TOKENS, "tokens_per_second", "tokens_per_second", PER_SECOND, "tokens",                  \
	  "tokens a second", PER_STEP((double)row->cell->cell.batch * row->tokens),                \
	  SHOW_USUAL | SHOW_KNOWN | SHOW_PAGE | SHOW_CURVE, HAS_VALUE, HAS_VALUE,                  \
	  "batch x tokens per sample / step, for networks over sequences")                         \
	X(FLOOR, "floor_ratio", "floor.ratio", RATIO, "vs native", "ratio to native",              \
	  CONTRAST(row->floor, row->floor_order, is_native(row)),                                  \
	  SHOW_FIRST | SHOW_INTERVAL | SHOW_PAGE | SHOW_CURVE | SHOW_PRINT, HAS_WIDTH, HAS_WIDTH,  \
	  "step / native's step of the same work")                                                 \
	X(LEAD, "lead_ratio", "lead.ratio", RATIO, "vs fastest", "ratio to the fastest",           \
	  CONTRAST(row->lead, row->lead_order, row->leads), 0, HAS_NOTHING, HAS_NOTHING,           \
	  "step / that of the fastest of the same work")                                           \
	X(UNDISTURBED_FLOOR, "undisturbed_floor_ratio", "undisturbed.floor.ratio", RATIO,          \
	  "undisturbed ratio", "undisturbed ratio",                                                \
	  CONTRAST(row->floor_undisturbed, row->undisturbed_order, is_native(row)),                \
	  SHOW_DETAILS | SHOW_INTERVAL | SHOW_BELOW, HAS_WIDTH, HAS_ENDS,                          \
	  "undisturbed step / native's undisturbed step")                                          \
	X(STRONG, "efficiency_strong_ratio", "efficiency.strong.ratio", SHARE,                     \
	  "strong efficiency", "strong scaling efficiency",                                        \
	  CONTRAST(row->efficiency[SCALING_STRONG], ORDER_UNKNOWN, false), 0, HAS_WIDTH, HAS_ENDS, \
	  "step of one rank / (ranks x step of all ranks), for the same batch")                    \
	X(WEAK, "efficiency_weak_ratio", "efficiency.weak.ratio", SHARE, "weak efficiency",        \
	  "weak scaling efficiency",                                                               \
	  CONTRAST(row->efficiency[SCALING_WEAK], ORDER_UNKNOWN, false), 0, HAS_WIDTH, HAS_ENDS,   \
	  "step of one rank / step of all ranks, for the same batch of a rank")                    \
	X(FLOPS, "flops_per_second", "flops_per_second", FLOPS, "FLOP/s", "arithmetic",            \
	  PER_STEP(row->flops_per_step), SHOW_WIDE | SHOW_KNOWN | SHOW_DETAILS | SHOW_PAGE,        \
	  HAS_VALUE, HAS_VALUE, "2 x MACs x batch / step; in training three times that")           \
	X(PEAK, "peak_flops_per_second", "peak.flops_per_second", FLOPS, "peak", "peak",           \
	  VALUE(row->costs.peak_flops), 0, HAS_VALUE, HAS_VALUE,                                   \
	  "peak of the same number of cores for that precision")                                   \
	X(PEAK_SHARE, "peak_share", "peak.share", SHARE, "of peak", "share of the peak",           \
	  VALUE(row->costs.peak_share), SHOW_WIDE | SHOW_KNOWN | SHOW_DETAILS | SHOW_BELOW,        \
	  HAS_VALUE, HAS_VALUE, "FLOP/s / peak")                                                   \
	X(READ, "read_bytes_per_step", "read.bytes_per_step", BYTES, "read", "read in a step",     \
	  VALUE(row->read_per_step), 0, HAS_VALUE, HAS_VALUE,                                      \
	  "bytes of weights and caches that a decode step must read")                              \
	X(BANDWIDTH_SHARE, "bandwidth_share", "read.bandwidth_share", SHARE, "of bandwidth",       \
	  "share of the memory bandwidth", VALUE(row->costs.bandwidth_share),                      \
	  SHOW_WIDE | SHOW_KNOWN | SHOW_BELOW, HAS_VALUE, HAS_VALUE,                               \
	  "bytes of weights and caches that a decode step must read / step, of the bandwidth "     \
	  "of the same number of cores")                                                           \
	X(JOULES_PER_STEP, "joules_per_step", "energy.joules_per_step", JOULES, "energy/step",     \
	  "energy of a step", ESTIMATE(row->costs.joules_per_step), 0, HAS_WIDTH, HAS_ENDS,        \
	  "energy of the processor packages per step, geometric mean over processes")              \
	X(JOULES_PER_SAMPLE, "joules_per_sample", "energy.joules_per_sample", JOULES,              \
	  "energy/sample", "energy of a sample",                                                   \
	  EACH(row->costs.joules_per_step, (double)row->cell->cell.batch),                         \
	  SHOW_WIDE | SHOW_KNOWN | SHOW_INTERVAL | SHOW_BELOW, HAS_WIDTH, HAS_ENDS,                \
	  "energy of the processor packages per sample")                                           \
	X(JOULES_FLOOR, "joules_floor_ratio", "energy.floor_ratio", RATIO, "energy vs native",     \
	  "energy relative to native",                                                             \
	  CONTRAST(row->costs.joules_floor, ORDER_UNKNOWN, is_native(row)), 0, HAS_WIDTH,          \
	  HAS_ENDS, "energy per step / native's, in the rounds of both")                           \
	X(MEMORY_JOULES, "memory_joules_per_step", "energy.memory_joules_per_step", JOULES,        \
	  "memory energy", "energy of the memory", VALUE(row->costs.memory_joules_per_step), 0,    \
	  HAS_VALUE, HAS_NOTHING, "energy of the memory per step, by its own counter")             \
	X(BOARD_JOULES, "board_joules_per_step", "energy.board_joules_per_step", JOULES,           \
	  "board energy", "energy of the board", VALUE(row->costs.board_joules_per_step), 0,       \
	  HAS_VALUE, HAS_NOTHING, "energy of the board per step, packages included")               \
	X(WATTS, "watts", "energy.watts", WATTS, "power", "power", ESTIMATE(row->costs.watts), 0,  \
	  HAS_WIDTH, HAS_ENDS, "power of the processor packages in the window")                    \
	X(CORES, "window_cpu_cores", "window_cpu_cores", CORES, "cores", "cores",                  \
	  VALUE(row->cores), SHOW_PAGE, HAS_NOTHING, HAS_NOTHING,                                  \
	  "processor time / time in the window")                                                   \
	X(FIRST_STEP, "to_first_step_ns", "to_first_step_ns", NS, "first step",                    \
	  "time to the first step",                                                                \
	  ENDS(row->to_first_step_ns.median, row->to_first_step_ns.low,                            \
	       row->to_first_step_ns.high),                                                        \
	  SHOW_USUAL | SHOW_PAGE, HAS_ENDS, HAS_ENDS,                                              \
	  "from the start of the process to the end of its first step: median of processes")       \
	X(MEMORY, "rss_peak_bytes", "rss_peak_bytes", BYTES, "memory", "memory",                   \
	  VALUE(row->rss_peak_bytes), SHOW_USUAL | SHOW_PAGE, HAS_VALUE, HAS_VALUE,                \
	  "largest resident set of the process tree")                                              \
	X(GPU_MEMORY, "gpu_memory_bytes", "gpu.memory_bytes", BYTES, "GPU memory",                 \
	  "memory of the GPU", VALUE(row->costs.gpu_memory), SHOW_USUAL | SHOW_KNOWN | SHOW_PAGE,  \
	  HAS_VALUE, HAS_VALUE, "memory in use on its GPUs less what was in use before")           \
	X(GPU_WATTS, "gpu_watts", "gpu.watts", WATTS, "GPU power", "power of the GPU",             \
	  VALUE(row->costs.gpu_watts), SHOW_USUAL | SHOW_KNOWN | SHOW_PAGE, HAS_VALUE, HAS_VALUE,  \
	  "power of its GPUs in the window")                                                       \
	X(GPU_JOULES_PER_SAMPLE, "gpu_joules_per_sample", "gpu.joules_per_sample", JOULES,         \
	  "GPU energy/sample", "energy of the GPU for a sample",                                   \
	  EACH(row->costs.gpu_joules_per_step, (double)row->cell->cell.batch),                     \
	  SHOW_WIDE | SHOW_KNOWN | SHOW_INTERVAL | SHOW_BELOW, HAS_WIDTH, HAS_ENDS,                \
	  "energy of its GPUs per sample")                                                         \
	X(GPU_POWER_HELD, "gpu_power_held", "gpu.power_held", SHARE, "capped", "time at the cap",  \
	  VALUE(row->costs.gpu_power_held), 0, HAS_VALUE, HAS_VALUE,                               \
	  "share of the window in which the power cap held the GPU's clock down")                  \
	X(TARGET, "target_ns", "target.ns", NS, "to target", "time to the target",                 \
	  ENDS(row->target.time.ns, row->target.time.low, row->target.time.high),                  \
	  SHOW_FIRST | SHOW_KNOWN | SHOW_PAGE, HAS_ENDS, HAS_ENDS,                                 \
	  "time of the steps of a training until its target (--until): median over seeds")

enum figure_id {
#define X(name, ...) FIGURE_##name,
	FIGURES(X)
#undef X
		FIGURE_COUNT
};

struct figure {
	const char *word, *member, *title, *label, *help;
	enum figure_unit unit;
	unsigned shown;	    /* SHOW_ bits */
	unsigned json, csv; /* HAS_ bits */
};
extern const struct figure figures[FIGURE_COUNT];

/* The values of a figure in a row; unknown values are NaN (processes: 0). */
struct figure_value {
	double value, low, high, half_width; /* 95 % interval; half_width is relative */
	size_t processes;		     /* number of processes that it was estimated from */
	char sign;   /* sign of a ratio: FIGURE_ALIKE, FIGURE_UNPROVED, or 0 */
	bool itself; /* the ratio of a framework to itself: 1 by definition */
};
/* FIGURE_ALIKE: the ratio cannot be distinguished from 1. FIGURE_UNPROVED: its interval excludes 1,
 * but the order is not proved, because there are too few processes or the machine was disturbed. */
enum { FIGURE_ALIKE = '~', FIGURE_UNPROVED = '?' };
struct figure_value figure_value(enum figure_id id, const struct summary_row *row);

/* Writes "1.234 ms", "~1.05x" or "-"; the half width, if known, determines the digits. */
void figure_text(enum figure_id id, const struct summary_row *row, char out[FORMAT_BYTES]);
/* Writes the half width of the interval, "1.2 %"; "-" without one. */
void figure_width_text(enum figure_id id, const struct summary_row *row, char out[FORMAT_BYTES]);
/* Writes the interval, "1.20 ms to 1.30 ms"; "" without one. */
enum { FIGURE_INTERVAL_BYTES = 2 * FORMAT_BYTES + 8 };
void figure_interval_text(enum figure_id id, const struct summary_row *row,
			  char out[FIGURE_INTERVAL_BYTES]);

/* Formats one number of a unit for people. */
void figure_format(enum figure_unit unit, double value, double half_width, char out[FORMAT_BYTES]);
const char *figure_unit_name(enum figure_unit unit); /* "ns", "1/s"; "" for ratios and shares */
bool figure_more_is_better(enum figure_unit unit);

/* Writes the name of a part, as a word or member path: "step_low_ns" from "step_center_ns". */
enum { FIGURE_WORD_BYTES = 48 };
void figure_part_word(const char *word, enum figure_part part, char out[FIGURE_WORD_BYTES]);
double figure_part_of(const struct figure_value *value, enum figure_part part);

#endif
