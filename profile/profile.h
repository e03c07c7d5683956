/*
 * `prony profile`: where the step of one cell goes, phase by phase, layer by layer and, of a worker
 * in Python, line by line. Timers and tracers slow what they look at, and no parity is proved:
 * nothing of it is a result, and nothing of it is stored.
 */
#ifndef PRONY_PROFILE_PROFILE_H
#define PRONY_PROFILE_PROFILE_H

#include "run/run.h"
#include "run/workload.h"

/* The phases of a process, in the order in which they come. */
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
	int64_t begin_ns, ns; /* ns: -1 when it did not come to that */
	int64_t steps;	      /* 0 where it is not made of steps */
};

/* Something that ran once in a step; the protocol's event. */
struct profile_span {
	const char *name, *kind; /* as the framework says; kind may be "" */
	const char *layer;	 /* of the rows of struct profile; NULL: none of the network's */
	const char *pass;	 /* "forward", "backward", "update" or "" */
	int64_t begin_ns;	 /* PROFILE_NO_TIME: only how long it took is known */
	int64_t ns, step;
	int thread;
};
#define PROFILE_NO_TIME INT64_MIN

/* A layer of the network, or what the framework did beside them, over all profiled steps. */
struct profile_layer {
	const char *name;
	const char *kind;  /* operator of the network; of others what the framework says */
	const char *fused; /* all that is in it, "conv1 + conv1.bn", where it is not alone */
	bool named;	   /* a layer of the network, or its update */
	int64_t calls;
	double forward_ns, backward_ns, other_ns; /* sums */
};

/* A line of Python; times without the tracer's own. */
struct profile_line {
	int64_t line, hits;
	int64_t ns;	 /* with what it calls */
	int64_t self_ns; /* without */
	const char *text;
};

struct profile_function {
	const char *name, *file;
	int64_t line, calls, ns, self_ns;
	struct profile_line *lines;
	size_t line_count;
};

/* Functions, outermost first, and the time in the last of them itself. */
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
	double step_ns; /* mean, nothing looked at */

	/* Layers. */
	bool has_layers;
	char no_layers[256]; /* why there are none; "" when nobody says */
	int64_t layer_steps;
	double layer_step_ns; /* mean of a step while layers are timed */
	struct profile_span *spans;
	size_t span_count;
	struct profile_layer *layers; /* the longest first */
	size_t layer_count;
	double layers_ns;  /* of a step: sum of all layers */
	double named_ns;   /* of them those with a name of the network's, and the update */
	double covered_ns; /* of a step: in which at least one of them ran */

	/* Lines. */
	bool has_lines;
	int64_t line_steps;
	int64_t lines_total_ns; /* of all steps, by the clock, less the tracer's own time */
	struct profile_function *functions; /* the longest first */
	size_t function_count;
	struct profile_stack *stacks;
	size_t stack_count;

	/* Busy share of each processor, 0 to 1, while steps ran with nothing looked at. */
	double *cores;
	const char **core_names;
	size_t core_count;
};

struct profile_settings {
	const struct run_settings *run; /* limits, seed, processors, stop */
	int64_t steps; /* to look at, and before and after not to; 0 = about a second */
};

/*
 * Profiles a cell of a plan in a process of its own. A worker that fails is a status with a reason;
 * the return value is an error only when the harness itself failed or the user interrupted.
 * profile_release it in any case.
 */
enum prony_status profile_take(const struct plan_cell *cell,
			       const struct profile_settings *settings, struct profile *out,
			       struct error *err);
void profile_release(struct profile *profile);

/* Of all passes and steps. */
double profile_layer_ns(const struct profile_layer *layer);

/* What the lines' own times sum to, which must be lines_total_ns. */
int64_t profile_lines_sum(const struct profile *profile);

#endif
