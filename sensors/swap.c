/* Pages that the machine read from and wrote to swap (proc(5), /proc/vmstat). */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "sensors/files.h"
#include "sensors/sensor.h"

static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	char text[8192];

	if (process_read_file(watched->root_fd, "/proc/meminfo", text, sizeof text) > 0 &&
	    text_number(text, "SwapTotal") == 0)
		snprintf(reason, SERIES_REASON_BYTES, "no swap space");
	else if (process_read_file(watched->root_fd, "/proc/vmstat", text, sizeof text) <= 0 ||
		 text_number(text, "pswpin") < 0)
		snprintf(reason, SERIES_REASON_BYTES, "/proc/vmstat does not report swapping");
	return !*reason;
}

static double pages_nb(const char *text, const char *key)
{
	int64_t pages = text_number(text, key);

	return pages < 0 ? NAN : (double)pages * (double)sysconf(_SC_PAGESIZE) * 1e9;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	char text[8192];

	(void)handle;
	if (process_read_file(watched->root_fd, "/proc/vmstat", text, sizeof text) < 0)
		text[0] = '\0';
	values[0] = pages_nb(text, "pswpin");
	values[1] = pages_nb(text, "pswpout");
}

const struct sensor sensor_swap = {
	.name = "swap",
	.unit = "nB", /* in 1e-9 bytes, so that the rate is in bytes a second */
	.rate_unit = "B/s",
	.kind = SERIES_COUNTER,
	.period_ns = 1000000000,
	.probe = probe,
	.channels = "in out",
	.sample = sample,
};
