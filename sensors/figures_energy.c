/* Energy and power of a process from energy counters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sensors/figures_internal.h"
#include "sensors/sensor.h"

/* Each end of a window may be off by one counter step; with a hundred steps in the window that is 2
 * %. When no two steps were seen, assume one step a millisecond. */
#define WINDOW_STEPS 100
#define STEP_NS INT64_C(1000000)

#define NJ_PER_J 1e9

/* The counter at an instant, interpolated between samples; NaN outside them. */
static double counter_at(const struct series *series, size_t channel, int64_t at_ns)
{
	double last = NAN;
	int64_t last_ns = 0;

	for (size_t i = 0; i < series->count; i++) {
		double now = series->values[i * series->channel_count + channel];
		int64_t now_ns = series->times_ns[i];
		if (isnan(now))
			continue;
		if (now_ns == at_ns)
			return now;
		if (now_ns > at_ns)
			return last + (now - last) * (double)(at_ns - last_ns) /
					      (double)(now_ns - last_ns);
		last = now;
		last_ns = now_ns;
	}
	return NAN;
}

bool series_set_back(const struct series *series, size_t channel, int64_t begin_ns, int64_t end_ns)
{
	double last = NAN;
	int64_t last_ns = 0;

	for (size_t i = 0; i < series->count; i++) {
		double now = series->values[i * series->channel_count + channel];
		int64_t now_ns = series->times_ns[i];
		if (isnan(now))
			continue;
		if (now < last && now_ns > begin_ns && last_ns < end_ns)
			return true;
		last = now;
		last_ns = now_ns;
	}
	return false;
}

/* Joules of all channels with this prefix; NaN, with the reason, when one of them has no value. */
static double joules(const struct series *series, const char *channels, int64_t begin_ns,
		     int64_t end_ns, const char **why)
{
	double sum = 0;
	size_t found = 0;

	*why = NULL;
	for (size_t c = 0; c < series->channel_count; c++) {
		if (strncmp(series->channels[c], channels, strlen(channels)) != 0)
			continue;
		found++;
		double used = counter_at(series, c, end_ns) - counter_at(series, c, begin_ns);
		if (series_set_back(series, c, begin_ns, end_ns))
			*why = "an energy counter was reset during the window";
		else if (isnan(used))
			*why = "an energy counter is missing at an end of the window";
		else if (used <= 0)
			*why = "an energy counter did not change during the window";
		sum += used / NJ_PER_J;
	}
	if (found == 0)
		*why = "this machine has no such energy counter";
	return *why ? NAN : sum;
}

/* Mean watts of the packages over all samples; NaN when one of them has no value. */
static double mean_watts(const struct series *series)
{
	double sum = 0;
	size_t found = 0;

	for (size_t c = 0; c < series->channel_count; c++) {
		if (strncmp(series->channels[c], "package", strlen("package")) != 0)
			continue;
		double watts = series_over(series, c, INT64_MIN, INT64_MAX).mean;
		sum += watts > 0 ? watts : NAN;
		found++;
	}
	return found > 0 ? sum : NAN;
}

void figures_energy(struct process_record *record, struct figure_notes *notes)
{
	const struct {
		const char *field, *channels;
		double *value;
	} rows[] = {
		{"energy_joules", "package", &record->energy_joules},
		{"energy_dram_joules", "dram", &record->energy_dram_joules},
		{"energy_psys_joules", "psys", &record->energy_psys_joules},
	};
	const struct series *series = series_find(record->series, record->series_count, "rapl");
	bool window = record->window_begin_ns != RECORD_NONE && record->window_ns != RECORD_NONE;
	int64_t begin = window ? record->window_begin_ns : 0;
	char too_short[SERIES_REASON_BYTES];

	if (!series)
		return;
	int64_t least_ns =
		WINDOW_STEPS *
		(record->energy_update_ns > STEP_NS ? record->energy_update_ns : STEP_NS);
	record->power_mean_run = series->count > 0 ? mean_watts(series) : NAN;
	snprintf(too_short, sizeof too_short,
		 "an energy counter needs a window of at least %lld ms",
		 (long long)(least_ns / 1000000));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0] && window; i++) {
		const char *why = series->absent;
		if (series->count > 0 && record->window_ns < least_ns)
			why = too_short;
		else if (series->count > 0)
			*rows[i].value = joules(series, rows[i].channels, begin,
						begin + record->window_ns, &why);
		if (isnan(*rows[i].value) && why)
			figure_note(notes, rows[i].field, "%s", why);
	}
	if (isnan(record->energy_joules))
		return;
	snprintf(record->energy_grade, sizeof record->energy_grade, "B");
	record->power_mean_window = record->energy_joules / ((double)record->window_ns * 1e-9);
}
