#include "sensors/meters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cell/device.h"

static void read_all_once(struct meters *meters)
{
	meters->memory_before = meters->count > 0 ? 0 : NAN;
	for (size_t i = 0; i < meters->count; i++)
		for (int what = 0; what < METER_READING_COUNT; what++) {
			char why[METER_TEXT_BYTES] = "it gives no value";
			double value = meters->source->read(&meters->rows[i],
							    (enum meter_reading)what, why);
			/* A sum that misses a GPU would be too small. */
			if (isnan(value))
				memcpy(meters->refused[what], why, sizeof why);
			if (what == METER_MEMORY_USED)
				meters->memory_before += value;
		}
}

struct meters *meters_open(int root_fd, const char *device, const char *(*uuid)(int index))
{
	/* NVIDIA's GPUs and AMD's have the same word. */
	static const struct meter_source *const sources[] = {&meter_nvml, &meter_hwmon};
	struct meters *meters;

	if (device_is_cpu(device))
		return NULL;
	meters = memory_alloc(sizeof *meters);
	*meters = (struct meters){.root_fd = root_fd, .device = device, .uuid = uuid};
	for (size_t i = 0; i < sizeof sources / sizeof *sources && meters->count == 0; i++) {
		char first[SERIES_REASON_BYTES];
		memcpy(first, meters->reason, sizeof first);
		meters->source = sources[i];
		meters->source->open(meters);
		/* What NVML says is more to the point than that there is no other driver. */
		if (*first)
			memcpy(meters->reason, first, sizeof first);
	}
	read_all_once(meters);
	return meters;
}

void meters_close(struct meters *meters)
{
	for (size_t i = 0; meters && i < meters->count && meters->source->close; i++)
		meters->source->close(&meters->rows[i]);
	free(meters);
}

double meters_read(struct meters *meters, size_t gpu, enum meter_reading what)
{
	char why[METER_TEXT_BYTES];

	return meters->source->read(&meters->rows[gpu], what, why);
}
