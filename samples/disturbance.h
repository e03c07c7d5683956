/* The table of causes outside a process that distort its figures. */
#ifndef PRONY_SAMPLES_DISTURBANCE_H
#define PRONY_SAMPLES_DISTURBANCE_H

#include "samples/record.h"

struct disturbance_cause {
	const char *word; /* shown in tables: "busy"; some causes share one */
	size_t offset;	  /* of a real number in the record */
	double limit;	  /* above it the process is disturbed (docs/sensors.md) */
	bool others;	  /* caused by other programs or the host, never by the contender itself */
	/* Shown as "TEXT 12 UNIT": the number times the scale. */
	const char *text, *unit;
	double scale;
	const char *remedy;
};

/* Rows with the same word are adjacent. */
extern const struct disturbance_cause disturbance_causes[];
enum { DISTURBANCE_CAUSES = 10 };
extern const size_t disturbance_cause_count;

/* The figure of a cause; NaN: unknown. */
double disturbance_figure(const struct process_record *record,
			  const struct disturbance_cause *cause);

/* The causes above their limits, one bit each by position in the table; 0: none. Windows shorter
 * than 200 ms have no such figures, so the result is 0. */
unsigned disturbance_seen(const struct process_record *record);

/* Whether other programs or the host contributed to these causes. A contender may cause heat,
 * swapping or a used-up quota itself: that is reported but is no excuse. */
bool disturbance_by_others(unsigned seen);

/* Share of the worker's time that other programs took; NaN when unknown. */
double disturbance_taken(const struct process_record *record);

/* The words of these causes, "busy+quota"; "" when there are none. */
void disturbance_words(unsigned seen, char *out, size_t out_bytes);

#endif
