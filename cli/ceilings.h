/* Measures the ceilings of this machine (ceilings/ceilings.h) in a separate process. */
#ifndef PRONY_CLI_CEILINGS_H
#define PRONY_CLI_CEILINGS_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* Runs `self ceilings` on one logical processor per core, for about a minute at most; each figure
 * takes each_ns. *out: the JSON of ceilings_to_json; new reference. PRONY_CRASHED, with its output,
 * when it fails. */
enum prony_status ceilings_run(const char *self, const int *cpus, int cpu_count, int64_t each_ns,
			       json_t **out, struct error *err);

/* The same, stored for the machine of the record (borrowed) and added to the record. *out is
 * borrowed from the record. The caller holds the machine lock (cli/machine_lock.h). */
enum prony_status ceilings_renew(json_t *record, int64_t each_ns, const json_t **out,
				 struct error *err);

/* Prints the result as a table. */
void ceilings_print(const json_t *ceilings);

#endif
