/* Lists what a plan lacks on this machine, and the size of the downloads. */
#ifndef PRONY_CLI_RUN_DOWNLOADS_H
#define PRONY_CLI_RUN_DOWNLOADS_H

#include "base/strbuf.h"
#include "plan/plan.h"

/* Adds a line for each framework and data set that cells lack, with the command that gets it and
 * its size (for frameworks as stated in their lock), and one with the sum. Adds nothing if nothing
 * is missing. */
void downloads_text(const struct plan *plan, struct strbuf *out);

#endif
