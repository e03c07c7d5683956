/* Sensors: one table, one file per measuring source. */
#ifndef PRONY_SENSORS_SENSOR_H
#define PRONY_SENSORS_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "samples/series.h"
#include "sensors/watched.h"

enum { SENSOR_CHANNELS_MAX = CPUS_MAX };

/* A sensor in use. */
struct sensor_handle {
	size_t channel_count;
	char (*channels)[SERIES_WORD_BYTES]; /* room for SENSOR_CHANNELS_MAX */
	void *state;			     /* the sensor's own, made by open */
};

/*
 * `probe` says whether it is here, else why not. `open` names its channels (words without spaces)
 * and makes its state; probe was true. `sample` writes a value per channel from what `watched` has
 * just looked at, and from its own files: NaN where nothing can be read, never 0; it allocates
 * nothing. `close` frees the state; NULL where there is none.
 */
struct sensor {
	const char *name;      /* "memory" */
	const char *unit;      /* of a value: "bytes", "ns" */
	const char *rate_unit; /* of a value per ns; "" for a gauge */
	enum series_kind kind;
	int64_t period_ns;    /* between two samples */
	bool outside_windows; /* taking a sample would disturb what is measured */
	bool in_steps;	      /* values move in steps: at marks it is sampled where they do */
	bool (*probe)(const struct watched *watched, char reason[SERIES_REASON_BYTES]);
	void (*open)(const struct watched *watched, struct sensor_handle *handle);
	void (*sample)(const struct watched *watched, struct sensor_handle *handle, double *values);
	void (*close)(struct sensor_handle *handle);
};

/* For how long, at a mark, the steps of such a sensor are waited for. */
#define SENSOR_STEPS_NS INT64_C(20000000)

/* A row is sensor_NAME of sensors/NAME.c. The last ones are sampled nearest to the window at both
 * of its ends: those whose exact count between them matters. */
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

/* For `open`: one more channel. */
void sensor_add_channel(struct sensor_handle *handle, const char *name);

/* For `probe` and `open` of what is counted of the worker's whole tree, from /proc/PID/stat. */
bool sensor_probe_stat(const struct watched *watched, char reason[SERIES_REASON_BYTES]);
void sensor_add_tree(const struct watched *watched, struct sensor_handle *handle);

/* For `open`: a channel per processor, "cpu0"... */
void sensor_add_cpus(const struct watched *watched, struct sensor_handle *handle);

#endif
