/* Measures the end of a large run: loads a store of 16,384 cells and lays out its table, within
 * bounds of memory and time. bench_tables FILE [CELLS] [BYTES_MIB SECONDS]: makes FILE if it does
 * not exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/files.h"
#include "report/export.h"
#include "report/html.h"
#include "report/summary.h"
#include "store/store.h"

enum { CELLS = 16384, FRAMEWORKS = 4, PROCESSES = 3, CHECKS = 30 };
#define MIB_MAX 256.0
#define SECONDS_MAX 2.0

static void demand(enum prony_status status, const struct error *err)
{
	if (status == PRONY_OK)
		return;
	fprintf(stderr, "bench_tables: %s\n", err->text);
	exit(EXIT_FAILURE);
}

/* As long as the evidence of a gate of a network of ten layers. */
static json_t *make_evidence(void)
{
	json_t *checks = json_array();

	for (int i = 0; i < CHECKS; i++)
		json_array_append_new(checks,
				      json_pack("{s:s, s:s, s:i, s:f, s:f, s:b}", "what", "change",
						"tensor", "layer.weight", "step", i % 3, "value",
						1.25e-5 * i, "bound", 5e-5, "passed", 1));
	json_t *worst = json_incref(json_array_get(checks, CHECKS - 1));
	return json_pack("{s:b, s:o, s:i, s:I, s:i, s:o}", "passed", 1, "checks", checks,
			 "parameters", 431080, "macs", (json_int_t)36708000, "gate_batch", 16,
			 "worst", worst);
}

static void fill_process(struct process_record *record, int replicate, double step_ns)
{
	process_record_init(record);
	record->replicate = record->round = replicate;
	snprintf(record->status, sizeof record->status, "ok");
	record->steps = 1000;
	record->step_mean_ns = step_ns * (1 + 0.01 * replicate);
	record->window_ns = (int64_t)(1000 * record->step_mean_ns);
	record->to_first_step_ns = 1000000000;
	record->rss_peak_bytes = 100000000;
}

static void add_cell(struct store *store, int64_t run, int i, const json_t *details,
		     const json_t *evidence)
{
	static const char *const frameworks[FRAMEWORKS] = {"native", "pytorch", "mxnet", "jax"};
	struct error err = ERROR_INIT;
	struct cell cell;
	int64_t id = 0;

	cell_defaults(&cell);
	cell.batch = 1 + i / FRAMEWORKS;
	demand(cell_parse_framework(frameworks[i % FRAMEWORKS], &cell, &err), &err);
	demand(store_cell(store, run, &cell, &id, &err), &err);
	demand(store_cell_framework(store, id, details, &err), &err);
	demand(store_gate(store, id, CELL_OK, evidence, "", &err), &err);
	for (int p = 0; p < PROCESSES; p++) {
		struct process_record record;
		fill_process(&record, p, 1e6 * (1 + i % 7));
		demand(store_process(store, id, &record, &err), &err);
		process_record_release(&record);
	}
	demand(store_cell_status(store, id, CELL_OK, 0, "", &err), &err);
}

static void fill(const char *path, int cells)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct run_meta meta = {.effort = "quick",
				.version = "bench",
				.statistic = "geometric",
				.environment = "{}",
				.environment_hash = "0123456789abcdef",
				.host = "here",
				.started_wall_ns = 1,
				.finished_wall_ns = 2};
	json_t *details = json_pack("{s:s, s:s}", "version", "1.0", "origin", "installed");
	json_t *evidence = make_evidence();

	demand(store_open(path, false, &store, &err), &err);
	demand(store_batch_begin(store, &err), &err);
	demand(store_run_begin(store, &meta, &err), &err);
	for (int i = 0; i < cells; i++)
		add_cell(store, meta.id, i, details, evidence);
	demand(store_batch_end(store, PRONY_OK, &err), &err);
	store_close(store);
	json_decref(evidence);
	json_decref(details);
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct store *store = NULL;
	struct stored_run run;
	struct summary summary;
	struct strbuf text;
	struct rusage usage;
	int cells = argc > 2 ? (int)strtol(argv[2], NULL, 10) : CELLS;

	if (argc < 2) {
		fprintf(stderr, "bench_tables STORE [CELLS]: made where it is not there\n");
		return 64;
	}
	const char *path = argv[1];
	if (!file_exists(path))
		fill(path, cells);
	int64_t begin_ns = clock_monotonic_ns();
	demand(store_open(path, true, &store, &err), &err);
	demand(store_load_run(store, "", 0, &run, &err), &err);
	int64_t loaded_ns = clock_monotonic_ns();
	summary_init(&summary, &run);
	int64_t summed_ns = clock_monotonic_ns();
	strbuf_init(&text, 0);
	summary_render(&summary, false, 120, &text);
	int64_t end_ns = clock_monotonic_ns();
	getrusage(RUSAGE_SELF, &usage);
	double seconds = (double)(end_ns - begin_ns) * 1e-9, mib = (double)usage.ru_maxrss / 1024;
	printf("%zu cells, %zu comparisons: %.2f s (load %.2f, summary %.2f, table %.2f), "
	       "%.0f MiB; at most %.0f s, %.0f MiB\n",
	       run.cell_count, summary.comparison_count, seconds,
	       (double)(loaded_ns - begin_ns) * 1e-9, (double)(summed_ns - loaded_ns) * 1e-9,
	       (double)(end_ns - summed_ns) * 1e-9, mib, SECONDS_MAX, MIB_MAX);
	strbuf_release(&text);
	summary_release(&summary);
	stored_run_release(&run);
	store_close(store);
	return seconds <= SECONDS_MAX && mib <= MIB_MAX ? EXIT_SUCCESS : EXIT_FAILURE;
}
