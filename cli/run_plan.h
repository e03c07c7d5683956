/* Describes a plan in text: the output of `prony run --dry-run`. */
#ifndef PRONY_CLI_RUN_PLAN_H
#define PRONY_CLI_RUN_PLAN_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "plan/plan.h"

/* Adds what all cells have in common, a paragraph of frameworks for each comparison, then the cells
 * that cannot run, by cause (run_needs.h); `full`: with the reasons, and cells with the same reason
 * share a line. `width`: columns of the terminal. */
void plan_text(const struct plan *plan, int width, bool full, struct strbuf *out);

/* Adds one line: how many cells cannot run although their framework is here, because data or a
 * device is missing, and the reasons. Returns false and adds nothing if there are none. The table
 * shows the frameworks that are not here and the unsupported cells. */
bool plan_lacks_text(const struct plan *plan, struct strbuf *out);

/* Adds a line for each cell: its key, its status, and the command of its worker. */
void plan_commands_text(const struct plan *plan, struct strbuf *out);

#endif
