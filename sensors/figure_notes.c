#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sensors/figures_internal.h"

void figure_note(struct figure_notes *notes, const char *field, const char *format, ...)
{
	va_list arguments;

	if (notes->count == FIGURE_NOTES_MAX)
		return;
	notes->rows[notes->count].field = field;
	va_start(arguments, format);
	vsnprintf(notes->rows[notes->count++].reason, SERIES_REASON_BYTES, format, arguments);
	va_end(arguments);
}

void figure_notes_write(const struct figure_notes *notes, char *out, size_t out_bytes)
{
	bool written[FIGURE_NOTES_MAX] = {false};
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < notes->count; i++) {
		if (written[i])
			continue;
		for (size_t k = i; k < notes->count; k++) {
			if (strcmp(notes->rows[k].reason, notes->rows[i].reason) != 0)
				continue;
			written[k] = true;
			if (used < out_bytes)
				used += (size_t)snprintf(out + used, out_bytes - used, "%s%s",
							 k > i	    ? ", "
							 : used > 0 ? "; "
								    : "",
							 notes->rows[k].field);
		}
		if (used < out_bytes)
			used += (size_t)snprintf(out + used, out_bytes - used, ": %s",
						 notes->rows[i].reason);
	}
}
