/* The fields of a process that come from what the sensors saw. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sensors/sampling.h"

enum figure { FIGURE_MEAN, FIGURE_MIN, FIGURE_MAX };
enum across { ACROSS_SUM, ACROSS_MEAN, ACROSS_MIN }; /* channels */

static const struct {
	const char *sensor;
	enum figure figure;
	enum across across;
	bool whole_run;
	size_t offset; /* of a real in the record */
} rows[] = {
	{"memory", FIGURE_MEAN, ACROSS_SUM, true, offsetof(struct process_record, memory_mean_run)},
	{"memory", FIGURE_MEAN, ACROSS_SUM, false,
	 offsetof(struct process_record, memory_mean_window)},
	{"memory", FIGURE_MAX, ACROSS_SUM, false,
	 offsetof(struct process_record, memory_max_window)},
	{"memory_pss", FIGURE_MAX, ACROSS_SUM, true,
	 offsetof(struct process_record, memory_pss_max)},
	{"cpu", FIGURE_MEAN, ACROSS_SUM, false, offsetof(struct process_record, cpu_cores)},
	{"steal", FIGURE_MEAN, ACROSS_SUM, false, offsetof(struct process_record, steal_share)},
	{"foreign", FIGURE_MEAN, ACROSS_SUM, false, offsetof(struct process_record, foreign_share)},
	{"load", FIGURE_MEAN, ACROSS_SUM, false, offsetof(struct process_record, load_average)},
	{"frequency", FIGURE_MEAN, ACROSS_MEAN, false,
	 offsetof(struct process_record, frequency_mean_hz)},
	{"frequency", FIGURE_MIN, ACROSS_MIN, false,
	 offsetof(struct process_record, frequency_min_hz)},
};

static double pick(const struct series_range *range, enum figure figure)
{
	switch (figure) {
	case FIGURE_MIN:
		return range->minimum;
	case FIGURE_MAX:
		return range->maximum;
	default:
		return range->mean;
	}
}

/* Over the channels that say something: a processor that is off is none that idles. */
static double combine(const struct series *series, enum figure figure, enum across across,
		      int64_t begin_ns, int64_t end_ns)
{
	double sum = 0, least = NAN;
	size_t known = 0;

	for (size_t c = 0; c < series->channel_count; c++) {
		struct series_range range = series_over(series, c, begin_ns, end_ns);
		double value = pick(&range, figure);
		if (isnan(value))
			continue;
		sum += value;
		least = known++ == 0 || value < least ? value : least;
	}
	if (known == 0)
		return NAN;
	return across == ACROSS_MIN ? least : across == ACROSS_MEAN ? sum / (double)known : sum;
}

void sampling_figures(struct process_record *record)
{
	bool window = record->window_begin_ns != RECORD_NONE && record->window_ns != RECORD_NONE;
	int64_t begin = window ? record->window_begin_ns : 0;
	int64_t end = window ? begin + record->window_ns : 0;

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct series *series =
			series_find(record->series, record->series_count, rows[i].sensor);
		if (!series || (!window && !rows[i].whole_run))
			continue;
		double value = combine(series, rows[i].figure, rows[i].across,
				       rows[i].whole_run ? INT64_MIN : begin,
				       rows[i].whole_run ? INT64_MAX : end);
		memcpy((char *)record + rows[i].offset, &value, sizeof value);
	}
}

bool sampling_disturbed(const struct process_record *record)
{
	/* Processor times are counted in ticks of 10 ms, which say nothing of less. */
	const int64_t window_min_ns = 200 * INT64_C(1000000);
	const double share_max = 0.05;

	return record->window_ns != RECORD_NONE && record->window_ns >= window_min_ns &&
	       (record->foreign_share > share_max || record->steal_share > share_max);
}
