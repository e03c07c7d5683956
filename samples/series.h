/* A time series from one sensor during a process, and statistics over a stretch of it. */
#ifndef PRONY_SAMPLES_SERIES_H
#define PRONY_SAMPLES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_WORD_BYTES 24
#define SERIES_REASON_BYTES 160

/*
 * Sensor and channel of the losses read between the steps of a window, each at the end of its step.
 */
#define SERIES_LOSS "loss"

/* Kinds of values. A counter only rises; where it falls it was reset, and that interval is ignored.
 * A balance is a difference of counters that are not read at the same instant, so it may fall
 * slightly and rise again. For both, the rate (value per ns) is reported. */
#define SERIES_KINDS(X)                                                                            \
	X(GAUGE, "gauge")                                                                          \
	X(COUNTER, "counter")                                                                      \
	X(BALANCE, "balance")

enum series_kind {
#define X(id, name) SERIES_##id,
	SERIES_KINDS(X)
#undef X
		SERIES_KIND_COUNT
};

struct series {
	char sensor[SERIES_WORD_BYTES];
	enum series_kind kind;
	char unit[SERIES_WORD_BYTES];	   /* of a value: "bytes", "ns" */
	char rate_unit[SERIES_WORD_BYTES]; /* of a value per ns: "cores"; "" for a gauge */
	char absent[SERIES_REASON_BYTES];  /* why there are no samples; "" when there may be */
	/* Owned. values: [count][channel_count]; NaN = not read at that time, which is never 0.
	 * Times are of the monotonic clock and increase. */
	char (*channels)[SERIES_WORD_BYTES];
	int64_t *times_ns;
	double *values;
	size_t channel_count, count;
};

struct series_range {
	double mean, minimum, maximum; /* NaN: unknown */
};

const char *series_kind_name(enum series_kind kind);
bool series_kind_parse(const char *word, enum series_kind *out);

/* The unit of a gauge; of a counter or balance the unit of its rate. */
const char *series_shown_unit(const struct series *series);

/* Statistics of a channel between two instants. A gauge has the time-weighted mean (trapezoids,
 * linear between samples, cut at the ends); a counter or balance has the mean rate with
 * interpolated ends. Minimum and maximum are over the samples (gauge) or intervals (rates) inside
 * the range or touching it. Time without samples is not counted. */
struct series_range series_over(const struct series *series, size_t channel, int64_t begin_ns,
				int64_t end_ns);

/* The series of a sensor in an array; NULL if it is not there. */
const struct series *series_find(const struct series *series, size_t count, const char *sensor);

/* Drops every second sample to make room. */
void series_thin_out(struct series *series);

/* Frees the contents, not the struct. */
void series_release(struct series *series);

#endif
