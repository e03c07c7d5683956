/* The instruments of GPUs: NVML on a played library whose clock the test moves, and the files of
 * kernel drivers on replayed machines; and the figures computed from them. */
#include <dlfcn.h>
#include <time.h>

#include "sensors/meters.h"
#include "sensors/sampling.h"
#include "tests/cuda/fake_nvml.h"
#include "tests/unit/sensor_fixture.h"
#include "unit_test.h"

#define MS INT64_C(1000000)
#define CARD "/sys/class/drm/card"

static atomic_llong clock_ns;
static struct fake_nvml *nvml;

int64_t __wrap_clock_monotonic_ns(void);
void __wrap_clock_sleep_until_ns(int64_t deadline_ns);

int64_t __wrap_clock_monotonic_ns(void)
{
	return atomic_load(&clock_ns);
}

void __wrap_clock_sleep_until_ns(int64_t deadline_ns)
{
	atomic_store(&clock_ns, deadline_ns + 50000);
}

/* The sensors' thread waits by the real clock, and so sleeps while the test's clock is ahead. */
static void begin_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&clock_ns, ((int64_t)now.tv_sec + 100) * 1000000000);
}

static int setup(void **state)
{
	begin_clock();
	*nvml = (struct fake_nvml){
		.clock = &clock_ns, .gpus = 2, .refresh_ns = 100 * MS, .energy_call_ns = 5 * MS};
	for (int i = 0; i < FAKE_GPUS; i++)
		nvml->gpu[i] = (struct fake_gpu){.idle_w = 100,
						 .busy_w = 700 - 200 * i,
						 .used = 2048 * FAKE_MIB,
						 .reserved = 600 * FAKE_MIB,
						 .processes = 1};
	return sensor_setup(state);
}

#define GPU_TEST(name) TEST_ON(name, setup, machine_teardown, const char *root)

/* CUDA counts the other way round. */
static const char *uuid_of(int index)
{
	return index == 0 ? "face0000-0000-4000-8000-000000000001"
			  : "face0000-0000-4000-8000-000000000000";
}

static const char *unknown_uuid(int index)
{
	(void)index;
	return NULL;
}

/* A process that works for that long between two marks and rests before and after. */
static struct process_record record_of(const char *root, const char *device, int64_t window_ns)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct meters *meters = meters_open(root_fd, device, uuid_of);
	struct sampling *sampling = NULL;
	struct error err = ERROR_INIT;
	struct process_record record;

	process_record_init(&record);
	for (int i = 0; i < FAKE_GPUS; i++)
		nvml->gpu[i].begin_ns = nvml->gpu[i].end_ns = 0;
	check(sampling_start(root_fd, GUARD, NULL, 0, meters, &sampling, &err), &err);
	/* Anywhere between two steps. */
	atomic_fetch_add(&clock_ns, 37 * MS);
	sampling_mark(sampling, true);
	record.window_begin_ns = atomic_load(&clock_ns);
	record.window_ns = window_ns;
	for (int i = 0; i < FAKE_GPUS; i++) {
		nvml->gpu[i].begin_ns = record.window_begin_ns;
		nvml->gpu[i].end_ns = record.window_begin_ns + window_ns;
	}
	atomic_fetch_add(&clock_ns, window_ns);
	sampling_mark(sampling, false);
	sampling_stop(sampling, &record);
	sampling_figures(&record);
	meters_close(meters);
	close(root_fd);
	return record;
}

static void says(const struct process_record *record, const char *what)
{
	if (!strstr(record->null_reasons, what))
		fail_msg("expected '%s' in '%s'", what, record->null_reasons);
}

static const struct series *series_of(const struct process_record *record, const char *sensor)
{
	const struct series *series = series_find(record->series, record->series_count, sensor);

	assert_non_null(series);
	return series;
}

static double value_at(const struct process_record *record, const char *sensor, const char *channel,
		       size_t sample)
{
	const struct series *series = series_of(record, sensor);

	for (size_t c = 0; c < series->channel_count; c++)
		if (!strcmp(series->channels[c], channel))
			return series->values[sample * series->channel_count + c];
	fail_msg("%s has no channel %s", sensor, channel);
	return NAN;
}

static void assert_near(double got, double expected, double part)
{
	if (!(fabs(got - expected) <= part * expected))
		fail_msg("expected %.6g within %.2g, got %.6g", expected, part, got);
}

