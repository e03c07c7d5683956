/* What the instruments of a cell's GPUs read, as sensors with a channel per reading and GPU:
 * "instant-0", by the GPU's place in the cell's device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sensors/meters.h"
#include "sensors/sensor.h"

#define MS INT64_C(1000000)

/* NVML's counter takes 3 to 28 ms to read, so only the marks read it, and moves every 100 ms. */
#define ENERGY_STEPS_NS (350 * MS)

/* X(id, name, unit, rate unit, kind, period) */
#define GPU_ROWS(X)                                                                                \
	X(ENERGY, energy, "nJ", "W", COUNTER, 100 * MS)                                            \
	X(POWER, power, "W", "", GAUGE, 100 * MS)                                                  \
	X(MEMORY, memory, "bytes", "", GAUGE, 250 * MS)                                            \
	X(CLOCK, clock, "Hz", "", GAUGE, 250 * MS)                                                 \
	X(HELD, held, "ns", "share", COUNTER, 1000 * MS)                                           \
	X(REASON, reason, "share", "", GAUGE, 250 * MS)                                            \
	X(TEMPERATURE, temperature, "degC", "", GAUGE, 1000 * MS)                                  \
	X(BUSY, busy, "share", "", GAUGE, 250 * MS)                                                \
	X(BUS, bus, "nB", "B/s", COUNTER, 100 * MS)                                                \
	X(PROCESSES, processes, "processes", "", GAUGE, 1000 * MS)

enum row {
#define X(id, ...) ROW_##id,
	GPU_ROWS(X)
#undef X
};

static const struct {
	enum row row;
	const char *channel;
} readings[METER_READING_COUNT] = {
#define X(id, sensor, channel) {ROW_##sensor, channel},
	METER_READINGS(X)
#undef X
};

static const char *const row_names[] = {
#define X(id, word, ...) #word,
	GPU_ROWS(X)
#undef X
};

static bool is_readable(const struct meters *meters, enum row row, int what)
{
	return readings[what].row == row && meters->count > 0 && !*meters->refused[what];
}

static bool probe_row(const struct watched *watched, enum row row, char reason[SERIES_REASON_BYTES])
{
	const struct meters *meters = watched->meters;

	if (meters->count == 0)
		snprintf(reason, SERIES_REASON_BYTES, "%s", meters->reason);
	for (int what = 0; what < METER_READING_COUNT && meters->count > 0; what++) {
		if (is_readable(meters, row, what)) {
			*reason = '\0';
			return true;
		}
		if (readings[what].row == row && !*reason)
			snprintf(reason, SERIES_REASON_BYTES, "%s refuses it: %s",
				 meters->source->name, meters->refused[what]);
	}
	return false;
}

/* A sensor of which nothing can be read is named without its channels. */
void meters_refused(const struct meters *meters, char *out, size_t out_bytes)
{
	size_t used = 0;
	int named = -1;

	*out = '\0';
	for (int what = 0; what < METER_READING_COUNT && used < out_bytes; what++) {
		enum row row = readings[what].row;
		bool some = false;
		for (int other = 0; other < METER_READING_COUNT; other++)
			some |= is_readable(meters, row, other);
		if (!*meters->refused[what] || (!some && named == (int)row))
			continue;
		named = (int)row;
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s%s%s",
					 used > 0 ? ", " : "", row_names[row], some ? " " : "",
					 some ? readings[what].channel : "");
	}
}

/* The channels, by GPU and reading. */
static void open_row(const struct watched *watched, enum row row, struct sensor_handle *handle)
{
	const struct meters *meters = watched->meters;

	for (size_t gpu = 0; gpu < meters->count; gpu++)
		for (int what = 0; what < METER_READING_COUNT; what++) {
			char name[SERIES_WORD_BYTES];
			if (!is_readable(meters, row, what))
				continue;
			snprintf(name, sizeof name, "%s-%u", readings[what].channel,
				 (unsigned)gpu % METERS_MAX);
			sensor_add_channel(handle, name);
		}
}

static void sample_row(const struct watched *watched, enum row row, double *values)
{
	struct meters *meters = watched->meters;

	for (size_t gpu = 0; gpu < meters->count; gpu++)
		for (int what = 0; what < METER_READING_COUNT; what++)
			if (is_readable(meters, row, what))
				*values++ = meters_read(meters, gpu, (enum meter_reading)what);
}

#define X(id, word, unit_, rate_unit_, kind_, period)                                              \
	static bool probe_##word(const struct watched *watched, char reason[SERIES_REASON_BYTES])  \
	{                                                                                          \
		return probe_row(watched, ROW_##id, reason);                                       \
	}                                                                                          \
	static void open_##word(const struct watched *watched, struct sensor_handle *handle)       \
	{                                                                                          \
		open_row(watched, ROW_##id, handle);                                               \
	}                                                                                          \
	static void sample_##word(const struct watched *watched, struct sensor_handle *handle,     \
				  double *values)                                                  \
	{                                                                                          \
		(void)handle;                                                                      \
		sample_row(watched, ROW_##id, values);                                             \
	}                                                                                          \
	static const struct sensor gpu_##word = {                                                  \
		.name = "gpu_" #word,                                                              \
		.unit = unit_,                                                                     \
		.rate_unit = rate_unit_,                                                           \
		.kind = SERIES_##kind_,                                                            \
		.period_ns = period,                                                               \
		.at_marks = ROW_##id == ROW_ENERGY,                                                \
		.steps_ns = ROW_##id == ROW_ENERGY ? ENERGY_STEPS_NS : 0,                          \
		.probe = probe_##word,                                                             \
		.open = open_##word,                                                               \
		.sample = sample_##word,                                                           \
	};
GPU_ROWS(X)
#undef X

const struct sensor *const gpu_sensors[] = {
#define X(id, word, ...) &gpu_##word,
	GPU_ROWS(X)
#undef X
};
const size_t gpu_sensor_count = sizeof gpu_sensors / sizeof *gpu_sensors;
