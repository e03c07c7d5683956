/* Code shared by commands that read results: opens the store, loads runs, writes output. */
#ifndef PRONY_CLI_RESULTS_H
#define PRONY_CLI_RESULTS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "report/summary.h"
#include "store/store.h"

/* Opens the store (NULL: the default one) and loads a run with these parts (STORE_). */
enum prony_status results_load_run(const char *store, const char *which, unsigned parts,
				   struct stored_run *out, struct error *err);
/* Loads a run of an open store. */
enum prony_status results_load_from(struct store *store, const char *which, unsigned parts,
				    struct stored_run *out, struct error *err);

/* Opens the store to read it; `public`: as store_make_public does. */
enum prony_status results_open(const char *store_file, bool public, struct store **out,
			       struct error *err);

/* Opens an existing store for writing; PRONY_BAD_INPUT when there is none. */
enum prony_status results_open_existing(const char *store, struct store **out, struct error *err);

/* Checks before reading or measuring that `path` (NULL and "-": standard output) can be written and
 * is not the store itself. */
enum prony_status results_check_output(const char *path, const char *store, struct error *err);

/* Prints the table of a run, with the published figures of its suite if there are any. A broken
 * file of them is reported and otherwise ignored. */
void results_print(const struct summary *summary);

/* Writes the page of a run, as `prony report` does (cli/report.c). */
enum prony_status report_page(const char *store, const char *run, const char *output,
			      struct error *err);

/* Says how many cells an import left out because another part of the run has them. */
void results_say_doubled(const char *path, const struct store_imported *imported);

/* Writes text to a file, or to standard output for NULL and "-". */
enum prony_status results_write(const struct strbuf *text, const char *path, struct error *err);

#endif