GPU_TEST(what_nvml_reads)
{
	SCOPED(process_record) record;
	int64_t before = atomic_load(&clock_ns);

	nvml->gpu[1].reasons = 0x4;
	record = record_of(root, "cuda:0", 4000 * MS);
	assert_string_equal(record.gpu_source, "nvml");
	assert_real(value_at(&record, "gpu_power", "average-0", 0), 100);
	assert_real(value_at(&record, "gpu_memory", "used-0", 0), 2048.0 * FAKE_MIB);
	assert_real(record.gpu_memory_before, 2048.0 * FAKE_MIB);
	assert_real(record.gpu_memory_max_window, 2048.0 * FAKE_MIB);
	assert_real(record.gpu_memory_reserved, 600.0 * FAKE_MIB);
	assert_real(record.gpu_clock_hz, 1980e6);
	assert_real(record.gpu_temperature_max, 61);
	assert_real(record.gpu_busy_share, 0.97);
	assert_near(record.gpu_power_held, 0.25, 1e-3);
	assert_real(record.gpu_heat_held, 0);
	assert_real(value_at(&record, "gpu_reason", "power-0", 0), 1);
	assert_real(value_at(&record, "gpu_reason", "heat-0", 0), 0);
	assert_real(record.gpu_processes, 1);
	assert_real(record.gpu_bus_rate, 0);
	/* The memory's temperature is refused: not 0, and not a channel. */
	assert_int_equal(series_of(&record, "gpu_temperature")->channel_count, 1);
	assert_true(record.window_begin_ns > before);
}

/* The counter moves every 100 ms and takes 5 ms to read. The GPU rests up to the step after the
 * window, which must not count. */
GPU_TEST(energy_of_the_window_alone)
{
	static const struct {
		int64_t refresh_ns, window_ns;
		const char *grade;
		double part; /* of the truth, by which the result may be off */
	} cases[] = {
		{100 * MS, 20000 * MS, "B", 0.002}, {100 * MS, 4000 * MS, "B", 0.002},
		{100 * MS, 1010 * MS, "C", 0.02},   {100 * MS, 733 * MS, "C", 0.02},
		{20 * MS, 800 * MS, "B", 0.005},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		SCOPED(process_record) record;
		nvml->refresh_ns = cases[i].refresh_ns;
		nvml->energy_call_ns = cases[i].refresh_ns / 20;
		record = record_of(root, "cuda:1", cases[i].window_ns);
		assert_near((double)record.gpu_update_ns, (double)cases[i].refresh_ns, 0.1);
		assert_near(record.gpu_power_window, 700, cases[i].part);
		assert_near(record.gpu_energy_joules, 700 * (double)cases[i].window_ns * 1e-9,
			    cases[i].part);
		assert_string_equal(record.gpu_energy_grade, cases[i].grade);
	}
}

GPU_TEST(only_the_marks_read_the_energy)
{
	SCOPED(process_record) record = record_of(root, "cuda:0", 4000 * MS);
	const struct series *series = series_of(&record, "gpu_energy");
	size_t inside = 0;

	/* A sample and a step before the window, a sample and two steps after it. */
	assert_int_equal(series->count, 5);
	for (size_t i = 0; i < series->count; i++)
		inside += series->times_ns[i] > record.window_begin_ns &&
			  series->times_ns[i] < record.window_begin_ns + record.window_ns;
	assert_int_equal(inside, 0);
}

GPU_TEST(a_window_too_short_for_its_energy)
{
	SCOPED(process_record) record = record_of(root, "cuda:0", 300 * MS);

	assert_real(record.gpu_energy_joules, NAN);
	assert_string_equal(record.gpu_energy_grade, "");
	says(&record, "gpu_energy_joules: the GPU's energy needs a window of at least 6");
}

GPU_TEST(a_counter_that_was_set_back)
{
	SCOPED(process_record) record;

	nvml->gpu[1].set_back_ns = atomic_load(&clock_ns) + 2000 * MS;
	record = record_of(root, "cuda:0", 4000 * MS);
	assert_real(record.gpu_energy_joules, NAN);
	says(&record, "gpu_energy_joules: the GPU's energy counter was reset");
}

GPU_TEST(refused_readings_have_reasons)
{
	SCOPED(process_record) record;

	nvml->refuse_energy = nvml->refuse_processes = true;
	nvml->refuse_field = 74;
	record = record_of(root, "cuda:0", 1000 * MS);
	assert_real(record.gpu_energy_joules, NAN);
	assert_real(record.gpu_processes, NAN);
	assert_real(record.gpu_power_held, NAN);
	assert_string_equal(series_of(&record, "gpu_energy")->absent,
			    "nvml refuses it: Not Supported");
	says(&record, "gpu_processes");
	says(&record, "gpu_power_held: the driver refuses it");
	assert_real(record.gpu_heat_held, 0);
}

