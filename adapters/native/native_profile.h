/* Profiles of the native executor: instants around each command of the program, or what the
 * backend's device recorded of them. */
#ifndef PRONY_ADAPTERS_NATIVE_NATIVE_PROFILE_H
#define PRONY_ADAPTERS_NATIVE_NATIVE_PROFILE_H

#include "adapters/native/program.h"
#include "adapters/profile.h"
#include "graph/graph.h"

/* As in struct adapter_profile; `graph` is the program's, with its backward pass. */
enum prony_status native_profile_begin(struct program *program, int64_t steps,
				       int64_t (*now_ns)(void), struct error *err);
enum prony_status native_profile_end(struct program *program, const struct graph *graph,
				     const int64_t *instants, int64_t steps,
				     struct profile_log *log, struct error *err);

/* What command `i` is to the network: the event's name, kind, layer and pass. */
void native_profile_describe(const struct graph *graph, const struct program *program, int i,
			     struct profile_event *event);

#endif
