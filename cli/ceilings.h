/* The ceilings of this machine (ceilings/ceilings.h), measured in a process of its own. */
#ifndef PRONY_CLI_CEILINGS_H
#define PRONY_CLI_CEILINGS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Runs `self ceilings` on one logical processor of each core for about a minute at most: each
 * figure is tried for each_ns. *out: what ceilings_to_json gives; new reference. PRONY_CRASHED with
 * what it printed where it does not end well.
 */
enum prony_status ceilings_run(const char *self, const int *cpus, int cpu_count, int64_t each_ns,
			       json_t **out, struct error *err);

/* The same, kept for the machine of the record (borrowed), which gets it too. *out is borrowed from
 * the record. The caller holds the machine's lock (cli/machine_lock.h). */
enum prony_status ceilings_renew(json_t *record, int64_t each_ns, const json_t **out,
				 struct error *err);

/* Prints what was measured, as a table. */
void ceilings_print(const json_t *ceilings);

#endif
