#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)

static int64_t wall_ns(int64_t seconds, int64_t rest_ns)
{
	if (seconds < 0)
		return 0;
	if (seconds >= CLOCK_WALL_LATEST_NS / NS_PER_SECOND)
		return CLOCK_WALL_LATEST_NS;
	return seconds * NS_PER_SECOND + rest_ns;
}

int64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t clock_wall_ns(void)
{
	/* https://reproducible-builds.org/specs/source-date-epoch */
	const char *fixed = getenv("SOURCE_DATE_EPOCH");

	if (fixed && *fixed) {
		char *end;
		errno = 0;
		long long seconds = strtoll(fixed, &end, 10);
		if (errno == 0 && *end == '\0' && seconds >= 0)
			return wall_ns(seconds, 0);
	}
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return wall_ns(now.tv_sec, now.tv_nsec);
}

void clock_format_utc(int64_t wall_ns, char *out, size_t out_bytes)
{
	int64_t seconds = wall_ns / NS_PER_SECOND;
	struct tm utc;

	if (out_bytes == 0)
		return;
	if (wall_ns % NS_PER_SECOND < 0)
		seconds--;
	time_t instant = (time_t)seconds;
	if (!gmtime_r(&instant, &utc) || strftime(out, out_bytes, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
		out[0] = '\0';
}

void clock_sleep_until_ns(int64_t deadline_ns)
{
	if (deadline_ns <= 0)
		return;
	struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_SECOND),
		.tv_nsec = (long)(deadline_ns % NS_PER_SECOND),
	};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}
