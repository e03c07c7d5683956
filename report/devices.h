/* Properties and prices of devices: devices.yaml of the tree, and the user's own rows before it. */
#ifndef PRONY_REPORT_DEVICES_H
#define PRONY_REPORT_DEVICES_H

#include <jansson.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/cell.h"

struct device_row {
	const char *name;
	/* The row matches if the machine's name for the device contains this, in any case. */
	const char *match;
	const char *currency; /* currency of the prices */
	const char *source;
	double cores, memory_gib, retail, hourly; /* NaN: not given */
	double peak_tflops[PRECISION_COUNT];
};

struct device_table {
	struct arena arena;
	struct device_row *rows;
	size_t count;
};

/* Reads `path`; for NULL, reads devices.yaml of path_config_home and then that of path_share (a
 * missing file gives no rows). PRONY_BAD_INPUT names file, line, key and what is expected. Call
 * devices_release after success. */
enum prony_status devices_load(const char *path, struct device_table *out, struct error *err);
void devices_release(struct device_table *table);

/* Returns the first row that matches a name; NULL if none does. */
const struct device_row *devices_find(const struct device_table *table, const char *name);

/* Returns the samples for one unit of money, by the hourly price; NaN without a price. */
double devices_samples_per_money(const struct device_row *row, double samples_per_second);

#endif
