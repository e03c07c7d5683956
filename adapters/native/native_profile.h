/* Profiles of the native executor: instants around each command of the program. */
#ifndef PRONY_ADAPTERS_NATIVE_NATIVE_PROFILE_H
#define PRONY_ADAPTERS_NATIVE_NATIVE_PROFILE_H

#include "adapters/native/program.h"
#include "adapters/profile.h"
#include "graph/graph.h"

/* As in struct adapter_profile; `graph` is the program's, with its backward pass. */
enum prony_status native_profile_begin(struct program *program, int64_t steps,
				       int64_t (*now_ns)(void), struct error *err);
enum prony_status native_profile_end(struct program *program, const struct graph *graph,
				     int64_t steps, struct profile_log *log, struct error *err);

#endif
