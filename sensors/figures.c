/* Computes the process fields that come from sensors. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sensors/figures_internal.h"
#include "sensors/sampling.h"

/* FIGURE_SEEN is the largest sample inside the window; FIGURE_MAX also interpolates between the
 * samples around it. */
enum figure { FIGURE_MEAN, FIGURE_MIN, FIGURE_MAX, FIGURE_SEEN };
enum across { ACROSS_SUM, ACROSS_MEAN, ACROSS_MIN, ACROSS_MAX }; /* channels */

/* Counters in ticks of 10 ms are too coarse for windows shorter than this. */
#define TICKS_WINDOW_NS INT64_C(200000000)
/* Process clocks are exact, but part of the window goes into requesting and answering it. */
#define CLOCK_WINDOW_NS INT64_C(10000000)
#define TICK_NS 1e7
/* With fewer clock samples in a window a drop cannot be judged. */
enum { DROP_SAMPLES_MIN = 3 };

struct row {
	const char *sensor;
	const char *channel; /* NULL: all */
	enum figure figure;
	enum across across;
	bool whole_run;
	int64_t window_min_ns; /* for shorter windows the field is null */
	const char *field;
	size_t offset;	     /* of a real number in the record */
	const char *without; /* why the channel may not exist */
	bool per_step;	     /* divide a rate per second into a value per step of the window */
};

#define FIELD(member) .field = #member, .offset = offsetof(struct process_record, member)

static const char refused[] = "the driver refuses it";

