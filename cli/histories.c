#include "cli/histories.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* In larger runs nobody looks at a single cell's history. */
enum { CELLS_MAX = 64, RUNS_MAX = 50, PROCESSES_MAX = 1000 };

/* Whether one of the runs has a figure for that cell. */
static bool is_shown(const struct summary *const *summaries, size_t count, const char *hash)
{
	for (size_t run = 0; run < count; run++)
		for (size_t i = 0; i < summaries[run]->count; i++) {
			const struct summary_row *row = &summaries[run]->rows[i];
			if (row->step.n > 0 && row->cell->process_count > 0 &&
			    row->cell->process_count <= PROCESSES_MAX &&
			    !strcmp(row->cell->hash, hash))
				return true;
		}
	return false;
}

/* The id of the newest run with that cell. */
static int64_t newest_shown(const struct summary *const *summaries, size_t count, const char *hash)
{
	const struct run_meta *newest = NULL;
	for (size_t run = 0; run < count; run++) {
		const struct run_meta *meta = &summaries[run]->run->meta;
		if (is_shown(&summaries[run], 1, hash) &&
		    (!newest || meta->started_wall_ns > newest->started_wall_ns ||
		     (meta->started_wall_ns == newest->started_wall_ns && meta->id > newest->id)))
			newest = meta;
	}
	return newest ? newest->id : 0;
}

static void release_runs(struct stored_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		stored_run_release(&runs[i]);
	free(runs);
}

/* Keeps the history if it reaches back before the newest shown run. */
static void keep(struct histories *histories, struct history *history, struct stored_run *runs,
		 size_t count)
{
	if (history->count < 2) {
		history_release(history);
		release_runs(runs, count);
		return;
	}
	histories->items[histories->count] = *history;
	histories->runs[histories->count] = runs;
	histories->run_counts[histories->count++] = count;
}

static enum prony_status load_one(struct store *store, const struct summary *const *summaries,
				  size_t count, const char *hash, struct histories *out,
				  struct error *err)
{
	struct stored_run *runs = NULL;
	struct history history;
	size_t loaded = 0;
	enum prony_status status = store_load_history(
		store, hash, newest_shown(summaries, count, hash), RUNS_MAX, &runs, &loaded, err);
	if (status != PRONY_OK)
		return status;
	history_init(&history, runs, loaded, &change_defaults);
	keep(out, &history, runs, loaded);
	return PRONY_OK;
}

enum prony_status histories_load(struct store *store, const struct summary *const *summaries,
				 size_t count, struct histories *out, struct error *err)
{
	struct histories found = {.count = 0};
	struct cell_name *cells = NULL;
	struct arena arena;
	size_t many = 0;
	arena_init(&arena, 0);
	found.items = memory_alloc(CELLS_MAX * sizeof *found.items);
	found.runs = memory_alloc(CELLS_MAX * sizeof *found.runs);
	found.run_counts = memory_alloc(CELLS_MAX * sizeof *found.run_counts);
	enum prony_status status = store_list_cells(store, &arena, &cells, &many, err);
	for (size_t i = 0; i < many && found.count < CELLS_MAX && status == PRONY_OK; i++)
		if (cells[i].runs > 1 && is_shown(summaries, count, cells[i].hash))
			status = load_one(store, summaries, count, cells[i].hash, &found, err);
	arena_release(&arena);
	if (status == PRONY_OK)
		*out = found;
	else
		histories_release(&found);
	return status;
}

void histories_release(struct histories *histories)
{
	if (!histories)
		return;
	for (size_t i = 0; i < histories->count; i++) {
		history_release(&histories->items[i]);
		release_runs(histories->runs[i], histories->run_counts[i]);
	}
	free(histories->items);
	free(histories->runs);
	free(histories->run_counts);
	*histories = (struct histories){.count = 0};
}
