/* Private to plan/: checks the words of a spec and finds what they mean on this machine. */
#ifndef PRONY_PLAN_RESOLVE_INTERNAL_H
#define PRONY_PLAN_RESOLVE_INTERNAL_H

#include "base/strbuf.h"
#include "frameworks/registry.h"
#include "plan/plan.h"
#include "spec/spec.h"

#define PLAN_SLOTS 8 /* docs/semantics.md: the input rotates over at least 8 batches */

/* On the axis of data sets: each network's own data set, with no synthetic replacement if it is not
 * here. */
#define OWN_DATASET "own"

struct framework_choice {
	struct cell words; /* its framework, name, environment, backend and options */
	const struct framework *framework;
	const struct framework_location *location;
	/* The framework that replaces it if the input is native, because only there the same
	 * library's loader is driven; NULL: none, or no input is native. */
	const struct framework_choice *reader;
};

struct dataset_choice {
	const struct dataset *asked, *used; /* used: the one requested, or its sample */
	bool strict;			    /* named on the command line: no sample instead */
	const char *folder;		    /* NULL: synthetic, or not here */
	const char *reason;		    /* set when it is not here */
};

/* One expansion. Strings and arrays are in the plan's arena. */
struct expansion {
	const struct spec *spec;
	const struct plan_settings *settings;
	struct plan *plan;
	struct spec_rule asked;		     /* canonical words of each axis, with "all" expanded */
	struct framework_choice *frameworks; /* one for each word of its list */
	struct dataset_choice *datasets;     /* those found so far */
	size_t dataset_count;
	const struct dataset **texts; /* the user's text files */
	size_t text_count;
	bool *shapes_used; /* for each of the spec's shapes: a file has such an input */
	bool *fills_used;  /* the same for its fills */
	struct spec_rule *excludes, *overrides; /* with canonical words */
	const struct network_memory **memories; /* memory.c: memory of networks so far */
};

/* Checks every word of the spec and locates its frameworks; messages name origin, list and nearest
 * word. */
enum prony_status expansion_resolve(struct expansion *e, struct error *err);

/* Locates a data set; adds a note if its sample replaces it. */
enum prony_status expansion_dataset(struct expansion *e, const struct dataset *asked, bool strict,
				    const struct dataset_choice **out, struct error *err);

/* Returns the data set of a word that expansion_resolve made canonical; NULL: there is none. */
const struct dataset *expansion_find_dataset(const struct expansion *e, const char *word);

/* Returns the network of a word that expansion_resolve made canonical; never NULL. */
const struct network *expansion_network(const struct expansion *e, const char *word);

void plan_note(struct plan *plan, const char *text);

/* Decides status and reason of a cell whose axes, network, dataset and place are set. If it can be
 * tried, also sets how its worker is started. */
enum prony_status judge_cell(const struct expansion *e, const struct dataset_choice *dataset,
			     struct plan_cell *cell, struct error *err);

/* memory.c: the GPU of a cell, if this machine has it; NULL for other devices. */
const struct gpu *cell_gpu(const struct expansion *e, const struct plan_cell *cell);

/* memory.c: whether a cell fits into memory; adds a reason if it does not, or if its network has no
 * such stage. */
enum cell_status judge_memory(const struct expansion *e, const struct plan_cell *cell,
			      struct strbuf *reasons);

#endif
