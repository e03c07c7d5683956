/* Reads runs that are too large for memory, one comparison at a time. */
#ifndef PRONY_REPORT_STREAM_H
#define PRONY_REPORT_STREAM_H

#include "report/summary.h"

/* Called for each comparison, in the order of summary_init, with a run and a summary of its own;
 * once, without rows, for a run without cells. A callback that takes data out of them sets the
 * pointers to NULL. Ranks are those of the whole run; arithmetic is known if a gate of the same
 * comparison counted it. */
typedef enum prony_status stream_visit(void *context, struct summary *summary,
				       struct stored_run *run, struct error *err);
enum prony_status stream_comparisons(struct store_reader *reader, stream_visit *visit,
				     void *context, struct error *err);

/* Reads the summary of a whole run, in which only the cells of the first `keep` comparisons keep
 * their processes. Released as usual, summary first. */
enum prony_status stream_summary(struct store_reader *reader, size_t keep, struct stored_run *run,
				 struct summary *summary, struct error *err);

#endif
