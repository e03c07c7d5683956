/* Private to plan/: words of a spec made sure of, and what they stand for on this machine. */
#ifndef PRONY_PLAN_RESOLVE_INTERNAL_H
#define PRONY_PLAN_RESOLVE_INTERNAL_H

#include "base/strbuf.h"
#include "frameworks/registry.h"
#include "plan/plan.h"
#include "spec/spec.h"

#define PLAN_SLOTS 8 /* docs/semantics.md: the input rotates over at least 8 batches */

/* Of the axis of data sets: each network's own, and no synthetic one where that is not here. */
#define OWN_DATASET "own"

struct framework_choice {
	struct cell words; /* its framework, name, environment, backend and options */
	const struct framework *framework;
	const struct framework_place *place;
	/* The one that takes its place where the input is native, because the same library's loader
	 * is driven there alone; NULL: none, or the input is native nowhere. */
	const struct framework_choice *reader;
};

struct dataset_choice {
	const struct dataset *asked, *used; /* used: what was asked for, or its sample */
	bool strict;			    /* named on the command line: no sample instead */
	const char *folder;		    /* NULL: synthetic, or not here */
	const char *reason;		    /* set when it is not here */
};

/* One expansion. Strings and arrays are in the plan's arena. */
struct expansion {
	const struct spec *spec;
	const struct plan_settings *settings;
	struct plan *plan;
	struct spec_rule asked;		     /* canonical words of each axis, "all" spelled out */
	struct framework_choice *frameworks; /* one for each word of its list */
	struct dataset_choice *datasets;     /* those met so far */
	size_t dataset_count;
	bool *shapes_used;			/* of the spec's shapes: a file has such an input */
	struct spec_rule *excludes, *overrides; /* with canonical words */
	const struct network_memory **memories; /* memory.c: what is known of networks so far */
};

/* Checks every word of the spec and locates its frameworks; messages name origin, list and nearest.
 */
enum prony_status expansion_resolve(struct expansion *e, struct error *err);

/* Where a data set is; adds a note when its sample takes its place. */
enum prony_status expansion_dataset(struct expansion *e, const struct dataset *asked, bool strict,
				    const struct dataset_choice **out, struct error *err);

/* The network of a word that expansion_resolve made canonical; never NULL. */
const struct network *expansion_network(const struct expansion *e, const char *word);

void plan_note(struct plan *plan, const char *text);

/*
 * Decides status and reason of a cell whose axes, network, dataset and place are set, and, where it
 * can be tried, how its worker is started.
 */
enum prony_status judge_cell(const struct expansion *e, const struct dataset_choice *dataset,
			     struct plan_cell *cell, struct error *err);

/*
 * memory.c: whether a cell fits; a reason is added where it does not, or where its network has no
 * such stage.
 */
enum cell_status judge_memory(const struct expansion *e, const struct plan_cell *cell,
			      struct strbuf *reasons);

#endif
