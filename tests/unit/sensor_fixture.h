/* Sensors on recorded machines. All functions fail the test on an error. */
#ifndef PRONY_TESTS_UNIT_SENSOR_FIXTURE_H
#define PRONY_TESTS_UNIT_SENSOR_FIXTURE_H

#include "samples/record.h"
#include "sensors/sensor.h"
#include "tests/unit/machine_fixture.h"

enum { SELF = 10, GUARD = 20, WORKER = 21, CHILD = 22 };
#define TICK_NS 1e7

/* Writes a process with its parent, ticks of user time and of its reaped children, and resident
 * pages. The process had one minor fault per page and 1 major fault; its children had as many minor
 * faults as ticks and 2 major faults. */
void sensor_process(const char *root, int pid, int parent, int ticks, int reaped, int pages);
/* Writes the list of children, such as "21 22 ". */
void sensor_children(const char *root, int pid, const char *list);
/*
 * Writes two processors, the second one off if `cpu1` is NULL; user, system, idle, steal in ticks.
 */
void sensor_times(const char *root, const char *all, const char *cpu0, const char *cpu1);
void sensor_frequency_file(const char *root, int cpu, const char *khz);
/* Writes a worker with a child under its guard, on a machine of two processors. */
void sensor_machine(const char *root);
int sensor_setup(void **state);
/* A test that begins with this machine. */
#define SENSOR_TEST(name) TEST_ON(name, sensor_setup, machine_teardown, const char *root)
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

/* Probes the sensor; if it is present, opens it and takes a sample. `use` is zero, or in use: it is
 * released before. */
void use_begin(struct sensor_use *use, const char *root, const struct sensor *sensor);
/* The same for a worker that is bound to these processors. */
void use_begin_on(struct sensor_use *use, const char *root, const struct sensor *sensor,
		  const int *cpus, int count);
/* Looks and samples again, including the process tree. */
void use_again(struct sensor_use *use);
void sensor_use_release(struct sensor_use *use);

/* Adds a sensor's series to the record: rows of a time in ns and a value per channel. */
void series_add(struct process_record *record, const char *sensor, enum series_kind kind,
		const char *const *channels, size_t width, const double *rows, size_t count);

void assert_real(double got, double expected);
/* Checks that the sensor is absent and that the reason contains these words. */
void assert_absent(const char *root, const struct sensor *sensor, const char *why);

#endif
