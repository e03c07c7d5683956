/* Drives one worker through the parity gate. */
#ifndef PRONY_RUN_GATING_H
#define PRONY_RUN_GATING_H

#include "run/session.h"

/*
 * Runs the gate of a cell in a process of its own and hands verdict, evidence and log to the
 * callbacks. *verdict: CELL_OK, CELL_MISMATCH, or how the process failed; `reason` says why. The
 * return value is an error only when the harness itself or a sink failed, or the user interrupted.
 */
enum prony_status gating_run(const struct drive *drive, enum cell_status *verdict, char *reason,
			     size_t reason_bytes, struct error *err);

#endif
