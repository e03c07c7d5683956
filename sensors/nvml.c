/* NVIDIA's GPUs, through the management library of their driver (NVML, "NVML API Reference").
 * Nothing of it is linked, and its few types are declared here. What each reading costs and how
 * often it moves was measured on an H200 (docs/sensors.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/loader.h"
#include "cell/device.h"
#include "sensors/meters.h"

#define LIBRARY "libnvidia-ml.so.1"

/* nvmlReturn_t */
enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
/* nvmlClockType_t */
enum { CLOCK_SM = 1, CLOCK_MEM = 2 };
/* Fields of nvmlDeviceGetFieldValues */
enum {
	FIELD_HELD_POWER = 74, /* up to 80: the time held down, in ns */
	FIELD_TEMPERATURE_MEMORY = 82,
	FIELD_POWER_AVERAGE = 185,
	FIELD_POWER_INSTANT = 186,
	FIELD_BUS_FROM = 197, /* sent by the GPU */
	FIELD_BUS_TO = 198,
};
/* Bits of nvmlDeviceGetCurrentClocksThrottleReasons */
enum {
	REASON_IDLE = 0x1,
	REASON_SETTING = 0x2 | 0x100, /* clocks of applications, or of a display */
	REASON_POWER = 0x4,
	REASON_HEAT = 0x20 | 0x40, /* slowed by software, by hardware */
	REASON_BRAKE = 0x8 | 0x80, /* slowed by hardware: heat, or the power supply */
};

/* nvmlFieldValue_t; type: nvmlValueType_t */
struct field {
	unsigned id, scope;
	long long time_us, latency_us;
	unsigned type;
	int status;
	union {
		double real;
		unsigned u32;
		unsigned long ulong;
		unsigned long long u64;
		long long i64;
		int i32;
		unsigned short u16;
	} value;
};
enum { TYPE_REAL, TYPE_U32, TYPE_ULONG, TYPE_U64, TYPE_I64, TYPE_I32, TYPE_U16 };

/* nvmlMemory_v2_t: its `used` leaves out what is reserved. */
struct memory {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
#define MEMORY_VERSION ((unsigned)sizeof(struct memory) | 2u << 24)

/* nvmlUtilization_t, in percent */
struct busy {
	unsigned kernels, memory;
};

/* nvmlProcessInfo_t */
struct process {
	unsigned pid;
	unsigned long long used;
	unsigned instances[2];
};
enum { PROCESSES_MAX = 64 };

/* X(function, arguments); all return nvmlReturn_t. Older libraries lack some. */
#define NEEDED(X)                                                                                  \
	X(nvmlInit_v2, (void))                                                                     \
	X(nvmlDeviceGetCount_v2, (unsigned *count))                                                \
	X(nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **device))                          \
	X(nvmlDeviceGetHandleByUUID, (const char *uuid, void **device))
#define OPTIONAL(X)                                                                                \
	X(nvmlSystemGetDriverVersion, (char *text, unsigned bytes))                                \
	X(nvmlSystemGetNVMLVersion, (char *text, unsigned bytes))                                  \
	X(nvmlDeviceGetTotalEnergyConsumption, (void *device, unsigned long long *mj))             \
	X(nvmlDeviceGetPowerUsage, (void *device, unsigned *mw))                                   \
	X(nvmlDeviceGetFieldValues, (void *device, int count, struct field *fields))               \
	X(nvmlDeviceGetMemoryInfo_v2, (void *device, struct memory *memory))                       \
	X(nvmlDeviceGetClockInfo, (void *device, unsigned clock, unsigned *mhz))                   \
	X(nvmlDeviceGetCurrentClocksThrottleReasons, (void *device, unsigned long long *bits))     \
	X(nvmlDeviceGetTemperature, (void *device, unsigned sensor, unsigned *degrees))            \
	X(nvmlDeviceGetUtilizationRates, (void *device, struct busy *busy))                        \
	X(nvmlDeviceGetComputeRunningProcesses_v3,                                                 \
	  (void *device, unsigned *count, struct process *processes))

