/* worker-check --level numeric: the parity gate on each network in every offered stage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "conformance/check_internal.h"
#include "run/gate_process.h"

#define GATE_SEED 1
#define DETAIL_BYTES 1400

static int step_of(const struct gate_check *figure)
{
	return figure->step < 0 ? GATE_UPDATES
				: figure->step; /* figures over all steps come last */
}

/* Sorts the figures by step, so that the first deviation comes first. The caller frees them. */
static struct gate_check *figures_by_step(const struct gate_verdict *verdict)
{
	struct gate_check *out = memory_alloc((verdict->count + 1) * sizeof *out);
	size_t count = 0;
	for (int step = 0; step <= GATE_UPDATES; step++)
		for (size_t i = 0; i < verdict->count; i++)
			if (step_of(&verdict->checks[i]) == step)
				out[count++] = verdict->checks[i];
	return out;
}

/* Reports the first figure outside its bound, and how many there are. */
static void tell_mismatch(const struct gate_check *figures, size_t count, struct strbuf *out)
{
	size_t off = 0;
	for (size_t i = 0; i < count; i++) {
		if (figures[i].passed || off++ > 0)
			continue;
		char text[CHECK_FIGURE_BYTES];
		check_figure_text(&figures[i], text);
		strbuf_printf(out, "mismatch: %s", text);
	}
	strbuf_printf(out, "; %zu of %zu figures are wrong", off, count);
}

void check_figure_text(const struct gate_check *figure, char text[CHECK_FIGURE_BYTES])
{
	gate_check_text(figure, text);
	size_t used = strlen(text);
	if (figure->ratio != 0 && !figure->reason)
		snprintf(text + used, CHECK_FIGURE_BYTES - used, ", %.2f times the reference's",
			 figure->ratio);
}

/* *out: see gate_process_run; release it. */
static enum prony_status run_gate(struct checker *checker, struct plan_cell *cell,
				  struct workload *work, const char *folder,
				  struct gate_outcome *out, struct error *why)
{
	const struct run_settings settings = {
		.seed = GATE_SEED,
		.self = checker->spec->self,
		.limits = {.request_timeout_ns = checker->spec->timeout_ns,
			   .memory_limit_bytes = checker->spec->memory_limit_bytes},
		.stop = checker->spec->stop,
	};
	const struct run_caller nobody = {.event = NULL};
	const struct launch launch = {.settings = &settings,
				      .caller = &nobody,
				      .cell = cell,
				      .work = work,
				      .folder = folder};
	enum prony_status status = workload_write_bundle(work, cell, true, folder, why);
	if (status == PRONY_OK)
		status = gate_process_run(&launch, out, why);
	if (!checker->spec->keep)
		directory_remove(folder, NULL);
	return status;
}

static void report_gate(struct checker *checker, const char *name,
			const struct gate_outcome *outcome)
{
	bool compared = outcome->status == CELL_MISMATCH && outcome->compared;
	size_t count = compared ? outcome->verdict.count : 0;
	struct gate_check *figures = compared ? figures_by_step(&outcome->verdict) : NULL;
	struct strbuf detail;
	strbuf_init(&detail, DETAIL_BYTES);
	if (compared)
		tell_mismatch(figures, count, &detail);
	else if (outcome->status != CELL_OK)
		strbuf_printf(&detail, "%s: %s", cell_status_name(outcome->status),
			      outcome->reason);
	check_report(checker, "parity", name,
		     outcome->status == CELL_OK		   ? CHECK_PASSED
		     : outcome->status == CELL_UNSUPPORTED ? CHECK_SKIPPED
							   : CHECK_FAILED,
		     strbuf_text(&detail), figures, count);
	strbuf_release(&detail);
	free(figures);
}

static enum prony_status check_gate(struct checker *checker, const struct network *network,
				    enum stage stage, enum cell_status *verdict, struct error *err)
{
	struct error why = ERROR_INIT;
	struct plan_cell cell;
	struct workload work;
	struct gate_outcome outcome = {.status = CELL_PENDING};
	char name[128], place[140];
	struct reference_control control = {.stop = checker->spec->stop};
	check_cell(checker, network, stage, &cell);
	snprintf(name, sizeof name, "%s, %s", network->name, stage_name(stage));
	snprintf(place, sizeof place, "%s-%s", network->name, stage_name(stage));
	char *folder = path_join(checker->folder, place);
	enum prony_status status = workload_init(&work, &cell, GATE_SEED, &why);
	if (status == PRONY_OK)
		status = workload_need_gate(&work, &cell, GATE_SEED, &control, &why);
	if (status == PRONY_OK)
		status = run_gate(checker, &cell, &work, folder, &outcome, &why);
	if (status == PRONY_OK)
		report_gate(checker, name, &outcome);
	else
		status = check_conclude(checker, "parity", name, status, &why, err);
	*verdict = outcome.status;
	gate_outcome_release(&outcome);
	workload_release(&work);
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
