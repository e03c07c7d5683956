/* Private to sensors/: figures of a process, with reasons for those that are null. */
#ifndef PRONY_SENSORS_FIGURES_INTERNAL_H
#define PRONY_SENSORS_FIGURES_INTERNAL_H

#include "base/error.h"
#include "samples/record.h"

enum { FIGURE_NOTES_MAX = 48 };

/* The null fields, each with its reason. */
struct figure_notes {
	struct {
		const char *field;
		char reason[SERIES_REASON_BYTES];
	} rows[FIGURE_NOTES_MAX];
	size_t count;
};

void figure_note(struct figure_notes *notes, const char *field, const char *format, ...)
	PRONY_PRINTF(3, 4);

/* Writes "a, b: why; c: why" in the order of arrival, fields with the same reason together. */
void figure_notes_write(const struct figure_notes *notes, char *out, size_t out_bytes);

/* Energy and power of a measured window, and power of the whole run (docs/sensors.md). */
void figures_energy(struct process_record *record, struct figure_notes *notes);

/* Energy and power of the GPUs in the window. */
void figures_gpu(struct process_record *record, struct figure_notes *notes);

/* Whether a counter was reset in an interval that touches this stretch of time. */
bool series_set_back(const struct series *series, size_t channel, int64_t begin_ns, int64_t end_ns);

#endif
