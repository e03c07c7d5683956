/* Drives one worker through the parity gate. */
#ifndef PRONY_RUN_GATE_PROCESS_H
#define PRONY_RUN_GATE_PROCESS_H

#include "run/team.h"

/* The outcome of a gate. */
struct gate_outcome {
	enum cell_status status; /* CELL_OK, CELL_MISMATCH, or how the process failed */
	char reason[ERROR_TEXT_BYTES];
	bool compared; /* otherwise there is no verdict */
	struct gate_verdict verdict;
	json_t *framework; /* the worker's own description; may be NULL */
	/* NULL, or (schedule_internal.h) its "rule" for equal maxima and the worst figure on its
	 * own "data", if it passed only on random pixels. */
	json_t *equal_maxima;
	char *log;
	struct arena arena;
};

/* Runs the gate of a cell in its own process. The names in *out belong to the work's reference. The
 * return value is an error only if the harness failed or the user interrupted. Call
 * gate_outcome_release(out) in any case. */
enum prony_status gate_process_run(const struct launch *launch, struct gate_outcome *out,
				   struct error *err);
void gate_outcome_release(struct gate_outcome *outcome);

/* Returns the evidence to store: the verdict and the worker's own description, or why there is no
 * verdict. New reference. */
json_t *gate_outcome_evidence(const struct gate_outcome *outcome);

#endif
