/* Environment variables that change what is measured. */
#ifndef PRONY_DIAGNOSE_ENVIRONMENT_H
#define PRONY_DIAGNOSE_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

/* Variables for threads, devices, precision, allocators and framework switches, sorted by name.
 * Only names on an allow-list are recorded, and never a name that looks like a secret. New
 * reference. */
json_t *environment_settings(void);

/* Search paths of libraries and modules, and prony's own variables. New reference. */
json_t *environment_paths(void);

/* Whether a flag of /proc/cpuinfo affects which instructions a framework chooses. */
bool instruction_flag_matters(const char *flag);

#endif
