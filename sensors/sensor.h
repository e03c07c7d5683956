/* The interface of a sensor: one table, one file per source. */
#ifndef PRONY_SENSORS_SENSOR_H
#define PRONY_SENSORS_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples/series.h"
#include "sensors/watched.h"

enum { SENSOR_CHANNELS_MAX = CPUS_MAX };

/* An open sensor. */
struct sensor_handle {
	size_t channel_count;
	char (*channels)[SERIES_WORD_BYTES]; /* room for SENSOR_CHANNELS_MAX */
	int *fds; /* files added by open, -1: not there; closed with the sensor */
	size_t fd_count;
	void *state; /* private state made by open */
};

/* `probe` says whether the sensor exists here, or why not. `open` is called when probe was true; it
 * names the channels (words without spaces) unless they are fixed, adds files and creates the
 * state; NULL if there is nothing to do. `sample` writes one value per channel, from the shared
 * readings in `watched` and its own files: NaN when a value cannot be read, never 0. It does not
 * allocate. `close` frees the state; NULL if there is none. */
struct sensor {
	const char *name;      /* "memory" */
	const char *unit;      /* unit of a value: "bytes", "ns" */
	const char *rate_unit; /* unit of a value per ns; "" for a gauge */
	enum series_kind kind;
	int64_t period_ns;    /* time between two samples */
	bool outside_windows; /* sampling would disturb the measurement */
	bool at_marks;	      /* reading it takes long: only the marks do */
	int64_t steps_ns;     /* the counter moves in steps: the longest wait for them, at a mark */
	const char *channels; /* "in out": the fixed channels; NULL: open names them */
	bool (*probe)(const struct watched *watched, char reason[SERIES_REASON_BYTES]);
	void (*open)(const struct watched *watched, struct sensor_handle *handle);
	void (*sample)(const struct watched *watched, struct sensor_handle *handle, double *values);
	void (*close)(struct sensor_handle *handle);
};

/* A row is sensor_NAME in sensors/NAME.c. The last rows are sampled nearest to the window at both
 * ends: put sensors there whose exact count matters. */
#define SENSORS(X)                                                                                 \
	X(memory)                                                                                  \
	X(cpu)                                                                                     \
	X(frequency)                                                                               \
	X(temperature)                                                                             \
	X(thermal)                                                                                 \
	X(load)                                                                                    \
	X(steal)                                                                                   \
	X(foreign)                                                                                 \
	X(memory_pss)                                                                              \
	X(threads)                                                                                 \
	X(switches)                                                                                \
	X(pressure)                                                                                \
	X(swap)                                                                                    \
	X(quota)                                                                                   \
	X(rapl)                                                                                    \
	X(page_faults)                                                                             \
	X(worker_cpu)

#define X(name) extern const struct sensor sensor_##name;
SENSORS(X)
#undef X

/* In the order of SENSORS. */
extern const struct sensor *const sensors[];
extern const size_t sensor_count;

/* The sensors of GPUs (sensors/gpu.c), which are sampled farther from the window than the others;
 * only for cells that run on one. */
extern const struct sensor *const gpu_sensors[];
extern const size_t gpu_sensor_count;

/* Opens a sensor whose probe was true, and closes it with all that the handle has. */
void sensor_open(const struct sensor *sensor, const struct watched *watched,
		 struct sensor_handle *handle);
void sensor_close(const struct sensor *sensor, struct sensor_handle *handle);

/* Add a channel, and a file; for `open`. */
void sensor_add_channel(struct sensor_handle *handle, const char *name);
void sensor_add_file(struct sensor_handle *handle, int fd);

/* `probe` for counters over the worker's whole tree from /proc/PID/stat. */
bool sensor_probe_stat(const struct watched *watched, char reason[SERIES_REASON_BYTES]);

/* Adds a channel per processor, "cpu0"...; for `open`. */
void sensor_add_cpus(const struct watched *watched, struct sensor_handle *handle);

#endif
