/* GPUs of AMD and Intel, from the files of their kernel drivers
 * (Documentation/gpu/amdgpu/thermal.rst and Documentation/ABI/testing/sysfs-driver-intel-*-hwmon of
 * Linux). Written from this documentation: the developers have not seen these files on such a GPU.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process_tree.h"
#include "cell/device.h"
#include "sensors/files.h"
#include "sensors/meters.h"

enum { CARDS_MAX = 64, HWMON_MAX = 64, PATH_BYTES = 160 };

#define AMD "0x1002"
#define INTEL "0x8086"

/* A file of a reading: below the card's folder, or below its hwmon folder. */
static const struct {
	enum meter_reading what;
	bool hwmon;
	const char *name;
	double scale;
} files[] = {
	{METER_ENERGY, true, "energy1_input", 1e3},	   /* uJ */
	{METER_POWER_INSTANT, true, "power1_input", 1e-6}, /* uW */
	{METER_POWER_AVERAGE, true, "power1_average", 1e-6},
	{METER_CLOCK_COMPUTE, true, "freq1_input", 1},
	{METER_CLOCK_MEMORY, true, "freq2_input", 1},
	{METER_TEMPERATURE_CORE, true, "temp1_input", 1e-3},
	{METER_TEMPERATURE_MEMORY, true, "temp3_input", 1e-3},
	{METER_MEMORY_USED, false, "mem_info_vram_used", 1},
	{METER_BUSY_KERNELS, false, "gpu_busy_percent", 0.01},
	{METER_BUSY_MEMORY, false, "mem_busy_percent", 0.01},
};

struct card {
	char folder[64];  /* "/sys/class/drm/card0/device" */
	char address[32]; /* "0000:03:00.0" */
};

static bool card_read(int root_fd, const char *vendor, int number, struct card *out)
{
	char path[PATH_BYTES], text[1024];

	snprintf(out->folder, sizeof out->folder, "/sys/class/drm/card%d/device", number);
	snprintf(path, sizeof path, "%s/vendor", out->folder);
	if (process_read_file(root_fd, path, text, sizeof text) <= 0 ||
	    strncmp(text, vendor, strlen(vendor)) != 0)
		return false;
	snprintf(path, sizeof path, "%s/uevent", out->folder);
	if (process_read_file(root_fd, path, text, sizeof text) <= 0)
		text[0] = '\0';
	const char *slot = strstr(text, "PCI_SLOT_NAME=");
	snprintf(out->address, sizeof out->address, "%.12s",
		 slot ? slot + strlen("PCI_SLOT_NAME=") : "");
	return true;
}

static int by_address(const void *a, const void *b)
{
	return strcmp(((const struct card *)a)->address, ((const struct card *)b)->address);
}

/* The cards of a vendor in the order of their PCI addresses. */
static size_t find_cards(int root_fd, const char *vendor, struct card out[CARDS_MAX])
{
	size_t count = 0;

	for (int i = 0; i < CARDS_MAX; i++)
		count += card_read(root_fd, vendor, i, &out[count]);
	qsort(out, count, sizeof *out, by_address);
	return count;
}

/* Whether it has any of the files. */
static bool open_files(int root_fd, const struct card *card, struct meter *meter)
{
	char path[PATH_BYTES], text[64];
	int hwmon = -1;
	bool any = false;

	for (int i = 0; i < METER_READING_COUNT; i++)
		meter->fds[i] = -1;
	for (int i = 0; i < HWMON_MAX && hwmon < 0; i++) {
		snprintf(path, sizeof path, "%s/hwmon/hwmon%d/name", card->folder, i);
		if (process_read_file(root_fd, path, text, sizeof text) > 0)
			hwmon = i;
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (files[i].hwmon)
			snprintf(path, sizeof path, "%s/hwmon/hwmon%d/%s", card->folder, hwmon,
				 files[i].name);
		else
			snprintf(path, sizeof path, "%s/%s", card->folder, files[i].name);
		meter->fds[files[i].what] = process_open_file(root_fd, path);
		any |= meter->fds[files[i].what] >= 0;
	}
	return any;
}

/* HIP calls AMD's GPUs cuda:N, OpenVINO calls Intel's gpu.N. Both are taken to count by PCI
 * address; a variable that renumbers them makes that unknown. */
static void open_all(struct meters *meters)
{
	const struct device device = device_of(meters->device);
	bool amd = device.kind == DEVICE_CUDA;
	const char *digits = meters->device + strcspn(meters->device, ".:");
	int other = *digits ? (int)strtol(digits + 1, NULL, 10) : 0;
	size_t wanted = amd ? (size_t)device.count : 1, found = 0;
	struct card cards[CARDS_MAX];

	if (!amd && strncmp(meters->device, "gpu", 3) != 0)
		return;
	size_t count = find_cards(meters->root_fd, amd ? AMD : INTEL, cards);
	for (; count > 0 && found < wanted && found < METERS_MAX; found++) {
		int index = amd ? device.indices[found] : other;
		if ((size_t)index >= count ||
		    !open_files(meters->root_fd, &cards[index], &meters->rows[found]))
			break;
	}
	meters->count = found;
	bool moved = amd && count > 1 &&
		     (getenv("HIP_VISIBLE_DEVICES") || getenv("ROCR_VISIBLE_DEVICES"));
	if (found == wanted && !moved)
		return;
	for (size_t i = 0; i < found; i++)
		meter_hwmon.close(&meters->rows[i]);
	meters->count = 0;
	snprintf(meters->reason, sizeof meters->reason,
		 moved ? "HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES renumbers the GPUs"
		       : "/sys/class/drm has %zu GPUs of that vendor, or no files of it",
		 count);
}

static double read_one(struct meter *meter, enum meter_reading what, char why[METER_TEXT_BYTES])
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (files[i].what != what)
			continue;
		int64_t value = file_number(meter->fds[what]);
		snprintf(why, METER_TEXT_BYTES, "the driver has no file %s", files[i].name);
		return value < 0 ? NAN : (double)value * files[i].scale;
	}
	snprintf(why, METER_TEXT_BYTES, "the driver has no file for it");
	return NAN;
}

static void close_one(struct meter *meter)
{
	for (int i = 0; i < METER_READING_COUNT; i++)
		if (meter->fds[i] >= 0)
			close(meter->fds[i]);
}

const struct meter_source meter_hwmon = {
	.name = "hwmon", .open = open_all, .read = read_one, .close = close_one};
