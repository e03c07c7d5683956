/* Helpers that fill in struct probe and struct effective. */
#ifndef PRONY_ADAPTERS_PROBE_H
#define PRONY_ADAPTERS_PROBE_H

#include "adapters/adapter.h"

/* The stages of a framework that trains and has no data loader. */
#define PROBE_TRAINER (1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN)

/* PRONY_MISSING when no library is named; the message says how to name or install one. `file`: its
 * name, "libmxnet.so". */
enum prony_status probe_library_named(const struct session *s, const char *framework,
				      const char *file, struct error *err);

/* Adds a math library with the first line of its version text. */
void probe_add_library(struct probe *found, const char *name, const char *version);

/* For a framework that does not report its instructions: how its kernels are selected ("oneDNN by
 * cpuid"), and which relevant instructions this processor has. */
void probe_add_processor(struct probe *found, const char *how);

/* The value of the variable; `otherwise` when it is unset or empty. */
const char *probe_environment(const char *name, const char *otherwise);

#endif
