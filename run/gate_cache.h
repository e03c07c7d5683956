/*
 * Verdicts of the gate that are kept between runs, so that a second run starts measuring at once. A
 * verdict stands for everything that could change it: the work, our program, the worker and its
 * files, the framework's description and files, variables, the machine. Only passes are kept, and
 * only those of frameworks whose files we installed ourselves. What the worker says of itself when
 * it is timed is held against what it said in the gate (gate_cache_agrees).
 */
#ifndef PRONY_RUN_GATE_CACHE_H
#define PRONY_RUN_GATE_CACHE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/cache.h"
#include "plan/plan.h"
#include "run/gate_process.h"

#define GATE_CACHE "gates"
#define GATE_CACHE_LIMIT_BYTES (INT64_C(64) << 20)

struct gate_cache {
	struct cache cache;
	char program[DIGEST_HEX_BYTES], machine[DIGEST_HEX_BYTES];
	/* The framework that was asked for last: its files are many. */
	char framework[CELL_WORD_BYTES], framework_files[DIGEST_HEX_BYTES];
	bool framework_known;
};

/* `self`: our executable. Where it cannot be read nothing is kept. gate_cache_close it. */
void gate_cache_open(struct gate_cache *out, const char *self);
void gate_cache_close(struct gate_cache *cache);

/* Under which key the verdict of a cell is kept, whose work has its gate's case (workload.h).
 * False: under none. */
bool gate_cache_key(struct gate_cache *cache, const struct plan_cell *cell,
		    const struct workload *work, char key[DIGEST_HEX_BYTES]);

struct kept_gate {
	json_t *evidence; /* with "cached": the date on which the gate ran; owned */
	char *log;	  /* owned */
};

/* False when there is none. */
bool gate_cache_read(const struct gate_cache *cache, const char *key, struct kept_gate *out);
/* Keeps a pass, nothing else; a failure to write is nobody's concern. */
void gate_cache_write(const struct gate_cache *cache, const char *key,
		      const struct gate_outcome *outcome);
void kept_gate_release(struct kept_gate *kept);

/* Whether a worker says the same of itself (version, libraries, instruction set) in `details` as it
 * did in the gate of that evidence. */
bool gate_cache_agrees(const json_t *evidence, const json_t *details);

#endif
