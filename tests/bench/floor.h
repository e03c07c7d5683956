/* The parts of bench_floor. All functions end the program with a message on failure: the
 * measurements would be worthless. */
#ifndef PRONY_TESTS_BENCH_FLOOR_H
#define PRONY_TESTS_BENCH_FLOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "adapters/native/cpu/cpu.h"
#include "adapters/native/inspect.h"
#include "zoo/source.h"

/* One line of the table. */
struct floor_task {
	const char *network; /* name in the zoo, or the path of an ONNX file */
	const char *stage;   /* "forward" or "train" */
	int64_t batch;
	int threads;
	bool bf16;
};

/* A network, open in the executor of this process. */
struct floor_session {
	struct floor_task task;
	struct arena arena;
	struct network_file *file; /* NULL for a network of the zoo */
	struct graph graph;
	struct recipe recipe;
	struct session session;
	struct tensor_set weights;
	struct tensor input, labels;
	struct built built;
	struct program *program;
};

void floor_open(struct floor_session *s, const struct floor_task *task, const char *library);
void floor_close(struct floor_session *s);
void floor_step(struct floor_session *s);

/* Prints the message and ends the program. */
_Noreturn void floor_fail(const struct error *err);

/* The clock of every figure: wall time, or with floor_use_cpu_time the CPU time of the process. */
void floor_use_cpu_time(void);
bool floor_uses_cpu_time(void);
int64_t floor_now_ns(void);

/* Order statistics of repeated times, in ns. */
struct floor_times {
	double median_ns, min_ns, low_ns, high_ns; /* low, high: the quartiles */
	int count;
};

/* Returns the statistics; sorts `values`. */
struct floor_times floor_times(double *values, int count);

/* Times steps by the adapter's own step and sync for about limit_ns, after two uncounted ones. */
struct floor_times floor_time_steps(struct floor_session *s, double limit_ns);

/* The times of a command. */
struct floor_command {
	const char *name;
	double warm_ns, cold_ns; /* alone: medians of repeats on the command's data in a step,
				    unchanged and with caches emptied before each */
	double in_step_ns;	 /* median within whole steps */
	double warm_best_ns, in_step_best_ns; /* the shortest: least disturbed by other work */
	double flops;			      /* the command's FLOPs; 0 except for products */
	double lost_ns;			      /* in a step, beyond its FLOPs at the peak */
	bool primitive, reorder, of_weights, of_input;
};

/* The best measured speed of the processor, in FLOP/s, on `threads` threads of the executor. */
struct floor_peak {
	double fma;	     /* prony's own loop in registers */
	double fma_worst;    /* the slowest, measured over tenths of a second */
	const char *fma_set; /* its instructions: "avx512f", "avx2+fma", "portable" */
	double sgemm;	     /* the library's own product; 0 if it has none */
	int sgemm_size;	     /* rows of the fastest square matrices */
};

/* Updates *peak. Repeated calls keep the best speed and how slow the processor was at times. */
void floor_measure_peak(const struct onednn *dnn, int threads, struct floor_peak *peak);
double floor_best_peak(const struct floor_peak *peak);

/* Returns the allocations of the whole process so far: those by prony, and those by the library and
 * its run-time libraries (C++ and OpenMP). */
struct floor_allocations {
	long own, library;
};
struct floor_allocations floor_allocations(void);

/* Counts of a step as the library reports them (its verbose lines); -1 if it reports none. */
struct floor_counts {
	int creations, reorders, executions;
};
struct floor_counts floor_count_step(struct floor_session *s);

/* All results of a task. */
struct floor_result {
	struct floor_task task;
	int threads_used; /* the executor may use fewer than the task offers */
	struct floor_times step;
	double warm_sum_ns, cold_sum_ns, in_step_sum_ns, own_loops_ns;
	double warm_best_sum_ns, in_step_best_sum_ns;
	struct floor_peak peak;
	int reorders_of_input, reorders_of_activations, reorders_of_weights;
	struct floor_counts counts;
	struct floor_allocations allocations; /* per step, rounded up */
	double flops;			      /* per step */
	double planned_bytes;
	/* The same steps in processes one after the other; 0 if the task has one thread. */
	double one_thread_ns, all_threads_ns;
	const char *notes;
	struct floor_command *commands; /* largest loss first */
	struct floor_command *late;	/* the same, largest excess over the time alone first */
	int command_count;
};

/* Fills step, allocations, peak, commands (in the session's arena, in the program's order). */
void floor_time(struct floor_session *s, struct floor_result *result);

void floor_print_head(FILE *out);
void floor_print_table(const struct floor_result *result, int top, FILE *out);

#endif
