/* Labels from the axes in which cells differ, and titles from those that they have in common. */
#ifndef PRONY_REPORT_LABELS_H
#define PRONY_REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "cell/cell.h"

/* The axes that differ among cells, and the axes that apply to some of the cells only. */
struct labels {
	bool varies[AXIS_COUNT], partly[AXIS_COUNT];
};

struct labels labels_of(const struct cell *const *cells, size_t count);

/* Writes the axes that differ, the framework first: "native, train with sgd, batch 4". If none
 * differs, writes the framework. */
void label_text(const struct labels *labels, const struct cell *cell, char *out, size_t out_bytes);

/* Writes the axes that do not differ, without the framework: "lenet, mnist-sample, train with sgd,
 * cpu, fp32". Settings at their defaults are left out. */
void label_common(const struct labels *labels, const struct cell *cell, char *out,
		  size_t out_bytes);

#endif
