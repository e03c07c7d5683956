/* What devices are and cost: devices.yaml of the tree, and the user's own rows before it. */
#ifndef PRONY_REPORT_DEVICES_H
#define PRONY_REPORT_DEVICES_H

#include <jansson.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "cell/cell.h"

struct device_row {
	const char *name;
	const char *match;    /* what the machine calls it holds this, whatever the case */
	const char *currency; /* of the prices */
	const char *source;
	double cores, memory_gib, retail, hourly; /* NaN: not given */
	double peak_tflops[PRECISION_COUNT];
};

struct device_table {
	struct arena arena;
	struct device_row *rows;
	size_t count;
};

/*
 * Reads `path`, or for NULL devices.yaml of path_config_home and then that of path_share (no rows
 * where there is none). PRONY_BAD_INPUT names file, line, key and what is expected.
 * devices_release after success.
 */
enum prony_status devices_load(const char *path, struct device_table *out, struct error *err);
void devices_release(struct device_table *table);

/* The first row that matches a name; NULL when none does. */
const struct device_row *devices_find(const struct device_table *table, const char *name);

/* Items for one unit of money: by the hourly price. NaN without one. */
double devices_samples_per_money(const struct device_row *row, double samples_per_second);

#endif
