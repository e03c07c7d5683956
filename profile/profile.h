/* `prony profile`: where the step time of one cell goes, by phase, by layer and, for a Python
 * worker, by line. Profiling slows down what it observes and there is no parity gate, so nothing of
 * it is a result and nothing is stored. */
#ifndef PRONY_PROFILE_PROFILE_H
#define PRONY_PROFILE_PROFILE_H

#include "run/run.h"
#include "run/workload.h"

/* The phases of a process, in order. */
#define PROFILE_PHASES(X)                                                                          \
	X(START, "start-up")                                                                       \
	X(IMPORT, "import")                                                                        \
	X(OPEN, "open")                                                                            \
	X(BUILD, "build")                                                                          \
	X(FEED, "feed")                                                                            \
	X(FIRST, "first step")                                                                     \
	X(WARM, "warm-up")                                                                         \
	X(STEPS, "steps")                                                                          \
	X(LAYERS, "steps, layers timed")                                                           \
	X(LINES, "steps, lines traced")                                                            \
	X(READ, "read back")

enum profile_phase_id {
#define X(id, name) PROFILE_PHASE_##id,
	PROFILE_PHASES(X)
#undef X
		PROFILE_PHASE_COUNT
};
const char *profile_phase_name(int phase);

struct profile_phase {
	int64_t begin_ns, ns; /* ns: -1 when it was not reached */
	int64_t steps;	      /* 0 if it has no steps */
};

/* What it is on a GPU, and the word of the protocol. */
#define PROFILE_DEVICES(X)                                                                         \
	X(NONE, "")                                                                                \
	X(KERNEL, "kernel")                                                                        \
	X(COPY, "copy")                                                                            \
	X(FILL, "fill")
enum profile_device {
#define X(id, word) PROFILE_DEVICE_##id,
	PROFILE_DEVICES(X)
#undef X
		PROFILE_DEVICE_COUNT
};
const char *profile_device_word(enum profile_device device);

/* Something that ran once in a step: an event of the protocol. */
struct profile_span {
	const char *name, *kind; /* as the framework reports it; kind may be "" */
	const char *layer;	 /* a row of struct profile; NULL: not part of the network */
	const char *pass;	 /* "forward", "backward", "update" or "" */
	int64_t begin_ns;	 /* PROFILE_NO_TIME: only the duration is known */
	int64_t ns, step;
	int thread;
	enum profile_device device; /* NONE: not known to be on a GPU */
	int64_t bytes;		    /* of a copy or fill on a GPU */
};
#define PROFILE_NO_TIME INT64_MIN

/* A layer of the network, or other work of the framework, over all profiled steps. */
struct profile_layer {
	const char *name;
	const char *kind;  /* operator of the network; otherwise the framework's own name */
	const char *fused; /* all fused nodes, "conv1 + conv1.bn", if there are several */
	bool named;	   /* a layer of the network, or its update */
	int64_t calls;
	double forward_ns, backward_ns, other_ns; /* sums */
};

/* Work of a GPU of one kind, over all profiled steps. */
struct profile_device_sum {
	int64_t calls, bytes;
	double ns;
};

/* A line of Python; times exclude the tracer's own time. */
struct profile_line {
	int64_t line, hits;
	int64_t ns;	 /* including called functions */
	int64_t self_ns; /* excluding called functions */
	const char *text;
};

struct profile_function {
	const char *name, *file;
	int64_t line, calls, ns, self_ns;
	struct profile_line *lines;
	size_t line_count;
};

/* A stack of functions, outermost first, and the time in the last one itself. */
struct profile_stack {
	const char **frames;
	size_t depth;
	int64_t ns;
};

struct profile {
	struct arena arena;	      /* owns what follows */
	const struct plan_cell *cell; /* borrowed */
	enum cell_status status;      /* CELL_OK: there is a profile */
	char reason[ERROR_TEXT_BYTES];
	char version[64];
	struct profile_phase phases[PROFILE_PHASE_COUNT];
	double step_ns; /* mean of steps without profiling */

	/* Layers. */
	bool has_layers;
	char no_layers[256]; /* why there are none; "" if unknown */
	int64_t layer_steps;
	double layer_step_ns; /* mean step while layers are timed */
	struct profile_span *spans;
	size_t span_count;
	struct profile_layer *layers; /* longest first */
	size_t layer_count;
	double layers_ns;  /* per step: sum of all layers */
	double named_ns;   /* of these, layers of the network and the update */
	double covered_ns; /* per step: time in which at least one of them ran */
	bool has_device;   /* a GPU's work is among them */
	struct profile_device_sum device[PROFILE_DEVICE_COUNT];
	double device_ns; /* per step: time in which the GPU was busy */

	/* Lines. */
	bool has_lines;
	int64_t line_steps;
	int64_t lines_total_ns; /* of all steps, by the clock, without the tracer's own time */
	struct profile_function *functions; /* longest first */
	size_t function_count;
	struct profile_stack *stacks;
	size_t stack_count;

	/* Busy share of each processor, 0 to 1, during steps without profiling. */
	double *cores;
	const char **core_names;
	size_t core_count;
};

struct profile_settings {
	const struct run_settings *run; /* limits, seed, processors, stop */
	int64_t steps; /* steps with profiling, and as many without before and after; 0 = about a
			  second */
};

/* Profiles a cell of a plan in its own process. A failing worker gives a status with a reason; the
 * return value is an error only when prony itself failed or the user interrupted. Always call
 * profile_release. */
enum prony_status profile_take(const struct plan_cell *cell,
			       const struct profile_settings *settings, struct profile *out,
			       struct error *err);
void profile_release(struct profile *profile);

/* The sum over all passes and steps. */
double profile_layer_ns(const struct profile_layer *layer);

/* The sum of the lines' own times, which must equal lines_total_ns. */
int64_t profile_lines_sum(const struct profile *profile);

#endif
