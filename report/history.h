/* The history of a cell in stored runs: its step time in each, and where that changed. */
#ifndef PRONY_REPORT_HISTORY_H
#define PRONY_REPORT_HISTORY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "stats/changes.h"
#include "stats/estimate.h"
#include "store/store.h"

struct history_point {
	const struct stored_run *run; /* borrowed; the cell is its first one */
	struct estimate step;	      /* ns; n > 0 */
	const struct change *change;  /* the change that begins at this point; NULL: none */
	const char *different;	      /* what else differs from the point before; "" */
};

struct history {
	struct arena arena;
	const struct stored_cell *cell; /* cell of the newest run; NULL if there is none */
	struct history_point *points;	/* in chronological order */
	size_t count;
	struct change *changes;
	size_t change_count;
	bool places; /* whether the points are of several nodes or hosts */
	size_t other_machines,
		without; /* runs left out: on other machines; unfinished or without a figure */
};

/* The machine of a run: its node, or outside of a job its host. Borrowed. */
const char *run_place(const struct run_meta *meta);

/* The part of a run that holds a cell, NULL if none does; the machine of the cell. Borrowed. */
const struct run_part *cell_part(const struct run_meta *meta, const struct stored_cell *cell);
const char *cell_place(const struct run_meta *meta, const struct stored_cell *cell);

/* `runs`: oldest first, each loaded with that cell only (store_load_history); borrowed. Runs on a
 * machine other than the newest run's are left out. */
void history_init(struct history *history, const struct stored_run *runs, size_t count,
		  const struct change_settings *settings);
void history_release(struct history *history);

/* Adds the changes, "run 7: +8.2 % (+5.1 to +11.4), native 3.2.0 -> 3.3.0", and the summary, "12
 * runs, 1 change", with what was left out. Neither ends with a line feed. */
void history_changes(const struct history *history, struct strbuf *out);
void history_words(const struct history *history, struct strbuf *out);
void history_render(const struct history *history, bool colour, int width, struct strbuf *out);
/* Returns the history as JSON (docs/exports.md); new reference. */
json_t *history_to_json(const struct history *history);

#endif
