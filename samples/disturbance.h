/* What the machine may do to a process that spoils its figures: one table of causes. */
#ifndef PRONY_SAMPLES_DISTURBANCE_H
#define PRONY_SAMPLES_DISTURBANCE_H

#include "samples/record.h"

struct disturbance_cause {
	const char *word; /* in tables: "busy"; some causes share one */
	size_t offset;	  /* of a real in the record */
	double limit;	  /* above it the process is disturbed (docs/sensors.md) */
	bool others;	  /* other programs, or the host, do it: never the contender itself */
	/* "TEXT 12 UNIT": the real times the scale between them. */
	const char *text, *unit;
	double scale;
	const char *remedy;
};

/* Those that are one word follow each other. */
extern const struct disturbance_cause disturbance_causes[];
extern const size_t disturbance_cause_count;

/* The figure of a cause; NaN: not known. */
double disturbance_figure(const struct process_record *record,
			  const struct disturbance_cause *cause);

/* The causes that are above their limits, a bit of each by its place in the table; 0: none. Figures
 * of windows below 200 ms are not known, so of these it is 0. */
unsigned disturbance_seen(const struct process_record *record);

/* Whether others had a part in such causes: what a contender may bring about itself by using the
 * machine (heat, swapping, a quota) is said, but excuses nothing. */
bool disturbance_by_others(unsigned seen);

/* Share of the worker's time that others took; NaN where nobody knows. */
double disturbance_taken(const struct process_record *record);

/* "busy+quota": the words of such causes, "" where there are none. */
void disturbance_words(unsigned seen, char *out, size_t out_bytes);

#endif
