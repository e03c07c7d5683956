/* Filling in what a framework says of itself (struct probe, struct effective). */
#ifndef PRONY_ADAPTERS_PROBE_H
#define PRONY_ADAPTERS_PROBE_H

#include "adapters/adapter.h"

/* The stages of who trains and has no loader of its own. */
#define PROBE_TRAINER (1u << STAGE_FORWARD | 1u << STAGE_FORWARD_BACKWARD | 1u << STAGE_TRAIN)

/* Where no library is named: PRONY_MISSING says how to name one or install it. `file`: what it is
 * called, "libmxnet.so". */
enum prony_status probe_library_named(const struct session *s, const char *framework,
				      const char *file, struct error *err);

/* Appends a math library with the first line of what it says its version is. */
void probe_add_library(struct probe *found, const char *name, const char *version);

/*
 * For a framework that does not say which instructions it uses: how its kernels come by theirs
 * ("oneDNN by cpuid"), and what this processor has of those that such choices are made by.
 */
void probe_add_processor(struct probe *found, const char *how);

/* The variable's text; `otherwise` where it is not set or empty. */
const char *probe_environment(const char *name, const char *otherwise);

#endif
