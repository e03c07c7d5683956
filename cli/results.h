/* What the commands that read results share: opening the store, writing what they made. */
#ifndef PRONY_CLI_RESULTS_H
#define PRONY_CLI_RESULTS_H

#include "base/error.h"
#include "base/strbuf.h"
#include "report/summary.h"
#include "store/store.h"

/* How much of a run to load. */
enum results_depth {
	RESULTS_FIGURES,   /* cells and processes */
	RESULTS_WINDOWS,   /* and, unless there are very many, their intervals */
	RESULTS_EVIDENCE,  /* and every figure of the gates */
	RESULTS_SERIES,	   /* that, and what sensors saw */
	RESULTS_STEPS,	   /* cells and processes with their intervals, and what sensors saw */
	RESULTS_LOGS,	   /* and their logs */
	RESULTS_EVERYTHING /* and their intervals */
};

/* Room for the positional words of a command line; results_words_free frees it. */
const char **results_words(int argc);
void results_words_free(const char **words);

/* Loads a run as store_load_run does, as much of it as is said. */
enum prony_status results_load(struct store *store, const char *which, enum results_depth depth,
			       struct stored_run *out, struct error *err);

/* Likewise of a store that it opens (NULL: the default one). */
enum prony_status results_load_run(const char *store, const char *which, enum results_depth depth,
				   struct stored_run *out, struct error *err);

/*
 * A run and its summary for a page or figures: with intervals and what sensors saw, unless it has
 * so many processes that nobody looks at one of them; then only the first comparisons have
 * processes (report/stream.h).
 */
enum prony_status results_load_for_page(struct store *store, const char *which,
					struct stored_run *run, struct summary *summary,
					struct error *err);

/* Opens a store to change it; PRONY_BAD_INPUT where there is none, which is not made. */
enum prony_status results_open_existing(const char *store, struct store **out, struct error *err);

/* Whether `path` (NULL and "-": standard output) can be written, and is not the store itself. Asked
 * before anything is read or measured. */
enum prony_status results_check_output(const char *path, const char *store, struct error *err);

/* Adds the published figures of the run's suite, where there are any; a broken file of them is said
 * and spoils nothing. */
void results_published(const struct summary *summary, struct strbuf *out);

/* Writes text to a file, or to standard output for NULL and "-". */
enum prony_status results_write(const struct strbuf *text, const char *path, struct error *err);

#endif
