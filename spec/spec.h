/* What the user asked for, as one struct: command line over suite file over defaults. */
#ifndef PRONY_SPEC_SPEC_H
#define PRONY_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/axes.h"

enum effort { EFFORT_QUICK, EFFORT_DEFAULT, EFFORT_RIGOROUS, EFFORT_COUNT };
const char *effort_name(enum effort effort);
bool effort_parse(const char *word, enum effort *out);

/* One word of an axis and where it came from, for messages: "suite.yaml:7: frameworks". */
struct spec_word {
	const char *text, *origin;
};

struct spec_list {
	struct spec_word *words;
	size_t count;
};

/* `exclude` and `override` rows of a suite: cells whose axes match every given list. */
struct spec_rule {
	struct spec_list axes[AXIS_COUNT];
	/* Overrides. */
	const char *values[AXIS_COUNT]; /* NULL: not given */
	int64_t steps, warm_up_steps;	/* negative: not given */
};

struct spec {
	struct arena arena;
	const char *suite; /* "quickstart"; "" when put together on the command line */
	const char *summary;
	struct spec_list axes[AXIS_COUNT];
	struct spec_rule *excludes, *overrides;
	size_t exclude_count, override_count;
	enum effort effort;
	int64_t steps;	       /* fixed steps of the window; 0 = by time */
	int64_t warm_up_steps; /* fixed warm-up; -1 = by steadiness */
	int repeat;	       /* fixed number of processes; 0 = by effort */
	int quick_repeat;      /* the same of a suite's with effort quick; 0 = by effort */
	const char *statistic; /* "geometric" (t interval on log means), "mean" */
	uint64_t seed;
	const char *origin; /* the benchmark that is repeated, with its year; "": a suite of ours */
	enum form form;	    /* how that printed */
	int64_t loss_every; /* the loss is read after the first and each so many steps; 0 = not so
			     */
	int64_t samples;    /* of an epoch, where steps are not fixed; 0 = no epochs */
	int64_t epochs;	    /* given with samples; the first one is warm-up */
	struct spec_list precisions_instead; /* of one that a framework lacks, the best first */
	int64_t batch_divisor; /* of batches that are not the command line's; 1 but in a screening
				*/
	bool gate_only;	       /* parity without timing */
	const char **shapes;   /* "NAME=1x3x48x320": of inputs that ONNX files leave open */
	size_t shape_count;
	bool cells_explicit; /* frameworks and networks are named one by one on the command line,
				not "all" or by a suite */
};

/* Empty lists, default effort, seed 1. */
void spec_init(struct spec *spec);
void spec_release(struct spec *spec);

/* Puts the defaults of cell/axes.h into axes that are still empty; that of data sets stays empty,
 * the network's own. */
void spec_complete(struct spec *spec);

/*
 * Reads a suite file into the spec. Every error names file, line, key and remedy; unknown keys
 * suggest the nearest. Strings are copied into the arena.
 */
enum prony_status spec_read_file(struct spec *spec, const char *path, struct error *err);

/* The names of the built-in suites, sorted, in the arena. PRONY_BAD_INPUT when SHARE is not found.
 */
enum prony_status spec_list_suites(struct arena *arena, const char *const **names, size_t *count,
				   struct error *err);

/* Finds a suite by name in SHARE/suites, or takes a path that ends in .yaml or holds a slash.
 * *path: caller frees. PRONY_BAD_INPUT lists the built-in suites. */
enum prony_status spec_find_suite(const char *name, char **path, struct error *err);

/*
 * Replaces an axis by words from the command line: each value is split at commas; batches also
 * accept ranges "1..64*2" and "16..64+16". `origin` is the option as typed, "-b".
 */
enum prony_status spec_set_axis(struct spec *spec, enum axis_id axis, const char *const *values,
				size_t count, const char *origin, struct error *err);

/* Expands "16,32", "1..64*2", "16..64+16" into numbers as words; at most 4096. */
enum prony_status spec_expand_numbers(struct spec *spec, const char *text, const char *origin,
				      struct spec_list *out, struct error *err);

/* Steps of the window and of the warm-up as the command line has them: over the suite's own and
 * over its overrides. */
void spec_fix_steps(struct spec *spec, int64_t steps);
void spec_fix_warm_up(struct spec *spec, int64_t steps);

/* Cuts a published suite down to what only screens, in 3 processes: smaller batches, 3 steps after
 * 1, or 2 epochs of 128 samples (plan/expand.c cuts long ones) in a framework's own loop and the
 * effort's window where the steps are ours. What the command line fixes comes after it. */
void spec_screen(struct spec *spec);
bool spec_screens(const struct spec *spec);
/* A batch of a screening: max(min(2, b), b / divisor). */
int64_t spec_screened_batch(const struct spec *spec, int64_t batch);

/* Shapes as the command line has them; what they are of is known only with the files. */
void spec_set_shapes(struct spec *spec, const char *const *texts, size_t count);

/* Words of the command line have an option as their origin: what is wrong with them is PRONY_USAGE,
 * with words of a suite PRONY_BAD_INPUT. */
bool origin_is_option(const char *origin);
enum prony_status origin_status(const char *origin);

/* Canonical text of everything that decides what runs: equal texts = the same run, for --resume. */
char *spec_canonical(const struct spec *spec); /* caller frees */

#endif
