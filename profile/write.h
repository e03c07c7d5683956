/* Profiles as text for programs. Times are of one step unless the name of a member says otherwise.
 */
#ifndef PRONY_PROFILE_WRITE_H
#define PRONY_PROFILE_WRITE_H

#include "base/strbuf.h"
#include "profile/profile.h"

/* What everybody has to read who sees figures of a profile. */
extern const char profile_caution[];

/* An array with an object for each. */
void profile_write_json(const struct profile *profiles, size_t count, struct strbuf *out);
/* A row for each phase, layer, line and processor. */
void profile_write_csv(const struct profile *profiles, size_t count, struct strbuf *out);
/* Trace events ("JSON Object Format" of Google's Trace Event Format), for chrome://tracing,
 * Perfetto and Speedscope: a process for each profile. */
void profile_write_chrome(const struct profile *profiles, size_t count, struct strbuf *out);
/* Folded stacks, for flamegraph.pl and Speedscope: "framework;layer;pass;event nanoseconds". */
void profile_write_folded(const struct profile *profiles, size_t count, struct strbuf *out);

#endif
