/* What a sensor saw while a process ran: a time series, and what it says about a stretch of time.
 */
#ifndef PRONY_SAMPLES_SERIES_H
#define PRONY_SAMPLES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_WORD_BYTES 24
#define SERIES_REASON_BYTES 160

/* Sensor and channel of the losses that were read between the steps of a window, each at the time
 * at which its step ended. */
#define SERIES_LOSS "loss"

/* What a value is. A counter only rises: where it falls it was set back, and that interval says
 * nothing. A balance is a difference of counters that are not read at one instant, so it may fall a
 * little and rise again. Of both, the rate (value per ns) is what is told. */
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
	/* Owned. values: [count][channel_count]; NaN = not read then, which is never 0. Times are
	 * of the monotonic clock and rise. */
	char (*channels)[SERIES_WORD_BYTES];
	int64_t *times_ns;
	double *values;
	size_t channel_count, count;
};

struct series_range {
	double mean, minimum, maximum; /* NaN: nothing is known */
};

const char *series_kind_name(enum series_kind kind);
bool series_kind_parse(const char *word, enum series_kind *out);

/* Of a gauge its unit, else that of its rate. */
const char *series_shown_unit(const struct series *series);

/*
 * A channel between two instants: of a gauge the time-weighted mean (trapezoids, linear between
 * samples, cut at the ends), of a counter or balance the mean rate, the ends interpolated; minimum
 * and maximum over the samples (gauge) or intervals (rates) that lie in it or touch it. Where the
 * samples do not reach, only what they cover counts.
 */
struct series_range series_over(const struct series *series, size_t channel, int64_t begin_ns,
				int64_t end_ns);

/* The series of a sensor among several; NULL = none. */
const struct series *series_find(const struct series *series, size_t count, const char *sensor);

/* Drops every second sample, to have room for more. */
void series_thin_out(struct series *series);

/* Frees what it owns, not itself. */
void series_release(struct series *series);

#endif