/* A part of a GPU has memory of its own, but no meter. */
GPU_TEST(a_part_of_a_gpu)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct meters *meters;
	char text[160];

	nvml->mig = true;
	nvml->gpus = 1;
	meters = meters_open(root_fd, "cuda:0", unknown_uuid);
	assert_int_equal(meters->count, 1);
	assert_string_equal(meters->refused[METER_ENERGY], "Not Supported");
	assert_string_equal(meters->refused[METER_POWER_INSTANT], "Not Supported");
	assert_string_equal(meters->refused[METER_BUSY_KERNELS], "Not Supported");
	assert_string_equal(meters->refused[METER_MEMORY_USED], "");
	meters_refused(meters, text, sizeof text);
	assert_string_equal(text, "energy, power, temperature memory, busy, bus");
	meters_close(meters);
	/* CUDA gives it a UUID of its own. */
	meters = meters_open(root_fd, "cuda:1", uuid_of);
	assert_int_equal(meters->count, 1);
	meters_close(meters);
	meters = meters_open(root_fd, "cuda:0", uuid_of);
	assert_int_equal(meters->count, 0);
	assert_non_null(strstr(meters->reason, "NVML has no GPU face0000"));
	meters_close(meters);
	close(root_fd);
}

GPU_TEST(which_gpu_it_is)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct meters *meters = meters_open(root_fd, "cuda:0", uuid_of);

	assert_ptr_equal(meters->rows[0].device, &nvml->gpu[1]);
	meters_close(meters);
	meters = meters_open(root_fd, "cuda:0", unknown_uuid);
	assert_string_equal(
		meters->reason,
		"which of NVML's 2 GPUs is cuda:0 is unknown: the driver gives no UUID");
	meters_close(meters);
	nvml->gpus = 1;
	meters = meters_open(root_fd, "cuda:0", unknown_uuid);
	assert_ptr_equal(meters->rows[0].device, &nvml->gpu[0]);
	meters_close(meters);
	assert_null(meters_open(root_fd, "cpu:2", uuid_of));
	close(root_fd);
}

/* Only the first one's steps are waited for, so that the ends of the other are less sure. */
GPU_TEST(several_gpus_are_added_up)
{
	SCOPED(process_record) record = record_of(root, "cuda:0+1", 5000 * MS);

	assert_near(record.gpu_power_window, 500 + 700, 0.05);
	assert_string_equal(record.gpu_energy_grade, "C");
	assert_real(record.gpu_memory_max_window, 2 * 2048.0 * FAKE_MIB);
	assert_real(record.gpu_clock_hz, 1980e6);
}

/* 100 W, and 500 W in the window from 1 to 5 s; each 100 ms. The counter, if any, has these watts.
 */
static struct process_record sampled_record(const char *source, int64_t window_ns, double counted)
{
	static const char *const channels[] = {"instant-0", "average-0"};
	const double energy[] = {0, 0, 0.95e9, 0, 7e9, counted * 6.05e9, 7.1e9, counted * 6.15e9};
	double rows[3 * 61];
	struct process_record record;

	for (int i = 0; i <= 60; i++) {
		rows[3 * i] = i * 1e8;
		rows[3 * i + 1] = i >= 10 && i <= 50 ? 500 : 100;
		rows[3 * i + 2] = 250;
	}
	process_record_init(&record);
	series_add(&record, "gpu_energy", SERIES_COUNTER, channels, 1, energy, counted > 0 ? 4 : 0);
	snprintf(record.series[0].absent, SERIES_REASON_BYTES, "refused");
	series_add(&record, "gpu_power", SERIES_GAUGE, channels, 2, rows, 61);
	snprintf(record.gpu_source, sizeof record.gpu_source, "%s", source);
	record.gpu_update_ns = 100 * MS;
	record.window_begin_ns = 1000 * MS;
	record.window_ns = window_ns;
	sampling_figures(&record);
	return record;
}

