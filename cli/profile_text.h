/* Formats profiles as tables. */
#ifndef PRONY_CLI_PROFILE_TEXT_H
#define PRONY_CLI_PROFILE_TEXT_H

#include "base/strbuf.h"
#include "profile/profile.h"

/* Adds the phases of all profiles side by side, then layers, lines and processors of each; `top`:
 * rows of a table. */
void profile_text(const struct profile *profiles, size_t count, size_t top, bool colour, int width,
		  struct strbuf *out);

#endif
