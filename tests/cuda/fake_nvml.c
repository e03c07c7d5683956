#include "tests/cuda/fake_nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
enum { INSUFFICIENT_SIZE = 7 };

EXPORT struct fake_nvml fake_nvml;
static bool started;

struct field {
	unsigned id, scope;
	long long time_us, latency_us;
	unsigned type;
	int status;
	union {
		unsigned u32;
		unsigned long long u64;
	} value;
};

static long long now_ns(void)
{
	struct timespec time;

	if (fake_nvml.clock)
		return atomic_load(fake_nvml.clock);
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void take(long long ns)
{
	const struct timespec time = {.tv_nsec = (long)ns};

	if (fake_nvml.clock)
		atomic_fetch_add(fake_nvml.clock, ns);
	else
		nanosleep(&time, NULL);
}

/* The values of the last refresh. */
static long long refreshed_ns(void)
{
	return now_ns() / fake_nvml.refresh_ns * fake_nvml.refresh_ns;
}

static double joules(const struct fake_gpu *gpu, long long ns)
{
	long long from = gpu->begin_ns < ns ? gpu->begin_ns : ns;
	long long to = gpu->end_ns < ns ? gpu->end_ns : ns;

	return ((double)ns * gpu->idle_w + (double)(to - from) * (gpu->busy_w - gpu->idle_w)) *
	       1e-9;
}

static double watts(const struct fake_gpu *gpu, long long over_ns)
{
	long long ns = refreshed_ns();

	return (joules(gpu, ns) - joules(gpu, ns - over_ns)) / ((double)over_ns * 1e-9);
}

/* FAKE_NVML: words key=value. */
static void read_variable(void)
{
	const char *text = getenv("FAKE_NVML"), *at;

	if (!text)
		return;
	if ((at = strstr(text, "gpus=")))
		fake_nvml.gpus = (int)strtol(at + strlen("gpus="), NULL, 10);
	if ((at = strstr(text, "refresh_ms=")))
		fake_nvml.refresh_ns = strtol(at + strlen("refresh_ms="), NULL, 10) * 1000000LL;
	fake_nvml.refuse_energy = strstr(text, "refuse=energy") != NULL;
	fake_nvml.mig = strstr(text, "mig") != NULL;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	if (started)
		return SUCCESS;
	started = true;
	fake_nvml = (struct fake_nvml){
		.gpus = FAKE_GPUS, .refresh_ns = 100000000, .energy_call_ns = 5000000};
	for (int i = 0; i < FAKE_GPUS; i++)
		fake_nvml.gpu[i] = (struct fake_gpu){.idle_w = 300,
						     .used = 2048 * FAKE_MIB,
						     .reserved = 600 * FAKE_MIB,
						     .processes = 1};
	read_variable();
	return SUCCESS;
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code)
{
	return code == NOT_SUPPORTED ? "Not Supported"
	       : code == NOT_FOUND   ? "Not Found"
				     : "Unknown Error";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
	snprintf(text, bytes, "580.0");
	return SUCCESS;
}

EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned bytes);
EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned bytes)
{
	snprintf(text, bytes, "13.580.0");
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = (unsigned)fake_nvml.gpus;
	return started ? SUCCESS : UNINITIALIZED;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	if (index >= (unsigned)fake_nvml.gpus)
		return INVALID;
	*device = &fake_nvml.gpu[index];
	return SUCCESS;
}

/* Those of the fake driver (fake_driver.c): the number is the last byte. */
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	size_t length = strlen(uuid);
	long number = length > 2 ? strtol(uuid + length - 2, NULL, 16) : FAKE_GPUS;

	if (strncmp(uuid, fake_nvml.mig ? "MIG-" : "GPU-", 4) != 0 || number >= fake_nvml.gpus)
		return NOT_FOUND;
	*device = &fake_nvml.gpu[number];
	return SUCCESS;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
	const struct fake_gpu *gpu = device;

	if (fake_nvml.refuse_energy || fake_nvml.mig)
		return NOT_SUPPORTED;
	long long ns = refreshed_ns();
	double begin =
		gpu->set_back_ns && ns >= gpu->set_back_ns ? joules(gpu, gpu->set_back_ns) : 0;
	*mj = (unsigned long long)((joules(gpu, ns) - begin) * 1e3);
	take(fake_nvml.energy_call_ns);
	return SUCCESS;
}

/* nvmlMemory_v2_t */
struct memory {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory);
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory)
{
	const struct fake_gpu *gpu = device;

	if (memory->version != (sizeof *memory | 2u << 24))
		return INVALID;
	memory->used = gpu->used;
	memory->reserved = gpu->reserved;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned clock, unsigned *mhz);
EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned clock, unsigned *mhz)
{
	(void)device;
	*mhz = clock == 2 ? 3201 : 1980;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
	*bits = ((const struct fake_gpu *)device)->reasons;
	return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees);
EXPORT int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *degrees)
{
	(void)device;
	*degrees = 61;
	return sensor == 0 ? SUCCESS : INVALID;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2]);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2])
{
	(void)device;
	percent[0] = 97;
	percent[1] = 40;
	return fake_nvml.mig ? NOT_SUPPORTED : SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *rows);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *rows)
{
	const struct fake_gpu *gpu = device;
	unsigned room = *count;

	(void)rows;
	if (fake_nvml.refuse_processes)
		return NOT_SUPPORTED;
	*count = gpu->processes;
	return gpu->processes > room ? INSUFFICIENT_SIZE : SUCCESS;
}

static int get_field(const struct fake_gpu *gpu, struct field *field)
{
	enum { U32 = 1, U64 = 3 };
	enum { HELD_POWER = 74, HELD_LAST = 80, AVERAGE = 185, INSTANT = 186, BUS = 197 };
	const long long second = 1000000000;

	field->type = U32;
	if (field->id == fake_nvml.refuse_field || (fake_nvml.mig && field->id >= AVERAGE))
		return NOT_SUPPORTED;
	if (field->id >= HELD_POWER && field->id <= HELD_LAST) {
		/* By the power cap a fourth of the time. */
		field->type = U64;
		field->value.u64 = field->id == HELD_POWER ? (unsigned long long)now_ns() / 4 : 0;
	} else if (field->id == AVERAGE) {
		field->value.u32 = (unsigned)(watts(gpu, second) * 1e3);
	} else if (field->id == INSTANT && !fake_nvml.refuse_instant) {
		field->value.u32 = (unsigned)(watts(gpu, fake_nvml.refresh_ns) * 1e3);
	} else if (field->id == BUS || field->id == BUS + 1) {
		field->value.u32 = gpu->bus;
	} else {
		return NOT_SUPPORTED;
	}
	return SUCCESS;
}

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields);
EXPORT int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
	for (int i = 0; i < count; i++)
		fields[i].status = get_field(device, &fields[i]);
	return SUCCESS;
}