/* Loaded and initialised once, and kept: initialising takes long without the driver's daemon. Used
 * by one thread at a time. */
static struct {
	bool asked, works;
	char reason[SERIES_REASON_BYTES];
	const char *(*nvmlErrorString)(int code);
#define X(function, arguments) int(*function) arguments;
	NEEDED(X) OPTIONAL(X)
#undef X
} nvml;

static bool load(void)
{
	const struct loader_symbol symbols[] = {
		LOADER_SYMBOL(nvml.nvmlErrorString, "nvmlErrorString"),
#define X(function, arguments) LOADER_SYMBOL(nvml.function, #function),
		NEEDED(X)
#undef X
#define X(function, arguments) LOADER_OPTIONAL(nvml.function, #function),
			OPTIONAL(X)
#undef X
	};
	struct error err = ERROR_INIT;
	void *handle;

	if (nvml.asked)
		return nvml.works;
	nvml.asked = true;
	if (loader_open(LIBRARY, &handle, &err) != PRONY_OK ||
	    loader_resolve(handle, LIBRARY, symbols, sizeof symbols / sizeof *symbols, &err) !=
		    PRONY_OK) {
		snprintf(nvml.reason, sizeof nvml.reason, "%.150s", err.text);
		return false;
	}
	int code = nvml.nvmlInit_v2();
	nvml.works = code == SUCCESS;
	if (!nvml.works)
		snprintf(nvml.reason, sizeof nvml.reason, "NVML does not start: %.100s",
			 nvml.nvmlErrorString(code));
	return nvml.works;
}

bool nvml_versions(char out[METER_TEXT_BYTES], char why[SERIES_REASON_BYTES])
{
	char driver[40] = "unknown", own[40] = "unknown";

	if (!load()) {
		memcpy(why, nvml.reason, sizeof nvml.reason);
		return false;
	}
	if (nvml.nvmlSystemGetDriverVersion)
		nvml.nvmlSystemGetDriverVersion(driver, sizeof driver);
	if (nvml.nvmlSystemGetNVMLVersion)
		nvml.nvmlSystemGetNVMLVersion(own, sizeof own);
	snprintf(out, METER_TEXT_BYTES, "NVML %s, driver %s", own, driver);
	return true;
}

/* A whole GPU, or a part of one (multi-instance GPU). */
static bool find_uuid(struct meters *meters, const char *uuid, void **out)
{
	static const char *const kinds[] = {"GPU", "MIG"};
	int code = NOT_FOUND;

	for (size_t i = 0; i < 2 && code != SUCCESS; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s-%.48s", kinds[i], uuid);
		code = nvml.nvmlDeviceGetHandleByUUID(name, out);
	}
	if (code != SUCCESS)
		snprintf(meters->reason, sizeof meters->reason, "NVML has no GPU %.48s: %.60s",
			 uuid, nvml.nvmlErrorString(code));
	return code == SUCCESS;
}

/* Finds the GPU that programs call cuda:index. CUDA counts from the fastest on and leaves out what
 * CUDA_VISIBLE_DEVICES hides; NVML counts by PCI address. Only the UUID is common. */
static bool find(struct meters *meters, int index, void **out)
{
	const char *uuid = meters->uuid ? meters->uuid(index) : NULL;
	unsigned count = 0;

	if (uuid)
		return find_uuid(meters, uuid, out);
	int code = nvml.nvmlDeviceGetCount_v2(&count);
	if (code == SUCCESS && count == 1 && index == 0)
		code = nvml.nvmlDeviceGetHandleByIndex_v2(0, out);
	else if (code == SUCCESS)
		code = NOT_FOUND;
	if (code != SUCCESS)
		snprintf(meters->reason, sizeof meters->reason,
			 "which of NVML's %u GPUs is cuda:%d is unknown: the driver gives no UUID",
			 count, index);
	return code == SUCCESS;
}

