#include "run/loss_series.h"

#include <stdio.h>
#include <stdlib.h>

enum prony_status loss_series_add(struct series *losses, int64_t end_ns, double loss,
				  struct error *err)
{
	size_t count = losses->count + 1;
	int64_t *times = realloc(losses->times_ns, count * sizeof *times);
	if (times)
		losses->times_ns = times;
	double *values = realloc(losses->values, count * sizeof *values);
	if (values)
		losses->values = values;
	if (!times || !values)
		return error_set(err, PRONY_NOMEM, "no memory for %zu losses", count);
	times[losses->count] = end_ns;
	values[losses->count] = loss;
	losses->count = count;
	return PRONY_OK;
}

void loss_series_keep(struct series *losses, struct process_record *record)
{
	struct series *rows = NULL;
	if (losses->count > 0) {
		losses->channels = malloc(sizeof *losses->channels);
		rows = realloc(record->series, (record->series_count + 1) * sizeof *rows);
	}
	if (rows)
		record->series = rows;
	if (rows && losses->channels) {
		losses->kind = SERIES_GAUGE;
		losses->channel_count = 1;
		snprintf(losses->sensor, sizeof losses->sensor, SERIES_LOSS);
		snprintf(losses->channels[0], sizeof losses->channels[0], SERIES_LOSS);
		rows[record->series_count++] = *losses;
	} else {
		series_release(losses);
	}
	*losses = (struct series){.count = 0};
}
