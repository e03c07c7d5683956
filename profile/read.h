/* Reads what a worker writes for a profile request: docs/case-bundle.md, "profile.json". */
#ifndef PRONY_PROFILE_READ_H
#define PRONY_PROFILE_READ_H

#include "profile/profile.h"

/* Maximum size of a file written by a worker. */
#define PROFILE_FILE_BYTES_MAX ((size_t)256 << 20)

/* Our clock before and after the profiled steps. */
struct profile_bracket {
	int64_t begin_ns, end_ns, steps;
};

/* Read profile.json and check every member: PRONY_PROTOCOL names the event or line and the fault.
 * The first function fills in spans, layer_steps and layer_step_ns, the second everything about
 * lines. */
enum prony_status profile_read_layers(struct profile *profile, const char *path,
				      const struct profile_bracket *bracket, struct error *err);
enum prony_status profile_read_lines(struct profile *profile, const char *path,
				     const struct profile_bracket *bracket, struct error *err);

#endif
