/* Sensor readings of a process as JSON and as text. */
#ifndef PRONY_REPORT_SERIES_H
#define PRONY_REPORT_SERIES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "samples/record.h"

/*
 * Returns one object per sensor (docs/store.md), absent sensors with their reason; new reference.
 */
json_t *series_to_json(const struct process_record *record, bool with_samples);

/* Adds a line per channel: mean, smallest and largest of the window, mean of the run; and a line
 * per absent sensor. */
void series_text(const struct process_record *record, struct strbuf *out);

#endif
