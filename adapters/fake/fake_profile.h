/* Profiles of the fake adapter: the end of each node of the executor. Simulated waits are in no
 * node. */
#ifndef PRONY_ADAPTERS_FAKE_FAKE_PROFILE_H
#define PRONY_ADAPTERS_FAKE_FAKE_PROFILE_H

#include "adapters/fake/executor.h"
#include "adapters/profile.h"

/* As in struct adapter_profile. */
enum prony_status fake_profile_begin(struct executor *executor, int64_t steps,
				     int64_t (*now_ns)(void), struct error *err);
enum prony_status fake_profile_end(struct executor *executor, const int64_t *instants,
				   int64_t steps, struct profile_log *log, struct error *err);

#endif
