/* The cache of gate verdicts between runs, so that a second run starts measuring at once. The key
 * of a verdict covers everything that could change it: the work, prony itself, the worker and its
 * files, the framework's description and files, environment variables, the machine. Only passes are
 * kept, and only for frameworks whose files prony installed. When the worker is timed, its own
 * description is compared with the one in the gate (gate_cache_agrees). */
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
	/* The framework of the last request, kept because it has many files. */
	char framework[CELL_WORD_BYTES], framework_files[DIGEST_HEX_BYTES];
	bool framework_known;
};

/* `self`: path of prony's executable; if it cannot be read, nothing is kept. End with
 * gate_cache_close. */
void gate_cache_open(struct gate_cache *out, const char *self);
void gate_cache_close(struct gate_cache *cache);

/* Computes the key of a cell's verdict; its work must have its gate's case (workload.h). False if
 * the verdict cannot be kept. */
bool gate_cache_key(struct gate_cache *cache, const struct plan_cell *cell,
		    const struct workload *work, char key[DIGEST_HEX_BYTES]);

struct kept_gate {
	json_t *evidence; /* with "cached", the date of the gate; owned */
	char *log;	  /* owned */
};

/* Reads a kept verdict; false if there is none. */
bool gate_cache_read(const struct gate_cache *cache, const char *key, struct kept_gate *out);
/* Keeps a pass, and ignores every other verdict. Write errors are ignored. */
void gate_cache_write(const struct gate_cache *cache, const char *key,
		      const struct gate_outcome *outcome);
void kept_gate_release(struct kept_gate *kept);

/* Whether a worker's own description (version, libraries, instruction set) in `details` equals the
 * one in the gate's evidence. */
bool gate_cache_agrees(const json_t *evidence, const json_t *details);

#endif
