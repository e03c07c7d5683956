/* The GPUs that a cell runs on, and the instruments that read them. */
#ifndef PRONY_SENSORS_METERS_H
#define PRONY_SENSORS_METERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples/series.h"

/* X(id, sensor, channel): what an instrument may read of a GPU, in the unit of that sensor
 * (sensors/gpu.c). HELD: time in which the clock was held down for that reason. REASON: 1 while the
 * clock is held down for it, else 0. */
#define METER_READINGS(X)                                                                          \
	X(ENERGY, ENERGY, "energy")                                                                \
	X(POWER_INSTANT, POWER, "instant")                                                         \
	X(POWER_AVERAGE, POWER, "average")                                                         \
	X(MEMORY_USED, MEMORY, "used") /* without what driver and firmware reserve */              \
	X(MEMORY_RESERVED, MEMORY, "reserved")                                                     \
	X(CLOCK_COMPUTE, CLOCK, "compute")                                                         \
	X(CLOCK_MEMORY, CLOCK, "memory")                                                           \
	X(HELD_POWER, HELD, "power")                                                               \
	X(HELD_HEAT, HELD, "heat")                                                                 \
	X(HELD_SYNC_BOOST, HELD, "sync_boost")                                                     \
	X(HELD_BOARD, HELD, "board")                                                               \
	X(HELD_LOW_USE, HELD, "low_use")                                                           \
	X(HELD_RELIABILITY, HELD, "reliability")                                                   \
	X(HELD_SETTING, HELD, "setting")                                                           \
	X(REASON_IDLE, REASON, "idle")                                                             \
	X(REASON_SETTING, REASON, "setting")                                                       \
	X(REASON_POWER, REASON, "power")                                                           \
	X(REASON_HEAT, REASON, "heat")                                                             \
	X(REASON_BRAKE, REASON, "brake")                                                           \
	X(TEMPERATURE_CORE, TEMPERATURE, "core")                                                   \
	X(TEMPERATURE_MEMORY, TEMPERATURE, "memory")                                               \
	X(BUSY_KERNELS, BUSY, "kernels") /* share of time in which a kernel ran */                 \
	X(BUSY_MEMORY, BUSY, "memory")                                                             \
	X(BUS_TO, BUS, "to") /* bytes to and from the GPU over PCIe */                             \
	X(BUS_FROM, BUS, "from")                                                                   \
	X(PROCESSES, PROCESSES, "processes") /* that have a context on it, of any user */

enum meter_reading {
#define X(id, sensor, channel) METER_##id,
	METER_READINGS(X)
#undef X
		METER_READING_COUNT
};

/* A 32-bit counter that wraps around. */
struct meter_wrap {
	bool known;
	uint32_t last;
	uint64_t added;
};

/* One GPU. */
struct meter {
	void *device;		      /* of NVML */
	int fds[METER_READING_COUNT]; /* of hwmon; -1: none */
	struct meter_wrap bus[2];
};

enum { METERS_MAX = 8, METER_TEXT_BYTES = 96 };
struct meters;

/* An instrument. `open` finds the GPUs of a cell, and fills rows and count, or the reason; `read`
 * returns a value in the unit of its sensor, or NaN and the reason. It does not allocate. */
struct meter_source {
	const char *name; /* "nvml" */
	void (*open)(struct meters *meters);
	double (*read)(struct meter *meter, enum meter_reading what, char why[METER_TEXT_BYTES]);
	void (*close)(struct meter *meter); /* NULL: there is nothing to close */
};
extern const struct meter_source meter_nvml, meter_hwmon;

struct meters {
	int root_fd;		  /* base/process_tree.h */
	const char *device;	  /* the cell's, "cuda:0"; borrowed */
	const char *(*uuid)(int); /* see meters_open */
	const struct meter_source *source;
	struct meter rows[METERS_MAX];
	size_t count;					     /* 0: none can be read */
	char reason[SERIES_REASON_BYTES];		     /* why */
	char refused[METER_READING_COUNT][METER_TEXT_BYTES]; /* why a reading is not there; "" */
	double memory_before; /* bytes used on all of them when they were opened; NaN: unknown */
};

/* Opens the instruments of a cell's GPUs and reads each once; NULL for a CPU. The memory in use
 * before the worker is that of this instant. `uuid` returns the UUID of the GPU that programs
 * call cuda:INDEX (gpu_uuid of base/gpu.h), or NULL: CUDA's numbers are not NVML's. Call
 * meters_close; NULL is fine. */
struct meters *meters_open(int root_fd, const char *device, const char *(*uuid)(int index));
void meters_close(struct meters *meters);

/* Reads one quantity of one GPU; NaN if it is refused. */
double meters_read(struct meters *meters, size_t gpu, enum meter_reading what);

/* Writes what is refused: "energy, temperature memory"; "" if nothing is. */
void meters_refused(const struct meters *meters, char *out, size_t out_bytes);

/* The versions of the driver and of NVML, "driver 580.159.04, NVML 13.580.159"; false, with the
 * reason, if there is no NVML here. */
bool nvml_versions(char out[METER_TEXT_BYTES], char why[SERIES_REASON_BYTES]);

#endif
