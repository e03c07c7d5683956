/* Fills a store with the invented runs of unit/report_fixture.h: report_store FILE RUNS. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/report_fixture.h"

static enum prony_status store_one_cell(struct store *store, int64_t run,
					const struct stored_cell *cell, struct error *err)
{
	int64_t id = 0;
	enum prony_status status = store_cell(store, run, &cell->cell, &id, err);
	if (status == PRONY_OK && cell->framework)
		status = store_cell_framework(store, id, cell->framework, err);
	if (status == PRONY_OK && cell->evidence)
		status = store_gate(store, id, cell->gate, cell->evidence, cell->gate_log, err);
	for (size_t p = 0; p < cell->process_count && status == PRONY_OK; p++)
		status = store_process(store, id, &cell->processes[p], err);
	if (status == PRONY_OK)
		status = store_cell_status(store, id, cell->status, cell->flags, cell->reason, err);
	return status;
}

static enum prony_status store_one_run(struct store *store, int machine, struct error *err)
{
	struct stored_run run;
	report_fixture_init(&run, machine);
	int64_t finished = run.meta.finished_wall_ns;
	run.meta.finished_wall_ns = RECORD_NONE;
	enum prony_status status = store_run_begin(store, &run.meta, err);
	for (size_t i = 0; i < run.cell_count && status == PRONY_OK; i++)
		status = store_one_cell(store, run.meta.id, &run.cells[i], err);
	if (status == PRONY_OK)
		status = store_run_finish(store, run.meta.id, finished, err);
	stored_run_release(&run);
	return status;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	if (argc != 3)
		return 64;
	enum prony_status status = store_open(argv[1], false, &store, &err);
	for (int i = 0; i < strtol(argv[2], NULL, 10) && status == PRONY_OK; i++)
		status = store_one_run(store, i % 2, &err);
	store_close(store);
	if (status != PRONY_OK)
		fprintf(stderr, "report_store: %s\n", err.text);
	return prony_status_exit(status);
}