static void open_all(struct meters *meters)
{
	const struct device device = device_of(meters->device);
	size_t found = 0;

	if (device.kind != DEVICE_CUDA) {
		snprintf(meters->reason, sizeof meters->reason, "no sensor knows device %.48s",
			 meters->device);
		return;
	}
	if (!load()) {
		memcpy(meters->reason, nvml.reason, sizeof nvml.reason);
		return;
	}
	if (device.count > METERS_MAX) {
		snprintf(meters->reason, sizeof meters->reason, "more than %d GPUs", METERS_MAX);
		return;
	}
	while (found < (size_t)device.count &&
	       find(meters, device.indices[found], &meters->rows[found].device))
		found++;
	meters->count = found == (size_t)device.count ? found : 0;
}

static double field_value(const struct field *field)
{
	switch (field->type) {
	case TYPE_REAL:
		return field->value.real;
	case TYPE_U32:
		return field->value.u32;
	case TYPE_ULONG:
		return (double)field->value.ulong;
	case TYPE_U64:
		return (double)field->value.u64;
	case TYPE_I64:
		return (double)field->value.i64;
	case TYPE_I32:
		return field->value.i32;
	case TYPE_U16:
		return field->value.u16;
	default:
		return NAN;
	}
}

static int read_field(const struct meter *meter, unsigned id, struct field *field)
{
	*field = (struct field){.id = id}; /* scope 0: the whole GPU */
	if (!nvml.nvmlDeviceGetFieldValues)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetFieldValues(meter->device, 1, field);
	return code == SUCCESS ? field->status : code;
}

static int field_number(const struct meter *meter, unsigned id, double scale, double *out)
{
	struct field field;
	int code = read_field(meter, id, &field);

	*out = code == SUCCESS ? field_value(&field) * scale : NAN;
	return code;
}

/* A 32-bit counter of bytes wraps around once in 4 GiB. */
static int bus_bytes(struct meter *meter, unsigned id, struct meter_wrap *wrap, double *out)
{
	struct field field;
	int code = read_field(meter, id, &field);

	if (code != SUCCESS)
		return code;
	*out = field_value(&field);
	if (field.type == TYPE_U32) {
		if (wrap->known && field.value.u32 < wrap->last)
			wrap->added += UINT64_C(1) << 32;
		wrap->known = true;
		wrap->last = field.value.u32;
		*out += (double)wrap->added;
	}
	*out *= 1e9; /* so that the rate is in bytes a second */
	return code;
}

static int memory_bytes(const struct meter *meter, bool reserved, double *out)
{
	struct memory memory = {.version = MEMORY_VERSION};

	if (!nvml.nvmlDeviceGetMemoryInfo_v2)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetMemoryInfo_v2(meter->device, &memory);
	*out = (double)(reserved ? memory.reserved : memory.used);
	return code;
}

static int clock_hz(const struct meter *meter, unsigned clock, double *out)
{
	unsigned mhz = 0;

	if (!nvml.nvmlDeviceGetClockInfo)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetClockInfo(meter->device, clock, &mhz);
	*out = mhz > 0 ? mhz * 1e6 : NAN;
	return code;
}

