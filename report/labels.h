/* What tells cells apart, and what they have in common, in words. */
#ifndef PRONY_REPORT_LABELS_H
#define PRONY_REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "cell/cell.h"

/* Which axes differ among cells, and which mean something in some of them only. */
struct labels {
	bool varies[AXIS_COUNT], partly[AXIS_COUNT];
};

struct labels labels_of(const struct cell *const *cells, size_t count);

/* "native, train with sgd, batch 4": what varies; the framework comes first. Where nothing does,
 * the framework. */
void label_text(const struct labels *labels, const struct cell *cell, char *out, size_t out_bytes);

/* "lenet, mnist-sample, train with sgd, cpu, fp32": what does not vary, but the framework; settings
 * at their defaults are left out. */
void label_common(const struct labels *labels, const struct cell *cell, char *out,
		  size_t out_bytes);

#endif
