/* Prints rows of JSON objects as a table. */
#ifndef PRONY_CLI_LISTING_H
#define PRONY_CLI_LISTING_H

#include <jansson.h>

#include "frameworks/registry.h"
#include "report/table.h"

/* Missing texts ("" and NULL) become null. */
json_t *listing_text(const char *text);

/* Prints an array of objects by columns, which end with title NULL; a row's `reason` is printed
 * below it. */
void listing_print(const struct table_column *columns, const json_t *rows);

extern const struct table_column framework_columns[];

/* One row per framework, backend and named environment; new reference. */
json_t *framework_rows(struct registry *registry);

/* Prints the named frameworks (NAME[@ENV][:BACKEND], which must be known), or all when count is 0;
 * `full`: also the places where missing ones were searched. Returns the exit code. */
int listing_frameworks(struct registry *registry, const char *const *words, size_t count,
		       const char *format, bool full);

#endif
