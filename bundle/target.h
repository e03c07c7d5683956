/*
 * As what and on what a framework runs, which it may have to know before it is loaded: the members
 * of the request hello (docs/worker-protocol.md). The recipe says the rest.
 */
#ifndef PRONY_BUNDLE_TARGET_H
#define PRONY_BUNDLE_TARGET_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define TARGET_WORD_BYTES 64

struct target {
	char device[TARGET_WORD_BYTES];	 /* "cpu", "cuda:0" */
	char backend[TARGET_WORD_BYTES]; /* "" = none */
	char options[TARGET_WORD_BYTES]; /* words with commas between them; "" = none */
	int rank, world_size;		 /* of the worker: 0 <= rank < world_size; alone 0 and 1 */
};

/* The CPU, no backend, no options, alone. */
void target_defaults(struct target *target);

/* The device that a cell's spelling means: how many cores is told by the threads of the recipe. */
void target_set_device(struct target *target, const char *spelling);

bool target_has_option(const struct target *target, const char *word);

/* An object with the members device, backend, options (an array), rank and world_size. */
json_t *target_to_json(const struct target *target); /* new reference */

/* Reads these members of a hello; others are ignored. PRONY_BAD_INPUT names the one that is wrong.
 */
enum prony_status target_from_json(const json_t *json, struct target *out, struct error *err);

#endif
