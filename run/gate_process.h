/* Drives one worker through the parity gate. */
#ifndef PRONY_RUN_GATE_PROCESS_H
#define PRONY_RUN_GATE_PROCESS_H

#include "run/team.h"

/* Outcome of a gate. */
struct gate_outcome {
	enum cell_status status; /* CELL_OK, CELL_MISMATCH, or how the process failed */
	char reason[ERROR_TEXT_BYTES];
	bool compared; /* else there is no verdict */
	struct gate_verdict verdict;
	json_t *framework; /* what it said of itself; may be NULL */
	/* NULL, or (schedule_internal.h) its "rule" of equal maxima and the worst figure on its own
	 * "data", where it passed on random pixels alone. */
	json_t *equal_maxima;
	char *log;
	struct arena arena;
};

/*
 * Runs the gate of a cell in a process of its own. The names in *out are those of the work's
 * reference. The return value is an error only when the harness itself failed, or the user
 * interrupted. gate_outcome_release *out in any case.
 */
enum prony_status gate_process_run(const struct launch *launch, struct gate_outcome *out,
				   struct error *err);
void gate_outcome_release(struct gate_outcome *outcome);

/* As it is stored: the verdict and what the framework said of itself, or why there is none. New
 * reference. */
json_t *gate_outcome_evidence(const struct gate_outcome *outcome);

#endif
