/* Drives one worker through the parity gate. */
#ifndef PRONY_RUN_GATING_H
#define PRONY_RUN_GATING_H

#include "run/team.h"

/* What came of it. */
struct gating {
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
 * interrupted. gating_release *out in any case.
 */
enum prony_status gating_run(const struct launch *launch, struct gating *out, struct error *err);
void gating_release(struct gating *gating);

/* As it is stored: the verdict and what the framework said of itself, or why there is none. New
 * reference. */
json_t *gating_evidence(const struct gating *gating);

#endif
