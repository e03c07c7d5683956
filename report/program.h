/* Which prony measured a run, from the record of its machine (docs/store.md). */
#ifndef PRONY_REPORT_PROGRAM_H
#define PRONY_REPORT_PROGRAM_H

#include <jansson.h>

#include "store/store.h"

#define PROGRAM_BYTES 128
#define PROGRAM_HASH_SHOWN 12 /* digits of a SHA-256 that are shown */

/* `part`: "build" or "sha256". NULL in runs of a prony that did not store it. Borrowed from the
 * record, which may be NULL. */
const char *program_part(const json_t *environment, const char *part);

/* Writes "0.1.0 (8dd7d62, sha256 5d967fe569d2)", or "0.1.0" without parts. */
void program_text(const struct run_meta *meta, const json_t *environment, char out[PROGRAM_BYTES]);

/* The libraries of native, the floor, that the run loaded: SHA-256 by the name of the framework
 * ("native", "native@3.6"); NULL if none is known. Borrowed from the record. */
json_t *program_libraries(const json_t *environment);

/* Removes all of this from a record. */
void program_remove(json_t *environment);

#endif