static int has_reason(const struct meter *meter, unsigned long long which, double *out)
{
	unsigned long long bits = 0;

	if (!nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(meter->device, &bits);
	*out = (bits & which) != 0;
	return code;
}

static int busy_share(const struct meter *meter, bool memory, double *out)
{
	struct busy busy = {0};

	if (!nvml.nvmlDeviceGetUtilizationRates)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetUtilizationRates(meter->device, &busy);
	*out = (memory ? busy.memory : busy.kernels) * 0.01;
	return code;
}

static int process_count(const struct meter *meter, double *out)
{
	struct process processes[PROCESSES_MAX];
	unsigned count = PROCESSES_MAX;

	if (!nvml.nvmlDeviceGetComputeRunningProcesses_v3)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetComputeRunningProcesses_v3(meter->device, &count, processes);
	*out = count;
	return code == INSUFFICIENT_SIZE ? SUCCESS : code;
}

static int energy_nj(const struct meter *meter, double *out)
{
	unsigned long long mj = 0;

	if (!nvml.nvmlDeviceGetTotalEnergyConsumption)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetTotalEnergyConsumption(meter->device, &mj);
	*out = (double)mj * 1e6;
	return code;
}

/* On GPUs before Ampere, and on GA100, this is the power at that instant; later a mean over 1 s. */
static int power_usage(const struct meter *meter, double *out)
{
	unsigned mw = 0;

	if (!nvml.nvmlDeviceGetPowerUsage)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetPowerUsage(meter->device, &mw);
	*out = mw * 1e-3;
	return code;
}

static int core_degrees(const struct meter *meter, double *out)
{
	unsigned degrees = 0;

	if (!nvml.nvmlDeviceGetTemperature)
		return NOT_SUPPORTED;
	int code = nvml.nvmlDeviceGetTemperature(meter->device, 0, &degrees);
	*out = degrees;
	return code;
}

static int read_code(struct meter *meter, enum meter_reading what, double *out)
{
	static const unsigned long long reasons[METER_READING_COUNT] = {
		[METER_REASON_IDLE] = REASON_IDLE,   [METER_REASON_SETTING] = REASON_SETTING,
		[METER_REASON_POWER] = REASON_POWER, [METER_REASON_HEAT] = REASON_HEAT,
		[METER_REASON_BRAKE] = REASON_BRAKE,
	};

	if (what >= METER_HELD_POWER && what <= METER_HELD_SETTING)
		return field_number(meter, FIELD_HELD_POWER + (unsigned)(what - METER_HELD_POWER),
				    1, out);
	if (reasons[what])
		return has_reason(meter, reasons[what], out);
	switch (what) {
	case METER_ENERGY:
		return energy_nj(meter, out);
	case METER_POWER_INSTANT:
		return field_number(meter, FIELD_POWER_INSTANT, 1e-3, out);
	case METER_POWER_AVERAGE:
		return field_number(meter, FIELD_POWER_AVERAGE, 1e-3, out) == SUCCESS
			       ? SUCCESS
			       : power_usage(meter, out);
	case METER_MEMORY_USED:
	case METER_MEMORY_RESERVED:
		return memory_bytes(meter, what == METER_MEMORY_RESERVED, out);
	case METER_CLOCK_COMPUTE:
		return clock_hz(meter, CLOCK_SM, out);
	case METER_CLOCK_MEMORY:
		return clock_hz(meter, CLOCK_MEM, out);
	case METER_TEMPERATURE_CORE:
		return core_degrees(meter, out);
	case METER_TEMPERATURE_MEMORY:
		return field_number(meter, FIELD_TEMPERATURE_MEMORY, 1, out);
	case METER_BUSY_KERNELS:
	case METER_BUSY_MEMORY:
		return busy_share(meter, what == METER_BUSY_MEMORY, out);
	case METER_BUS_TO:
		return bus_bytes(meter, FIELD_BUS_TO, &meter->bus[0], out);
	case METER_BUS_FROM:
		return bus_bytes(meter, FIELD_BUS_FROM, &meter->bus[1], out);
	case METER_PROCESSES:
		return process_count(meter, out);
	default:
		return NOT_SUPPORTED;
	}
}

static double read_one(struct meter *meter, enum meter_reading what, char why[METER_TEXT_BYTES])
{
	double value = NAN;
	int code = read_code(meter, what, &value);

	if (code == SUCCESS)
		return value;
	snprintf(why, METER_TEXT_BYTES, "%.60s", nvml.nvmlErrorString(code));
	return NAN;
}

const struct meter_source meter_nvml = {.name = "nvml", .open = open_all, .read = read_one};
