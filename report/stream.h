/* Reads runs that are too large for memory, one comparison at a time. */
#ifndef PRONY_REPORT_STREAM_H
#define PRONY_REPORT_STREAM_H

#include "report/summary.h"

/*
 * Called for each comparison, in the order in which summary_init would have them, as a run and a
 * summary of their own; what it takes out of them it leaves NULL. Ranks are those of the whole
 * run; arithmetic is known where a gate of the same comparison counted it.
 */
typedef enum prony_status stream_visit(void *context, struct summary *summary,
				       struct stored_run *run, struct error *err);
enum prony_status stream_comparisons(struct store_reader *reader, stream_visit *visit,
				     void *context, struct error *err);

/* A whole run's summary, in which only the cells of the first `keep` comparisons still have their
 * processes. Released as ever, summary first. */
enum prony_status stream_summary(struct store_reader *reader, size_t keep, struct stored_run *run,
				 struct summary *summary, struct error *err);

#endif
