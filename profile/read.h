/* What a worker writes when it is asked for a profile: docs/case-bundle.md, "profile.json". */
#ifndef PRONY_PROFILE_READ_H
#define PRONY_PROFILE_READ_H

#include "profile/profile.h"

/* A file that a worker writes may have so many bytes. */
#define PROFILE_FILE_BYTES_MAX ((size_t)256 << 20)

/* The instants that bracket the profiled steps on our clock. */
struct profile_bracket {
	int64_t begin_ns, end_ns, steps;
};

/*
 * Read profile.json. Every member is checked: PRONY_PROTOCOL names the event or line and what is
 * wrong with it. The first fills spans, layer_steps and layer_step_ns, the second all of the lines.
 */
enum prony_status profile_read_layers(struct profile *profile, const char *path,
				      const struct profile_bracket *bracket, struct error *err);
enum prony_status profile_read_lines(struct profile *profile, const char *path,
				     const struct profile_bracket *bracket, struct error *err);

#endif
