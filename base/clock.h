/* Time: one monotonic clock for everything that is measured, one wall clock for labels. */
#ifndef PRONY_BASE_CLOCK_H
#define PRONY_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. Comparable between processes of one machine since boot. */
int64_t clock_monotonic_ns(void);

/* 1 January 2200. Sums of two such times still fit in 64 bits. */
#define CLOCK_WALL_LATEST_NS INT64_C(7258118400000000000)

/* CLOCK_REALTIME in nanoseconds since 1970; SOURCE_DATE_EPOCH (seconds) fixes it, for golden files.
 * A clock outside 1970 to 2199 is wrong and gives the nearer end. */
int64_t clock_wall_ns(void);

/* Writes "2026-11-21T03:34:05Z" (UTC) into out, which holds at least 21 bytes. */
void clock_format_utc(int64_t wall_ns, char *out, size_t out_bytes);

/* Sleeps until a CLOCK_MONOTONIC instant; returns early on a signal. */
void clock_sleep_until_ns(int64_t deadline_ns);

#endif
