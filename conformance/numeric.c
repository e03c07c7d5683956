/* worker-check --level numeric: the parity gate itself, on each network in every stage offered. */
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "conformance/check_internal.h"
#include "run/gating.h"

#define GATE_SEED 1
#define DETAIL_BYTES 1400

static enum prony_status keep_evidence(void *context, size_t cell, enum cell_status verdict,
				       const json_t *evidence, const char *log, struct error *err)
{
	(void)cell, (void)verdict, (void)log, (void)err;
	json_t **kept = context;
	*kept = json_deep_copy(evidence);
	return PRONY_OK;
}

static int64_t step_of(const json_t *row)
{
	return json_int_or(row, "step", GATE_UPDATES); /* what is of all steps comes last */
}

/* The figures of an evidence by step, as they arose: what went wrong first stands first. */
static json_t *figures_by_step(const json_t *evidence)
{
	const json_t *rows = json_object_get(evidence, "checks");
	json_t *out = json_array();
	for (int64_t step = 0; step <= GATE_UPDATES; step++)
		for (size_t i = 0; i < json_array_size(rows); i++)
			if (step_of(json_array_get(rows, i)) == step)
				json_array_append(out, json_array_get(rows, i));
	return out;
}

/* Which figure is the first that is off, and how many are. */
static void tell_mismatch(const json_t *figures, struct strbuf *out)
{
	size_t off = 0;
	for (size_t i = 0; i < json_array_size(figures); i++) {
		const json_t *row = json_array_get(figures, i);
		if (json_bool_or(row, "passed", true) || off++ > 0)
			continue;
		char text[CHECK_FIGURE_BYTES];
		check_figure_text(row, text);
		strbuf_printf(out, "mismatch: %s", text);
	}
	strbuf_printf(out, "; %zu of %zu figures are off", off, json_array_size(figures));
}

/* *verdict and, of a mismatch, *evidence (new reference); reason: of what is no pass. */
static enum prony_status drive_gate(struct checker *checker, struct plan_cell *cell,
				    struct workload *work, const char *folder,
				    enum cell_status *verdict, json_t **evidence, char *reason,
				    struct error *why)
{
	const struct run_settings settings = {
		.seed = GATE_SEED,
		.self = checker->spec->self,
		.limits = {.request_timeout_ns = checker->spec->timeout_ns,
			   .memory_limit_bytes = checker->spec->memory_limit_bytes},
		.stop = checker->spec->stop,
	};
	const struct run_callbacks callbacks = {.gate = keep_evidence, .context = evidence};
	const struct drive drive = {.settings = &settings,
				    .callbacks = &callbacks,
				    .cell = cell,
				    .work = work,
				    .folder = folder};
	enum prony_status status = workload_write_bundle(work, cell, true, folder, why);
	if (status == PRONY_OK)
		status = gating_run(&drive, NULL, verdict, reason, ERROR_TEXT_BYTES, why);
	if (!checker->spec->keep)
		directory_remove(folder, NULL);
	return status;
}

static void report_gate(struct checker *checker, const char *name, enum cell_status verdict,
			const char *reason, const json_t *evidence)
{
	struct strbuf detail;
	json_t *figures = figures_by_step(evidence);
	strbuf_init(&detail, DETAIL_BYTES);
	if (verdict == CELL_MISMATCH && json_array_size(figures))
		tell_mismatch(figures, &detail);
	else if (verdict != CELL_OK)
		strbuf_printf(&detail, "%s: %s", cell_status_name(verdict), reason);
	check_report(checker, "parity", name,
		     verdict == CELL_OK		   ? CHECK_PASSED
		     : verdict == CELL_UNSUPPORTED ? CHECK_SKIPPED
						   : CHECK_FAILED,
		     strbuf_text(&detail), verdict == CELL_MISMATCH ? figures : NULL);
	strbuf_release(&detail);
	json_decref(figures);
}

static enum prony_status check_gate(struct checker *checker, const struct network *network,
				    enum stage stage, enum cell_status *verdict, struct error *err)
{
	struct error why = ERROR_INIT;
	struct plan_cell cell;
	struct workload work;
	char name[128], place[140], reason[ERROR_TEXT_BYTES] = "";
	json_t *evidence = NULL;
	struct reference_watch watch = {.stop = checker->spec->stop};
	check_cell(checker, network, stage, &cell);
	snprintf(name, sizeof name, "%s, %s", network->name, stage_name(stage));
	snprintf(place, sizeof place, "%s-%s", network->name, stage_name(stage));
	char *folder = path_join(checker->folder, place);
	enum prony_status status = workload_init(&work, &cell, GATE_SEED, &why);
	if (status == PRONY_OK)
		status = workload_need_gate(&work, &cell, GATE_SEED, &watch, &why);
	if (status == PRONY_OK)
		status =
			drive_gate(checker, &cell, &work, folder, verdict, &evidence, reason, &why);
	workload_release(&work);
	if (status == PRONY_OK)
		report_gate(checker, name, *verdict, reason, evidence);
	else
		status = check_conclude(checker, "parity", name, status, &why, err);
	json_decref(evidence);
	free(folder);
	return status;
}

enum prony_status check_numeric(struct checker *checker, struct error *err)
{
	static const enum stage stages[] = {STAGE_FORWARD, STAGE_FORWARD_BACKWARD, STAGE_TRAIN};
	enum prony_status status = PRONY_OK;
	bool all_refused = true;
	for (size_t n = 0; n < checker->network_count; n++)
		for (size_t s = 0; s < sizeof stages / sizeof *stages && status == PRONY_OK; s++) {
			enum cell_status verdict = CELL_PENDING;
			if (!(checker->stages & 1u << stages[s]))
				continue;
			status =
				check_gate(checker, checker->networks[n], stages[s], &verdict, err);
			all_refused = all_refused && verdict == CELL_UNSUPPORTED;
		}
	if (status == PRONY_OK && all_refused)
		check_none_supported(checker, "parity");
	return status;
}
