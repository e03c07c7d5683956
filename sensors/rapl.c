/* Energy counters of processor packages, memory and the whole board: Intel's Running Average Power
 * Limit and AMD's equivalent, through the kernel's powercap
 * (Documentation/power/powercap/powercap.rst of Linux). */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sensors/files.h"
#include "sensors/sensor.h"

#define FOLDER "/sys/class/powercap"

enum { TOP_ZONES_MAX = 64, CHILD_ZONES_MAX = 8, ZONES_MAX = 64 };

/* No package draws this much. A counter that jumps by more was reset or wrapped around unseen. */
#define POWER_MAX_W 5000.0
/* Counters are updated about once a millisecond. */
#define UPDATES_S 0.02

struct zone {
	char channel[SERIES_WORD_BYTES]; /* "package-0", "dram-0", "psys" */
	char path[96];			 /* its folder */
	int fd;				 /* open energy_uj; -1: not available now */
	bool known;
	int64_t last_uj, last_ns;
	double range_uj; /* the value at which it wraps to 0; 0: unknown */
	double added_uj; /* added to each reading for earlier wraps */
};

struct zones {
	struct zone rows[ZONES_MAX];
	size_t count;
};

static bool read_text(int root_fd, const char *folder, const char *name, char *out, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (process_read_file(root_fd, path, out, bytes) <= 0)
		return false;
	out[strcspn(out, "\n")] = '\0';
	return *out != '\0';
}

static int open_counter(int root_fd, const struct zone *zone)
{
	char path[128];
	snprintf(path, sizeof path, "%s/energy_uj", zone->path);
	return process_open_file(root_fd, path);
}

/* A zone with a name that exists already is the same counter read through another register
 * (intel-rapl and intel-rapl-mmio); count it once. */
static void add_zone(int root_fd, struct zones *zones, const char *channel, const char *path)
{
	char text[32], *end;
	for (size_t i = 0; i < zones->count; i++)
		if (!strcmp(zones->rows[i].channel, channel))
			return;
	if (zones->count == ZONES_MAX || strlen(channel) >= SERIES_WORD_BYTES)
		return;
	struct zone *zone = &zones->rows[zones->count++];
	*zone = (struct zone){.fd = -1};
	snprintf(zone->channel, sizeof zone->channel, "%s", channel);
	snprintf(zone->path, sizeof zone->path, "%s", path);
	if (read_text(root_fd, path, "max_energy_range_uj", text, sizeof text)) {
		long long range = strtoll(text, &end, 10);
		zone->range_uj = end != text && !*end && range > 0 ? (double)range : 0;
	}
}

/* Adds the memory zone of a package. The other zones below it, core and uncore, are part of the
 * package. */
static void add_memory(int root_fd, struct zones *zones, const char *package, const char *path)
{
	for (int i = 0; i < CHILD_ZONES_MAX; i++) {
		char child[96], name[64], channel[96];
		snprintf(child, sizeof child, "%.80s:%d", path, i);
		if (!read_text(root_fd, child, "name", name, sizeof name) || strcmp(name, "dram"))
			continue;
		snprintf(channel, sizeof channel, "dram%s", package + strlen("package"));
		add_zone(root_fd, zones, channel, child);
	}
}

static void find_zones(int root_fd, struct zones *zones)
{
	static const char *const controllers[] = {"intel-rapl", "intel-rapl-mmio"};
	zones->count = 0;
	for (size_t c = 0; c < sizeof controllers / sizeof controllers[0]; c++)
		for (int i = 0; i < TOP_ZONES_MAX; i++) {
			char path[96], name[64];
			snprintf(path, sizeof path, FOLDER "/%s:%d", controllers[c], i);
			if (!read_text(root_fd, path, "name", name, sizeof name))
				continue;
			bool package = !strncmp(name, "package", strlen("package"));
			if (package || !strcmp(name, "psys"))
				add_zone(root_fd, zones, name, path);
			if (package)
				add_memory(root_fd, zones, name, path);
		}
}

