/* What a plan lacks on this machine, and how much it is to download. */
#ifndef PRONY_CLI_RUN_DOWNLOADS_H
#define PRONY_CLI_RUN_DOWNLOADS_H

#include "base/strbuf.h"
#include "plan/plan.h"

/* Adds a line for each framework and data set that cells are missing for, with the command that
 * gets it and its size (of frameworks as their lock says), and one with the sum; nothing where
 * nothing is missing. */
void downloads_text(const struct plan *plan, struct strbuf *out);

#endif
