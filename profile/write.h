/* Writes profiles in machine-readable formats. Times are per step unless a member's name says
 * otherwise. */
#ifndef PRONY_PROFILE_WRITE_H
#define PRONY_PROFILE_WRITE_H

#include "base/strbuf.h"
#include "profile/profile.h"

/* The warning that must accompany figures of a profile. */
extern const char profile_caution[];

/* JSON: an array with one object per profile. */
void profile_write_json(const struct profile *profiles, size_t count, struct strbuf *out);
/* CSV: one row per phase, layer, line and processor. */
void profile_write_csv(const struct profile *profiles, size_t count, struct strbuf *out);
/* Trace events ("JSON Object Format" of Google's Trace Event Format) for chrome://tracing, Perfetto
 * and Speedscope; one process per profile. */
void profile_write_chrome(const struct profile *profiles, size_t count, struct strbuf *out);
/* Folded stacks, for flamegraph.pl and Speedscope: "framework;layer;pass;event nanoseconds". */
void profile_write_folded(const struct profile *profiles, size_t count, struct strbuf *out);

#endif