static bool is_package(const struct zone *zone)
{
	return !strncmp(zone->channel, "package", strlen("package"));
}

/* A sum that misses a package would be too small, so require all packages. */
static bool probe(const struct watched *watched, char reason[SERIES_REASON_BYTES])
{
	struct zones *zones = memory_alloc(sizeof *zones);
	size_t readable = 0;

	find_zones(watched->root_fd, zones);
	if (zones->count == 0)
		snprintf(reason, SERIES_REASON_BYTES,
			 "no energy counter in " FOLDER
			 ": a virtual machine, or no support by processor or kernel");
	for (size_t i = 0; i < zones->count && !*reason; i++) {
		int fd = open_counter(watched->root_fd, &zones->rows[i]);
		if (fd >= 0)
			close(fd);
		readable += fd >= 0;
		if (fd < 0 && is_package(&zones->rows[i]))
			snprintf(reason, SERIES_REASON_BYTES,
				 "%s/energy_uj cannot be read; as root: chmod a+r " FOLDER
				 "/*/energy_uj",
				 zones->rows[i].path);
	}
	if (!*reason && readable == 0)
		snprintf(reason, SERIES_REASON_BYTES,
			 "energy_uj cannot be read; as root: chmod a+r " FOLDER "/*/energy_uj");
	free(zones);
	return !*reason;
}

static void open_all(const struct watched *watched, struct sensor_handle *handle)
{
	struct zones *zones = memory_alloc(sizeof *zones);

	find_zones(watched->root_fd, zones);
	for (size_t i = 0; i < zones->count; i++) {
		sensor_add_channel(handle, zones->rows[i].channel);
		zones->rows[i].fd = open_counter(watched->root_fd, &zones->rows[i]);
	}
	handle->state = zones;
}

/* The counter without wraps, in nJ. When it was reset, the returned value falls, which invalidates
 * that interval (samples/series.h). */
static double unwrapped_nj(struct zone *zone, int64_t uj, int64_t now_ns)
{
	double before = (double)zone->last_uj + zone->added_uj;
	double seconds = (double)(now_ns - zone->last_ns) * 1e-9;
	double most_uj = POWER_MAX_W * 1e6 * (seconds + UPDATES_S);
	double step = (double)(uj - zone->last_uj);

	if (zone->known) {
		bool round = step < 0 && zone->range_uj > 0;
		if (round)
			step += zone->range_uj;
		bool often = zone->range_uj > 0 && most_uj >= zone->range_uj;
		if (step < 0 || step > most_uj || often)
			zone->added_uj = before - 1 - (double)uj;
		else if (round)
			zone->added_uj += zone->range_uj;
	}
	zone->known = true;
	zone->last_uj = uj;
	zone->last_ns = now_ns;
	return ((double)uj + zone->added_uj) * 1e3;
}

static void sample(const struct watched *watched, struct sensor_handle *handle, double *values)
{
	struct zones *zones = handle->state;
	for (size_t i = 0; i < zones->count; i++) {
		struct zone *zone = &zones->rows[i];
		int64_t uj = file_number(zone->fd);
		if (uj >= 0) {
			values[i] = unwrapped_nj(zone, uj, watched->now_ns);
			continue;
		}
		/* When its driver returns, the file is a new one. */
		values[i] = NAN;
		if (zone->fd >= 0)
			close(zone->fd);
		zone->fd = open_counter(watched->root_fd, zone);
	}
}

static void close_all(struct sensor_handle *handle)
{
	struct zones *zones = handle->state;
	for (size_t i = 0; i < zones->count; i++)
		if (zones->rows[i].fd >= 0)
			close(zones->rows[i].fd);
	free(zones);
}

const struct sensor sensor_rapl = {
	.name = "rapl",
	.unit = "nJ",
	.rate_unit = "W",
	.kind = SERIES_COUNTER,
	.period_ns = 250000000,
	.steps_ns = 20000000,
	.probe = probe,
	.open = open_all,
	.sample = sample,
	.close = close_all,
};
