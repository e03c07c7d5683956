/* Rows as JSON objects, printed as a table. */
#ifndef PRONY_CLI_LISTING_H
#define PRONY_CLI_LISTING_H

#include <jansson.h>

#include "frameworks/registry.h"
#include "report/table.h"

/* Missing texts ("" and NULL) are null for programs. */
json_t *listing_text(const char *text);

/* Prints an array of objects by columns, which end with title NULL; a row's `reason` stands below
 * it. */
void listing_print(const struct table_column *columns, const json_t *rows);

extern const struct table_column framework_columns[];

/* One row for each framework, backend and named environment; new reference. */
json_t *framework_rows(struct registry *registry);

/* Prints the frameworks named (NAME[@ENV][:BACKEND], known ones), all when count is 0; returns the
 * exit code. */
int listing_frameworks(struct registry *registry, const char *const *words, size_t count,
		       const char *format);

#endif
