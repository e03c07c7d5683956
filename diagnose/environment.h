/* Variables of the environment that change what is measured. */
#ifndef PRONY_DIAGNOSE_ENVIRONMENT_H
#define PRONY_DIAGNOSE_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

/* Threads, devices, precision, allocators and switches of the frameworks, sorted by name. Only an
 * allow-list leaves the process; names that hold a secret never do. New reference. */
json_t *environment_settings(void);

/* Where libraries and modules are looked for; prony's own variables. New reference. */
json_t *environment_paths(void);

/* Whether a flag of /proc/cpuinfo changes which arithmetic a framework chooses. */
bool instruction_flag_matters(const char *flag);

#endif
