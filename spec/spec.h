/* What the user asked for, as one struct: the command line overrides the suite file, which
 * overrides the defaults. */
#ifndef PRONY_SPEC_SPEC_H
#define PRONY_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/axes.h"
#include "cell/until.h"

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

/*
 * `exclude` and `override` rules of a suite: they apply to cells whose axes match every given list.
 */
struct spec_rule {
	struct spec_list axes[AXIS_COUNT];
	/* Overrides. */
	const char *values[AXIS_COUNT]; /* NULL: not given */
	int64_t steps, warm_up_steps;	/* negative: not given */
};

struct spec {
	struct arena arena;
	const char *suite; /* "quickstart"; "" when the spec comes from the command line */
	const char *summary;
	struct spec_list axes[AXIS_COUNT];
	struct spec_rule *excludes, *overrides;
	size_t exclude_count, override_count;
	enum effort effort;
	int64_t steps;	       /* fixed number of steps in the window; 0 = by time */
	int64_t warm_up_steps; /* fixed warm-up; -1 = by steadiness */
	int repeat;	       /* fixed number of processes; 0 = by effort */
	int quick_repeat;      /* the same for a suite with effort quick; 0 = by effort */
	uint64_t seed;
	const char *
		origin; /* the benchmark that the suite repeats, with its year; "": our own suite */
	int64_t loss_every; /* reads the loss after the first step and then every so many; 0 = not
			       within the window */
	int64_t samples;    /* samples per epoch, when steps are not fixed; 0 = no epochs */
	int64_t epochs;	    /* used with samples; the first epoch is warm-up */
	struct until until; /* trainings that run until a target; its replicates are seeds */
	struct spec_list precisions_instead; /* replacements for a precision that a framework lacks,
						best first */
	int64_t batch_divisor; /* divides batches that are not from the command line; 1 except in a
				  screening run */
	bool batch_per_rank;   /* batches are those of a rank; a cell's is that times its ranks */
	bool gate_only;	       /* parity without timing */
	const char **shapes;   /* "NAME=1x3x48x320": shapes for inputs that ONNX files leave open */
	size_t shape_count;
	const char **fills; /* "NAME=ones": what inputs of ONNX files are filled with */
	size_t fill_count;
	bool cells_explicit; /* the command line names frameworks and networks one by one, not "all"
				and not by a suite */
};

/* With `until`, the first contender of a comparison that can run trains with spec->repeat seeds.
 * Returns the number for the others, which train with the first of these (docs/accuracy.md). */
int spec_other_seeds(const struct spec *spec);

/* Empty lists, default effort, seed 1. */
void spec_init(struct spec *spec);
void spec_release(struct spec *spec);

/* Fills empty axes with the defaults of cell/axes.h. The data set stays empty, which means the
 * network's own. */
void spec_complete(struct spec *spec);

/* Reads a suite file into the spec. Every error names file, line, key and remedy; unknown keys
 * suggest the nearest. Strings are copied into the arena. */
enum prony_status spec_read_file(struct spec *spec, const char *path, struct error *err);

/* The names of the built-in suites, sorted, in the arena. PRONY_BAD_INPUT when SHARE is not found.
 */
enum prony_status spec_list_suites(struct arena *arena, const char *const **names, size_t *count,
				   struct error *err);

/* Finds a suite by name in SHARE/suites, or takes a path that ends in .yaml or holds a slash.
 * *path: caller frees. PRONY_BAD_INPUT lists the built-in suites. */
enum prony_status spec_find_suite(const char *name, char **path, struct error *err);

/* Replaces an axis by words from the command line: each value is split at commas; batches also
 * accept ranges "1..64*2" and "16..64+16". `origin` is the option as typed, "-b". */
enum prony_status spec_set_axis(struct spec *spec, enum axis_id axis, const char *const *values,
				size_t count, const char *origin, struct error *err);

/* Expands "16,32", "1..64*2", "16..64+16" into numbers as words; at most 4096. */
enum prony_status spec_expand_numbers(struct spec *spec, const char *text, const char *origin,
				      struct spec_list *out, struct error *err);

/* Sets the steps of the window or the warm-up from the command line; overrides the suite and its
 * override rules. */
void spec_fix_steps(struct spec *spec, int64_t steps);
void spec_fix_warm_up(struct spec *spec, int64_t steps);

/* Reduces a published suite to a screening run of 3 processes: smaller batches and 3 steps after 1
 * warm-up step. In a framework's own loop: 2 epochs of 128 samples (plan/expand.c cuts long ones).
 * Where steps are not fixed, the effort's window applies. Call it before the command line's own
 * steps are set. */
void spec_screen(struct spec *spec);
bool spec_screens(const struct spec *spec);
/* The batch of a screening run: max(min(2, b), b / divisor). */
int64_t spec_screened_batch(const struct spec *spec, int64_t batch);

/* Sets input shapes from the command line. Which inputs they name is known only when the files are
 * read. */
void spec_set_shapes(struct spec *spec, const char *const *texts, size_t count);
/* The same: what inputs are filled with. */
void spec_set_fills(struct spec *spec, const char *const *texts, size_t count);

/* Whether the word came from an option of the command line. Errors in such words are PRONY_USAGE;
 * errors in a suite's words are PRONY_BAD_INPUT. */
bool origin_is_option(const char *origin);
enum prony_status origin_status(const char *origin);

/*
 * Canonical text of everything that decides what runs: equal texts mean the same run for --resume.
 */
char *spec_canonical(const struct spec *spec); /* caller frees */

#endif
