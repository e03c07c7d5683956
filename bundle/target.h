/* The target of a framework: device, backend, options and rank, which it may need before it is
 * loaded. These are members of the request hello (docs/worker-protocol.md). All other settings are
 * in the recipe. */
#ifndef PRONY_BUNDLE_TARGET_H
#define PRONY_BUNDLE_TARGET_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define TARGET_WORD_BYTES 64
#define TARGET_RANKS_MAX 64

struct target {
	char device[TARGET_WORD_BYTES];	 /* "cpu", "cuda:0" */
	char backend[TARGET_WORD_BYTES]; /* "" = none */
	char options[TARGET_WORD_BYTES]; /* comma-separated words; "" = none */
	int rank, world_size;		 /* worker: 0 <= rank < world_size; a single one: 0 and 1 */
	/* How ranks find each other; only if there are several. */
	struct rendezvous {
		char folder[256]; /* empty, for files that they share */
		/* Free on 127.0.0.1: one for a coordinator, then one for each rank. */
		int ports[1 + TARGET_RANKS_MAX];
	} rendezvous;
};

/* Sets the CPU, no backend, no options, one worker. */
void target_defaults(struct target *target);

/* Sets the device that a cell's spelling names. The number of cores is in the recipe's threads. */
void target_set_device(struct target *target, const char *spelling);

bool target_has_option(const struct target *target, const char *word);

/* Returns an object with the members device, backend, options (an array), rank and world_size; of
 * several ranks also local_rank and rendezvous. */
json_t *target_to_json(const struct target *target); /* new reference */

/* Reads these members of a hello; others are ignored. PRONY_BAD_INPUT names the wrong one. */
enum prony_status target_from_json(const json_t *json, struct target *out, struct error *err);

#endif
