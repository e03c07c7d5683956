/* Energy and power of a cell's GPUs in the window. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sensors/figures_internal.h"

#define NJ_PER_J 1e9

/* The counter of NVML moves that often; also the interval of the power samples. */
#define UPDATE_NS 1e8

/* What may be wrong at both ends of the window together, as a part of the energy: up to this part
 * the grade is B, then C; beyond, there is no figure. */
#define PART_B 0.02
#define PART_C 0.10

/* In windows from here on the samples are as good as the counter within this part. */
#define CHECK_NS 4e9
#define CHECK_PART 0.05

/* With fewer power samples in a window, those at its ends weigh too much. */
#define SAMPLES_MIN 20

/* How the counter moved around the window. */
struct reading {
	double watts;	  /* NaN: unknown */
	double unsure_ns; /* time at the ends that may be attributed wrongly */
	const char *why;  /* the reason without watts */
};

/* The last sample not after an instant, or the first not before it; NULL: none with a value. */
static const double *sample_at(const struct series *series, size_t channel, int64_t at_ns,
			       bool before, int64_t *time_ns)
{
	const double *found = NULL;

	for (size_t i = 0; i < series->count; i++) {
		const double *value = &series->values[i * series->channel_count + channel];
		int64_t now = series->times_ns[i];
		if (isnan(*value) || (before ? now > at_ns : now < at_ns || found))
			continue;
		found = value;
		*time_ns = now;
	}
	return found;
}

/* The first step after the sample that follows the window; 0: none was seen. */
static int64_t next_step(const struct series *series, size_t channel, int64_t from_ns, double from)
{
	for (size_t i = 0; i < series->count; i++) {
		double value = series->values[i * series->channel_count + channel];
		if (series->times_ns[i] > from_ns && value > from)
			return series->times_ns[i];
	}
	return 0;
}

/* The sample before the window is a step of the counter. The sample after it has the value of the
 * last step before it, which was one interval earlier than the next step: between these two steps
 * the GPU only did the window's work. After the window it rests, so that interpolating up to the
 * next step would count its rest. */
static struct reading watts_of(const struct series *series, size_t channel, int64_t begin_ns,
			       int64_t end_ns, int64_t update_ns)
{
	struct reading out = {.watts = NAN, .unsure_ns = 2 * UPDATE_NS};
	int64_t first_ns = 0, last_ns = 0;
	const double *first = sample_at(series, channel, begin_ns, true, &first_ns);
	const double *last = sample_at(series, channel, end_ns, false, &last_ns);

	if (!first || !last) {
		out.why = "the GPU's energy counter is missing at an end of the window";
		return out;
	}
	if (series_set_back(series, channel, begin_ns, last_ns)) {
		out.why = "the GPU's energy counter was reset during the window";
		return out;
	}
	int64_t next_ns = next_step(series, channel, last_ns, *last);
	if (update_ns != RECORD_NONE && next_ns > 0 && next_ns - update_ns > first_ns) {
		last_ns = next_ns - update_ns;
		out.unsure_ns = 2.0 / 3 * (double)update_ns; /* STEPS_UNSURE_MAX */
	}
	out.watts = (*last - *first) / (double)(last_ns - first_ns); /* nJ / ns */
	out.why = "the GPU's energy counter did not move during the window";
	if (out.watts <= 0)
		out.watts = NAN;
	return out;
}

/* All GPUs together. Only the first one's steps were waited for. */
static struct reading counted(const struct process_record *record, const struct series *series)
{
	struct reading all = {.watts = 0};

	for (size_t c = 0; c < series->channel_count; c++) {
		struct reading one = watts_of(series, c, record->window_begin_ns,
					      record->window_begin_ns + record->window_ns,
					      c == 0 ? record->gpu_update_ns : RECORD_NONE);
		all.watts += one.watts;
		all.unsure_ns = fmax(all.unsure_ns, one.unsure_ns);
		if (isnan(one.watts))
			all.why = one.why;
	}
	return all;
}

static int samples_within(const struct series *series, int64_t begin_ns, int64_t end_ns)
{
	int count = 0;

	for (size_t i = 0; i < series->count; i++)
		count += series->times_ns[i] >= begin_ns && series->times_ns[i] <= end_ns;
	return count;
}

/* Mean over the samples of all GPUs; their mean over 1 s where the power of an instant is refused.
 */
static double sampled(const struct series *series, int64_t begin_ns, int64_t end_ns)
{
	static const char *const words[] = {"instant", "average"};

	for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
		double sum = 0;
		size_t found = 0;
		for (size_t c = 0; c < series->channel_count; c++) {
			if (strncmp(series->channels[c], words[w], strlen(words[w])) != 0)
				continue;
			sum += series_over(series, c, begin_ns, end_ns).mean;
			found++;
		}
		if (found > 0)
			return sum;
	}
	return NAN;
}

/* Whether the samples of the power contradict the counter. */
static bool is_doubtful(const struct process_record *record)
{
	return (double)record->window_ns >= CHECK_NS &&
	       fabs(record->gpu_power_sampled - record->gpu_power_window) >
		       CHECK_PART * record->gpu_power_window;
}

static void grade(struct process_record *record, const struct reading *reading,
		  struct figure_notes *notes)
{
	double part = reading->unsure_ns / (double)record->window_ns;

	if (isnan(reading->watts)) {
		figure_note(notes, "gpu_energy_joules", "%s", reading->why);
		return;
	}
	if (part > PART_C) {
		figure_note(notes, "gpu_energy_joules",
			    "the GPU's energy needs a window of at least %.0f ms",
			    reading->unsure_ns / PART_C * 1e-6);
		return;
	}
	record->gpu_power_window = reading->watts;
	record->gpu_energy_joules = reading->watts * (double)record->window_ns / NJ_PER_J;
	snprintf(record->gpu_energy_grade, sizeof record->gpu_energy_grade, "%s",
		 strcmp(record->gpu_source, "nvml") != 0		   ? "U"
		 : part <= PART_B && !reading->why && !is_doubtful(record) ? "B"
									   : "C");
}

void figures_gpu(struct process_record *record, struct figure_notes *notes)
{
	const struct series *energy =
		series_find(record->series, record->series_count, "gpu_energy");
	const struct series *power = series_find(record->series, record->series_count, "gpu_power");
	struct reading reading = {.watts = NAN};

	if (!energy || !power)
		return;
	if (power->count > 0)
		record->gpu_power_run = sampled(power, INT64_MIN, INT64_MAX);
	if (record->window_begin_ns == RECORD_NONE || record->window_ns == RECORD_NONE)
		return;
	int64_t begin = record->window_begin_ns, end = begin + record->window_ns;
	if (power->count == 0)
		figure_note(notes, "gpu_power_sampled", "%s", power->absent);
	else if (samples_within(power, begin, end) >= SAMPLES_MIN)
		record->gpu_power_sampled = sampled(power, begin, end);
	else
		figure_note(notes, "gpu_power_sampled",
			    "the window has fewer than %d samples of the power", SAMPLES_MIN);
	if (energy->count > 0) {
		reading = counted(record, energy);
	} else if (isfinite(record->gpu_power_sampled)) {
		reading = (struct reading){.watts = record->gpu_power_sampled,
					   .unsure_ns = 2 * UPDATE_NS,
					   .why = "sampled"};
	} else {
		reading.why = energy->absent;
	}
	grade(record, &reading, notes);
}