/* Without a counter, and beside it as a check, the samples of the power. */
TEST(power_that_was_sampled)
{
	SCOPED(process_record) whole = sampled_record("nvml", 4000 * MS, 0);
	SCOPED(process_record) brief = sampled_record("nvml", 1000 * MS, 0);
	SCOPED(process_record) unseen = sampled_record("hwmon", 4000 * MS, 0);
	SCOPED(process_record) alike = sampled_record("nvml", 4000 * MS, 515);
	SCOPED(process_record) unlike = sampled_record("nvml", 4000 * MS, 550);

	assert_real(whole.gpu_power_sampled, 500);
	assert_near(whole.gpu_power_run, (4.1 * 500 + 1.9 * 100) / 6, 1e-6);
	assert_real(whole.gpu_energy_joules, 2000);
	assert_string_equal(whole.gpu_energy_grade, "C");
	assert_string_equal(unseen.gpu_energy_grade, "U");
	assert_real(brief.gpu_energy_joules, NAN);
	says(&brief, "gpu_power_sampled: the window has fewer than 20 samples of the power");
	says(&brief, "gpu_energy_joules: refused");
	assert_string_equal(alike.gpu_energy_grade, "B");
	assert_near(unlike.gpu_power_window, 550, 1e-6);
	assert_string_equal(unlike.gpu_energy_grade, "C");
}

static void card_file(const char *root, int card, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, CARD "%d/device/%s", card, name);
	machine_file(root, path, text);
}

/* Two cards of AMD, whose numbers are not in the order of their addresses, and one of Intel. */
static void cards(const char *root)
{
	card_file(root, 0, "vendor", "0x1002\n");
	card_file(root, 0, "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:83:00.0\n");
	card_file(root, 1, "vendor", "0x1002\n");
	card_file(root, 1, "uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n");
	card_file(root, 1, "hwmon/hwmon4/name", "amdgpu\n");
	card_file(root, 1, "hwmon/hwmon4/power1_average", "250000000\n");
	card_file(root, 1, "hwmon/hwmon4/temp1_input", "54000\n");
	card_file(root, 1, "hwmon/hwmon4/freq1_input", "1700000000\n");
	card_file(root, 1, "mem_info_vram_used", "1048576\n");
	card_file(root, 1, "gpu_busy_percent", "80\n");
	card_file(root, 2, "vendor", "0x8086\n");
	card_file(root, 2, "uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:04:00.0\n");
	card_file(root, 2, "hwmon/hwmon2/name", "xe\n");
	card_file(root, 2, "hwmon/hwmon2/energy1_input", "5000000\n");
}

GPU_TEST(files_of_other_vendors)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct meters *meters;

	cards(root);
	nvml->gpus = 0;
	meters = meters_open(root_fd, "cuda:0", unknown_uuid);
	assert_string_equal(meters->source->name, "hwmon");
	assert_int_equal(meters->count, 1);
	assert_real(meters_read(meters, 0, METER_POWER_AVERAGE), 250);
	assert_real(meters_read(meters, 0, METER_TEMPERATURE_CORE), 54);
	assert_real(meters_read(meters, 0, METER_CLOCK_COMPUTE), 1.7e9);
	assert_real(meters_read(meters, 0, METER_BUSY_KERNELS), 0.8);
	assert_real(meters->memory_before, FAKE_MIB);
	assert_string_equal(meters->refused[METER_ENERGY], "the driver has no file energy1_input");
	assert_real(meters_read(meters, 0, METER_PROCESSES), NAN);
	meters_close(meters);
	meters = meters_open(root_fd, "gpu.0", unknown_uuid);
	assert_real(meters_read(meters, 0, METER_ENERGY), 5e9);
	meters_close(meters);
	meters = meters_open(root_fd, "gpu.1", unknown_uuid);
	assert_int_equal(meters->count, 0);
	meters_close(meters);
	/* Which card a renumbered one is cannot be known. */
	setenv("HIP_VISIBLE_DEVICES", "1", 1);
	meters = meters_open(root_fd, "cuda:0", unknown_uuid);
	unsetenv("HIP_VISIBLE_DEVICES");
	assert_int_equal(meters->count, 0);
	meters_close(meters);
	close(root_fd);
}

int main(void)
{
	/* Later, the sensors open the same library by its name. */
	void *library = dlopen(getenv("FAKE_NVML_LIBRARY"), RTLD_NOW);

	nvml = library ? dlsym(library, "fake_nvml") : NULL;
	if (!nvml) {
		print_error("no played NVML: %s\n", dlerror());
		return 1;
	}
	int (*init)(void);
	void *address = dlsym(library, "nvmlInit_v2");
	memcpy(&init, &address, sizeof init);
	init();
	return unit_tests_run(NULL, NULL);
}
