#include "tests/unit/sensor_fixture.h"

#include "tests/unit/machine_fixture.h"
#include "unit_test.h"

/* Writes a process with its parent, ticks of user time and of its reaped children, and resident
 * pages. */
void sensor_process(const char *root, int pid, int parent, int ticks, int reaped, int pages)
{
	char path[96], text[160];

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	snprintf(text, sizeof text, "%d (a) b (c) S %d 1 1 0 -1 0 %d %d 1 2 %d 0 %d 0 20 0 1 0 99",
		 pid, parent, pages, reaped, ticks, reaped);
	machine_file(root, path, text);
	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	snprintf(text, sizeof text, "999999 %d 5 1 0 9 0", pages);
	machine_file(root, path, text);
}

void sensor_children(const char *root, int pid, const char *list)
{
	char path[96];

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	machine_file(root, path, list);
}

/*
 * Writes two processors, the second one off if `cpu1` is NULL; user, system, idle, steal in ticks.
 */
void sensor_times(const char *root, const char *all, const char *cpu0, const char *cpu1)
{
	char *text = memory_printf("cpu  %s\ncpu0 %s\n%s%s%sintr 1 2 3", all, cpu0,
				   cpu1 ? "cpu1 " : "", cpu1 ? cpu1 : "", cpu1 ? "\n" : "");
	machine_file(root, "/proc/stat", text);
	free(text);
}

void sensor_frequency_file(const char *root, int cpu, const char *khz)
{
	char path[96];

	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu);
	machine_file(root, path, khz);
}

/* Writes a worker with a child under its guard, on a machine of two processors. */
void sensor_machine(const char *root)
{
	sensor_times(root, "100 0 50 700 50 0 0 30 9 9", "60 0 30 300 50 0 0 10",
		     "40 0 20 400 0 0 0 20");
	machine_file(root, "/proc/loadavg", "1.50 0.10 0.05 1/300 4242");
	sensor_frequency_file(root, 0, "2000000");
	sensor_frequency_file(root, 1, "3000000");
	sensor_process(root, SELF, 1, 3, 0, 100);
	sensor_process(root, GUARD, SELF, 1, 6, 50);
	sensor_process(root, WORKER, GUARD, 40, 5, 1000);
	sensor_process(root, CHILD, WORKER, 5, 0, 200);
	sensor_children(root, GUARD, "21 ");
	sensor_children(root, WORKER, "22 ");
	sensor_children(root, CHILD, "");
}

int sensor_setup(void **state)
{
	if (machine_setup(state) != 0)
		return -1;
	sensor_machine(*state);
	return 0;
}

void machine_remove_file(const char *root, const char *path)
{
	char *full = memory_printf("%s%s", root, path);
	assert_int_equal(unlink(full), 0);
	free(full);
}

void machine_remove_folder(const char *root, const char *path)
{
	char *full = memory_printf("%s%s", root, path);
	assert_int_equal(directory_remove(full, NULL), PRONY_OK);
	free(full);
}

void use_begin(struct sensor_use *use, const char *root, const struct sensor *sensor)
{
	use_begin_on(use, root, sensor, NULL, 0);
}

void use_begin_on(struct sensor_use *use, const char *root, const struct sensor *sensor,
		  const int *cpus, int count)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(root_fd >= 0);
	sensor_use_release(use);
	*use = (struct sensor_use){.sensor = sensor, .watched = memory_alloc(sizeof *use->watched)};
	watched_init(use->watched, root_fd, SELF, GUARD);
	watched_bind(use->watched, cpus, count);
	watched_look(use->watched);
	use->here = sensor->probe(use->watched, use->reason);
	assert_true(use->here == !*use->reason);
	if (!use->here)
		return;
	sensor_open(sensor, use->watched, &use->handle);
	sensor->sample(use->watched, &use->handle, use->values);
}

/* Looks and samples again, including the process tree. */
void use_again(struct sensor_use *use)
{
	use->watched->tree_due_ns = 0;
	watched_look(use->watched);
	for (size_t i = 0; i < use->handle.channel_count; i++)
		use->values[i] = 4242;
	use->sensor->sample(use->watched, &use->handle, use->values);
}

void sensor_use_release(struct sensor_use *use)
{
	if (!use->watched)
		return;
	if (use->here)
		sensor_close(use->sensor, &use->handle);
	close(use->watched->root_fd);
	free(use->watched);
}

void assert_real(double got, double expected)
{
	if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= 1e-9 * fabs(expected)))
		fail_msg("expected %.9g, got %.9g", expected, got);
}

void assert_absent(const char *root, const struct sensor *sensor, const char *why)
{
	SCOPED(sensor_use) use = {0};

	use_begin(&use, root, sensor);
	if (use.here || !strstr(use.reason, why))
		fail_msg("%s: expected '%s', got '%s'", sensor->name, why, use.reason);
}

void series_add(struct process_record *record, const char *sensor, enum series_kind kind,
		const char *const *channels, size_t width, const double *rows, size_t count)
{
	struct series *series;

	record->series =
		memory_realloc(record->series, (record->series_count + 1) * sizeof *record->series);
	series = &record->series[record->series_count++];
	*series = (struct series){.kind = kind, .channel_count = width, .count = count};
	snprintf(series->sensor, sizeof series->sensor, "%s", sensor);
	series->channels = memory_alloc(width * sizeof *series->channels);
	series->times_ns = memory_alloc((count + 1) * sizeof *series->times_ns);
	series->values = memory_alloc((count * width + 1) * sizeof *series->values);
	for (size_t c = 0; c < width; c++)
		snprintf(series->channels[c], SERIES_WORD_BYTES, "%s", channels[c]);
	for (size_t i = 0; i < count; i++) {
		series->times_ns[i] = (int64_t)rows[i * (width + 1)];
		memcpy(&series->values[i * width], &rows[i * (width + 1) + 1],
		       width * sizeof *rows);
	}
}
