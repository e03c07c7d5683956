/* Drives one worker through the parity gate. */
#ifndef PRONY_RUN_GATING_H
#define PRONY_RUN_GATING_H

#include "run/gate_cache.h"
#include "run/session.h"

/* Where passes go: under `key` of a cache; NULL: nowhere. */
struct gate_keeper {
	const struct gate_cache *cache;
	const char *key;
};

/*
 * Runs the gate of a cell in a process of its own and hands verdict, evidence and log to the
 * callbacks. *verdict: CELL_OK, CELL_MISMATCH, or how the process failed; `reason` says why. The
 * return value is an error only when the harness itself or a sink failed, or the user interrupted.
 */
enum prony_status gating_run(const struct drive *drive, const struct gate_keeper *keeper,
			     enum cell_status *verdict, char *reason, size_t reason_bytes,
			     struct error *err);

#endif
