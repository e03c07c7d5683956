/* Histories of cells for a page. */
#ifndef PRONY_CLI_HISTORIES_H
#define PRONY_CLI_HISTORIES_H

#include "report/history.h"
#include "report/summary.h"
#include "store/store.h"

struct histories {
	struct history *items;
	struct stored_run **runs; /* of each item */
	size_t *run_counts;
	size_t count;
};

/* Loads the histories, up to the newest of these runs, of cells that have a figure here and exist
 * in earlier runs of the store: the first 200 such cells, each over its last 100 runs. After
 * success call histories_release. */
enum prony_status histories_load(struct store *store, const struct summary *const *summaries,
				 size_t count, struct histories *out, struct error *err);
void histories_release(struct histories *histories);

#endif
