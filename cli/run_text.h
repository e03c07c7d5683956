/* Describes a run in one line, and as a row of `prony list runs`. */
#ifndef PRONY_CLI_RUN_TEXT_H
#define PRONY_CLI_RUN_TEXT_H

#include <jansson.h>

#include "report/table.h"
#include "store/store.h"

/* Prints "run 12 (a1b2c3d4) main, quickstart, 2026-11-18T11:06:40Z, on slow: 10 cells, 33
 * processes". */
void run_say(const struct run_extent *run);

extern const struct table_column run_columns[]; /* ends with title NULL */

/* Returns the runs of a store (NULL: the default one) with a tag (NULL: all), the newest first; new
 * reference, NULL with err. */
json_t *run_rows(const char *store, const char *tag, struct error *err);

#endif