static const struct row rows[] = {
	{"memory", NULL, FIGURE_MEAN, ACROSS_SUM, true, 0, FIELD(memory_mean_run)},
	{"memory", NULL, FIGURE_MEAN, ACROSS_SUM, false, 0, FIELD(memory_mean_window)},
	{"memory", NULL, FIGURE_MAX, ACROSS_SUM, false, 0, FIELD(memory_max_window)},
	{"memory_pss", NULL, FIGURE_MAX, ACROSS_SUM, true, 0, FIELD(memory_pss_max)},
	{"worker_cpu", NULL, FIGURE_MEAN, ACROSS_SUM, false, CLOCK_WINDOW_NS,
	 FIELD(window_cpu_cores)},
	{"cpu", NULL, FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(cpu_cores)},
	{"steal", NULL, FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(steal_share)},
	{"foreign", "cores", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(foreign_share)},
	{"foreign", "elsewhere", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS,
	 FIELD(foreign_elsewhere), .without = "the worker may use all processors"},
	{"load", NULL, FIGURE_MEAN, ACROSS_SUM, false, 0, FIELD(load_average)},
	{"frequency", NULL, FIGURE_MEAN, ACROSS_MEAN, false, 0, FIELD(frequency_mean_hz)},
	{"frequency", NULL, FIGURE_MIN, ACROSS_MIN, false, 0, FIELD(frequency_min_hz)},
	{"temperature", NULL, FIGURE_MAX, ACROSS_MAX, false, 0, FIELD(temperature_max)},
	/* An overheated package slows all of its cores, and a core can overheat by itself; take the
	 * larger. */
	{"thermal", NULL, FIGURE_MEAN, ACROSS_MAX, false, TICKS_WINDOW_NS, FIELD(thermal_share)},
	{"quota", NULL, FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(quota_share)},
	{"pressure", "cpu", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(pressure_cpu)},
	{"pressure", "memory", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS,
	 FIELD(pressure_memory)},
	{"pressure", "io", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(pressure_io)},
	{"swap", NULL, FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS, FIELD(swap_rate)},
	{"switches", "voluntary", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS,
	 FIELD(switches_voluntary)},
	{"switches", "involuntary", FIGURE_MEAN, ACROSS_SUM, false, TICKS_WINDOW_NS,
	 FIELD(switches_involuntary)},
	{"threads", "alive", FIGURE_SEEN, ACROSS_SUM, false, 0, FIELD(threads_alive)},
	{"threads", "processors", FIGURE_SEEN, ACROSS_SUM, false, 0, FIELD(cores_used)},
	{"page_faults", NULL, FIGURE_MEAN, ACROSS_SUM, false, 0, FIELD(page_faults_step),
	 .per_step = true},
	{"gpu_memory", "used", FIGURE_MAX, ACROSS_SUM, false, 0, FIELD(gpu_memory_max_window),
	 .without = refused},
	{"gpu_memory", "reserved", FIGURE_MAX, ACROSS_SUM, true, 0, FIELD(gpu_memory_reserved),
	 .without = refused},
	{"gpu_clock", "compute", FIGURE_MEAN, ACROSS_MEAN, false, 0, FIELD(gpu_clock_hz),
	 .without = refused},
	{"gpu_held", "power", FIGURE_MEAN, ACROSS_MAX, false, 0, FIELD(gpu_power_held),
	 .without = refused},
	{"gpu_held", "heat", FIGURE_MEAN, ACROSS_MAX, false, 0, FIELD(gpu_heat_held),
	 .without = refused},
	{"gpu_temperature", "core", FIGURE_MAX, ACROSS_MAX, false, 0, FIELD(gpu_temperature_max),
	 .without = refused},
	{"gpu_busy", "kernels", FIGURE_MEAN, ACROSS_MEAN, false, 0, FIELD(gpu_busy_share),
	 .without = refused},
	{"gpu_bus", NULL, FIGURE_MEAN, ACROSS_SUM, false, 0, FIELD(gpu_bus_rate)},
	{"gpu_processes", NULL, FIGURE_MAX, ACROSS_MAX, false, 0, FIELD(gpu_processes)},
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

static double largest_seen(const struct series *series, size_t channel, int64_t begin_ns,
			   int64_t end_ns)
{
	double largest = NAN;

	for (size_t i = 0; i < series->count; i++) {
		double value = series->values[i * series->channel_count + channel];
		if (series->times_ns[i] >= begin_ns && series->times_ns[i] <= end_ns)
			largest = fmax(largest, value); /* fmin of a number and NaN is the number */
	}
	return largest;
}

/* Whether a channel is "power", or "power-0" of one GPU of several. */
static bool is_channel(const char *name, const char *word)
{
	size_t length = strlen(word);

	return strncmp(name, word, length) == 0 && (!name[length] || name[length] == '-');
}

/* Combines the channels that have a value: a processor that is off is not an idle one. */
static double combine(const struct series *series, const struct row *row, int64_t begin_ns,
		      int64_t end_ns)
{
	double sum = 0, least = NAN, most = NAN;
	size_t known = 0;

	for (size_t c = 0; c < series->channel_count; c++) {
		if (row->channel && !is_channel(series->channels[c], row->channel))
			continue;
		struct series_range range = series_over(series, c, begin_ns, end_ns);
		double value = row->figure == FIGURE_SEEN
				       ? largest_seen(series, c, begin_ns, end_ns)
				       : pick(&range, row->figure);
		if (isnan(value))
			continue;
		sum += value;
		least = fmin(least, value); /* fmax of a number and NaN is the number */
		most = fmax(most, value);
		known++;
	}
	if (known == 0)
		return NAN;
	return row->across == ACROSS_MIN    ? least
	       : row->across == ACROSS_MAX  ? most
	       : row->across == ACROSS_MEAN ? sum / (double)known
					    : sum;
}

/* Whether all values of a time sensor are whole ticks, so that it had no better clock. */
static bool counts_ticks(const struct series *series)
{
	for (size_t i = 0; i < series->count * series->channel_count; i++)
		if (isfinite(series->values[i]) && fmod(series->values[i], TICK_NS) != 0)
			return false;
	return true;
}

static bool has_channel(const struct series *series, const char *channel)
{
	for (size_t c = 0; c < series->channel_count; c++)
		if (is_channel(series->channels[c], channel))
			return true;
	return false;
}

static void fill(struct process_record *record, const struct row *row, struct figure_notes *notes)
{
	const struct series *series =
		series_find(record->series, record->series_count, row->sensor);
	bool window = record->window_begin_ns != RECORD_NONE && record->window_ns != RECORD_NONE;
	int64_t begin = window ? record->window_begin_ns : 0;
	int64_t end = window ? begin + record->window_ns : 0;
	int64_t least_ns = row->window_min_ns;

	if (!series || (!window && !row->whole_run))
		return;
	if (least_ns > 0 && least_ns < TICKS_WINDOW_NS && counts_ticks(series))
		least_ns = TICKS_WINDOW_NS;
	if (series->count == 0)
		figure_note(notes, row->field, "%s", series->absent);
	else if (row->without && !has_channel(series, row->channel))
		figure_note(notes, row->field, "%s", row->without);
	else if (window && record->window_ns < least_ns)
		figure_note(notes, row->field, "the counter needs a window of at least %lld ms",
			    (long long)(least_ns / 1000000));
	else {
		double value = combine(series, row, row->whole_run ? INT64_MIN : begin,
				       row->whole_run ? INT64_MAX : end);
		if (row->per_step)
			value *= (double)record->window_ns * 1e-9 / (double)record->steps;
		memcpy((char *)record + row->offset, &value, sizeof value);
		if (isnan(value))
			figure_note(notes, row->field, "sensor %s has no value in the window",
				    row->sensor);
	}
}

/* The highest clock of the worker's processors in one sample. An idle processor runs slowly and
 * says nothing. */
static double clock_at(const struct series *series, size_t sample)
{
	double highest = NAN;

	for (size_t c = 0; c < series->channel_count; c++)
		highest = fmax(highest, series->values[sample * series->channel_count + c]);
	return highest;
}

/* How far the mean over the window's samples lies below the highest of them. The samples at its
 * edges are left out, because the worker waits there. */
static void fill_drop(struct process_record *record, struct figure_notes *notes)
{
	const struct series *series =
		series_find(record->series, record->series_count, "frequency");
	double sum = 0, highest = 0;
	size_t count = 0;

	if (!series || record->window_begin_ns == RECORD_NONE || record->window_ns == RECORD_NONE)
		return;
	for (size_t i = 0; i < series->count; i++) {
		int64_t at_ns = series->times_ns[i] - record->window_begin_ns;
		double hz = clock_at(series, i);
		if (at_ns < 0 || at_ns > record->window_ns || isnan(hz))
			continue;
		sum += hz;
		highest = fmax(highest, hz);
		count++;
	}
	if (count >= DROP_SAMPLES_MIN)
		record->frequency_drop = 1 - sum / (double)count / highest;
	else
		figure_note(notes, "frequency_drop", "%s",
			    series->count == 0 ? series->absent
					       : "the window has too few samples of the clock");
}

void sampling_figures(struct process_record *record)
{
	struct figure_notes notes = {.count = 0};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		fill(record, &rows[i], &notes);
	fill_drop(record, &notes);
	figures_energy(record, &notes);
	figures_gpu(record, &notes);
	figure_notes_write(&notes, record->null_reasons, sizeof record->null_reasons);
}
