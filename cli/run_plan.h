/* A plan in words: what `prony run --dry-run` prints. */
#ifndef PRONY_CLI_RUN_PLAN_H
#define PRONY_CLI_RUN_PLAN_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "plan/plan.h"

/*
 * Adds what all cells have in common, a paragraph of frameworks for each comparison, then those
 * that cannot run, with the reason; those of one reason share a line. `width`: columns of the
 * terminal.
 */
void plan_text(const struct plan *plan, int width, struct strbuf *out);

/* Adds in one line how many cells of frameworks that are here cannot run for want of something
 * else, data or a device, and the reasons; false, and nothing added, where there are none. What of
 * frameworks is not here the table says, and what they cannot do. */
bool plan_lacks_text(const struct plan *plan, struct strbuf *out);

/* A line for each cell: its key, what would become of it, and the command of its worker. */
void plan_commands_text(const struct plan *plan, struct strbuf *out);

#endif
