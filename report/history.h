/* A cell through stored runs: its step time in each, and where that changed. */
#ifndef PRONY_REPORT_HISTORY_H
#define PRONY_REPORT_HISTORY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "stats/changes.h"
#include "stats/estimate.h"
#include "store/store.h"

struct history_point {
	const struct stored_run *run; /* borrowed; its first cell is the one */
	struct estimate step;	      /* ns; n > 0 */
	const struct change *change;  /* of those that begin here; NULL: none */
	const char *different;	      /* what else is another one than in the point before; "" */
};

struct history {
	struct arena arena;
	const struct stored_cell *cell; /* of the newest run; NULL when there is none */
	struct history_point *points;	/* in order of time */
	size_t count;
	struct change *changes;
	size_t change_count;
	size_t other_machines, without; /* runs left out: of other machines, without a figure */
};

/* `runs`: from the oldest on, each with that cell alone (store_load_history); borrowed. Runs on
 * another machine than the newest one's are left out. */
void history_init(struct history *history, const struct stored_run *runs, size_t count,
		  const struct change_settings *settings);
void history_release(struct history *history);

/* Adds "run 7: +8.2 % (+5.1 to +11.4), native 3.2.0 -> 3.3.0", and "12 runs, 1 change" with what
 * was left out, both without a line feed. */
void history_changes(const struct history *history, struct strbuf *out);
void history_words(const struct history *history, struct strbuf *out);
void history_render(const struct history *history, bool colour, int width, struct strbuf *out);
/* docs/exports.md; new reference. */
json_t *history_to_json(const struct history *history);

#endif
