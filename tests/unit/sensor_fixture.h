/* Sensors on recorded machines. Everything asserts. */
#ifndef PRONY_TESTS_UNIT_SENSOR_FIXTURE_H
#define PRONY_TESTS_UNIT_SENSOR_FIXTURE_H

#include "samples/record.h"
#include "sensors/sensor.h"

enum { SELF = 10, GUARD = 20, WORKER = 21, CHILD = 22 };
#define TICK_NS 1e7

/* A process with its parent, ticks of user time and of its reaped children, and resident pages; it
 * had a minor fault for each page and 1 major one, its children as many as ticks and 2. */
void sensor_process(const char *root, int pid, int parent, int ticks, int reaped, int pages);
/* "21 22 " */
void sensor_children(const char *root, int pid, const char *list);
/* Two processors, the second one off when `cpu1` is NULL; user, system, idle, steal in ticks. */
void sensor_times(const char *root, const char *all, const char *cpu0, const char *cpu1);
void sensor_frequency_file(const char *root, int cpu, const char *khz);
/* A worker with a child under its guard, on a machine of two processors. */
void sensor_machine(const char *root);
void machine_remove_file(const char *root, const char *path);
void machine_remove_folder(const char *root, const char *path);

/* A sensor in use on a recorded machine. */
struct sensor_use {
	struct watched *watched;
	const struct sensor *sensor;
	struct sensor_handle handle;
	double values[SENSOR_CHANNELS_MAX];
	char reason[SERIES_REASON_BYTES];
	bool here;
};

/* Probes it, opens it and takes a sample, where it is there. */
void use_begin(struct sensor_use *use, const char *root, const struct sensor *sensor);
/* The same of a worker that is bound to these processors. */
void use_begin_on(struct sensor_use *use, const char *root, const struct sensor *sensor,
		  const int *cpus, int count);
/* Looks again, at processes too. */
void use_again(struct sensor_use *use);
void use_end(struct sensor_use *use);

/* Gives the record what a sensor saw: rows of a time in ns and a value per channel. */
void series_add(struct process_record *record, const char *sensor, enum series_kind kind,
		const char *const *channels, size_t width, const double *rows, size_t count);

void assert_real(double got, double expected);
/* It is not there, and says why in these words among others. */
void assert_absent(const char *root, const struct sensor *sensor, const char *why);

#endif
