/* Writes sensor readings of a process as JSON and as text. */
#include "report/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "report/format.h"
#include "report/text.h"

/* Computes the ranges of a channel, over the window (all NaN without one) and over all samples. */
static void ranges(const struct process_record *record, const struct series *series, size_t channel,
		   struct series_range *window, struct series_range *run)
{
	*window = (struct series_range){NAN, NAN, NAN};
	int64_t end_ns;
	/* A store from another machine may hold values whose sum is not finite. */
	if (record->window_begin_ns != RECORD_NONE && record->window_ns != RECORD_NONE &&
	    !__builtin_add_overflow(record->window_begin_ns, record->window_ns, &end_ns))
		*window = series_over(series, channel, record->window_begin_ns, end_ns);
	*run = series_over(series, channel, INT64_MIN, INT64_MAX);
}

static json_t *range_to_json(const struct series_range *range)
{
	json_t *object = json_object();
	json_object_set_new(object, "mean", json_number(range->mean));
	json_object_set_new(object, "min", json_number(range->minimum));
	json_object_set_new(object, "max", json_number(range->maximum));
	return object;
}

/* Returns [time, value of each channel]; null if a value was not read. */
static json_t *samples_to_json(const struct series *series)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < series->count; i++) {
		json_t *row = json_array();
		json_array_append_new(row, json_integer(series->times_ns[i]));
		for (size_t c = 0; c < series->channel_count; c++)
			json_array_append_new(
				row, json_number(series->values[i * series->channel_count + c]));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *one_to_json(const struct process_record *record, const struct series *series,
			   bool with_samples)
{
	json_t *object = json_object(), *channels = json_array();
	for (size_t c = 0; c < series->channel_count; c++) {
		struct series_range window, run;
		json_t *channel = json_object();
		ranges(record, series, c, &window, &run);
		json_object_set_new(channel, "channel", text_json(series->channels[c]));
		json_object_set_new(channel, "window", range_to_json(&window));
		json_object_set_new(channel, "run", range_to_json(&run));
		json_array_append_new(channels, channel);
	}
	json_object_set_new(object, "sensor", text_json(series->sensor));
	json_object_set_new(object, "kind", json_string(series_kind_name(series->kind)));
	json_object_set_new(object, "unit", text_json(series_shown_unit(series)));
	json_object_set_new(object, "absent",
			    *series->absent ? text_json(series->absent) : json_null());
	json_object_set_new(object, "channels", channels);
	if (with_samples) {
		json_object_set_new(object, "sample_unit", text_json(series->unit));
		json_object_set_new(object, "samples", samples_to_json(series));
	}
	return object;
}

json_t *series_to_json(const struct process_record *record, bool with_samples)
{
	json_t *array = json_array();
	for (size_t i = 0; i < record->series_count; i++)
		json_array_append_new(array, one_to_json(record, &record->series[i], with_samples));
	return array;
}

static void add_value(double value, const char *unit, struct strbuf *out)
{
	char text[48];
	if (isnan(value))
		snprintf(text, sizeof text, "-");
	else if (!strcmp(unit, "bytes"))
		format_bytes(value, text, sizeof text);
	else
		snprintf(text, sizeof text, "%.3g%s%s", value, *unit ? " " : "", unit);
	strbuf_printf(out, "  %12s", text);
}

static void add_channel(const struct process_record *record, const struct series *series,
			size_t channel, struct strbuf *out)
{
	const char *unit = series_shown_unit(series);
	struct series_range window, run;
	char name[2 * SERIES_WORD_BYTES + 2], *clean;
	ranges(record, series, channel, &window, &run);
	snprintf(name, sizeof name, "%s %s", series->sensor, series->channels[channel]);
	clean = text_line(name);
	strbuf_printf(out, "%-20s", clean);
	free(clean);
	add_value(window.mean, unit, out);
	add_value(window.minimum, unit, out);
	add_value(window.maximum, unit, out);
	add_value(run.mean, unit, out);
	strbuf_putc(out, '\n');
}

void series_text(const struct process_record *record, struct strbuf *out)
{
	if (record->series_count == 0)
		return;
	strbuf_printf(out, "-- sensors%10s  %12s  %12s  %12s  %12s\n", "", "window mean",
		      "smallest", "largest", "run mean");
	for (size_t i = 0; i < record->series_count; i++) {
		const struct series *series = &record->series[i];
		for (size_t c = 0; c < series->channel_count && series->count > 0; c++)
			add_channel(record, series, c, out);
		if (!*series->absent)
			continue;
		char *sensor = text_line(series->sensor), *reason = text_line(series->absent);
		strbuf_printf(out, "%-20s  absent: %s\n", sensor, reason);
		free(sensor);
		free(reason);
	}
}
