/* Says what the cells of a plan that cannot run need, by cause: a GPU, a data set, a framework. */
#ifndef PRONY_CLI_RUN_NEEDS_H
#define PRONY_CLI_RUN_NEEDS_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "plan/plan.h"

/* Whether the cell cannot run for a cause that needs_text names. */
bool needs_something(const struct plan_cell *cell);

/* Adds a line for each such cause: the number of cells, what they need, and for a framework or a
 * data set the command that gets it with the size of its download. A cell may have several causes.
 */
void needs_text(const struct plan *plan, int width, struct strbuf *out);

#endif
