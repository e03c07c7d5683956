/* worker-check --level numeric: the parity gate itself, on two networks in every stage offered. */
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "conformance/check_internal.h"
#include "run/gating.h"

#define GATE_SEED 1

static enum prony_status drop_gate(void *context, size_t cell, enum cell_status verdict,
				   const json_t *evidence, const char *log, struct error *err)
{
	(void)context, (void)cell, (void)verdict, (void)evidence, (void)log, (void)err;
	return PRONY_OK; /* verdict and reason come back from gating_run as well */
}

/* *why is set when the gate does not pass. */
static enum prony_status drive_gate(struct checker *checker, struct plan_cell *cell,
				    struct workload *work, struct error *why)
{
	const struct run_settings settings = {
		.seed = GATE_SEED,
		.self = checker->spec->self,
		.limits = {.request_timeout_ns = checker->spec->timeout_ns,
			   .memory_limit_bytes = checker->spec->memory_limit_bytes},
		.stop = checker->spec->stop,
	};
	const struct run_callbacks callbacks = {.gate = drop_gate};
	char *folder = path_join(checker->folder, "gate"), reason[ERROR_TEXT_BYTES] = "";
	const struct drive drive = {.settings = &settings,
				    .callbacks = &callbacks,
				    .cell = cell,
				    .work = work,
				    .folder = folder};
	enum cell_status verdict = CELL_PENDING;
	enum prony_status status = workload_write_bundle(work, cell, true, folder, why);
	if (status == PRONY_OK)
		status = gating_run(&drive, NULL, &verdict, reason, sizeof reason, why);
	if (status == PRONY_OK && verdict != CELL_OK)
		status =
			error_set(why, PRONY_MISMATCH, "%s: %s", cell_status_name(verdict), reason);
	directory_remove(folder, NULL);
	free(folder);
	return status;
}

static enum prony_status check_gate(struct checker *checker, const struct network *network,
				    enum stage stage, struct error *err)
{
	struct error why = ERROR_INIT;
	struct plan_cell cell;
	struct workload work;
	struct reference_watch watch = {.stop = checker->spec->stop};
	char name[64];
	check_cell(checker, network, stage, &cell);
	snprintf(name, sizeof name, "%s, %s", network->name, stage_name(stage));
	enum prony_status status = workload_init(&work, &cell, GATE_SEED, &why);
	if (status == PRONY_OK)
		status = workload_need_gate(&work, &cell, GATE_SEED, &watch, &why);
	if (status == PRONY_OK)
		status = drive_gate(checker, &cell, &work, &why);
	workload_release(&work);
	return check_conclude(checker, "parity", name, status, &why, err);
}

enum prony_status check_numeric(struct checker *checker, struct error *err)
{
	static const char *const names[] = {"mlp", "lenet"};
	static const enum stage stages[] = {STAGE_FORWARD, STAGE_FORWARD_BACKWARD, STAGE_TRAIN};
	enum prony_status status = PRONY_OK;
	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		for (size_t s = 0; s < sizeof stages / sizeof *stages && status == PRONY_OK; s++)
			if (checker->stages & 1u << stages[s])
				status = check_gate(checker, zoo_find(names[n], NULL), stages[s],
						    err);
	return status;
}
