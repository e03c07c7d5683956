#include "samples/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[SERIES_KIND_COUNT] = {
#define X(id, name) [SERIES_##id] = name,
	SERIES_KINDS(X)
#undef X
};

const char *series_kind_name(enum series_kind kind)
{
	return (unsigned)kind < SERIES_KIND_COUNT ? kind_names[kind] : "?";
}

bool series_kind_parse(const char *word, enum series_kind *out)
{
	for (unsigned i = 0; word && i < SERIES_KIND_COUNT; i++) {
		if (!strcmp(kind_names[i], word)) {
			*out = (enum series_kind)i;
			return true;
		}
	}
	return false;
}

const char *series_shown_unit(const struct series *series)
{
	return series->kind == SERIES_GAUGE ? series->unit : series->rate_unit;
}

/* Summary of adjacent valid samples. */
struct tally {
	double sum, length_ns; /* sum of value x time, or of counts */
	double minimum, maximum;
};

static void widen(struct tally *tally, double value)
{
	if (isnan(tally->minimum) || value < tally->minimum)
		tally->minimum = value;
	if (isnan(tally->maximum) || value > tally->maximum)
		tally->maximum = value;
}

/* The part of the interval (t, v) to (u, w) that lies between the ends. */
static void add_interval(struct tally *tally, enum series_kind kind, int64_t t, double v, int64_t u,
			 double w, int64_t begin_ns, int64_t end_ns)
{
	int64_t from = t > begin_ns ? t : begin_ns, to = u < end_ns ? u : end_ns;
	double whole = (double)(u - t), part = (double)(to - from);
	if (whole <= 0 || part <= 0 || (kind == SERIES_COUNTER && w < v))
		return;
	double slope = (w - v) / whole;
	if (kind == SERIES_GAUGE) {
		double middle = v + slope * ((double)(from - t) + part / 2);
		tally->sum += middle * part;
	} else {
		tally->sum += slope * part;
		widen(tally, slope);
	}
	tally->length_ns += part;
}

static double not_below_zero(double value)
{
	return value < 0 ? 0 : value; /* NaN stays */
}

struct series_range series_over(const struct series *series, size_t channel, int64_t begin_ns,
				int64_t end_ns)
{
	struct tally tally = {.minimum = NAN, .maximum = NAN};
	int64_t last_ns = 0;
	double last = NAN, plain = 0;
	size_t inside = 0;

	for (size_t i = 0; i < series->count; i++) {
		int64_t now_ns = series->times_ns[i];
		double now = series->values[i * series->channel_count + channel];
		/* A counter continues between samples; a gauge is unknown there. */
		if (isnan(now)) {
			if (series->kind == SERIES_GAUGE)
				last = NAN;
			continue;
		}
		if (!isnan(last))
			add_interval(&tally, series->kind, last_ns, last, now_ns, now, begin_ns,
				     end_ns);
		if (series->kind == SERIES_GAUGE && now_ns >= begin_ns && now_ns <= end_ns) {
			widen(&tally, now);
			plain += now;
			inside++;
		}
		last = now;
		last_ns = now_ns;
	}
	struct series_range range = {NAN, tally.minimum, tally.maximum};
	if (tally.length_ns > 0)
		range.mean = tally.sum / tally.length_ns;
	else if (inside > 0)
		range.mean = plain / (double)inside;
	/* The range lies between two samples. */
	if (isnan(range.minimum))
		range.minimum = range.maximum = range.mean;
	if (series->kind == SERIES_BALANCE)
		range = (struct series_range){not_below_zero(range.mean),
					      not_below_zero(range.minimum),
					      not_below_zero(range.maximum)};
	return range;
}

const struct series *series_find(const struct series *series, size_t count, const char *sensor)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(series[i].sensor, sensor))
			return &series[i];
	return NULL;
}

void series_thin_out(struct series *series)
{
	size_t kept = 0, width = series->channel_count;

	for (size_t i = 0; i < series->count; i += 2, kept++) {
		series->times_ns[kept] = series->times_ns[i];
		memmove(&series->values[kept * width], &series->values[i * width],
			width * sizeof *series->values);
	}
	series->count = kept;
}

void series_release(struct series *series)
{
	free(series->channels);
	free(series->times_ns);
	free(series->values);
	series->channels = NULL;
	series->times_ns = NULL;
	series->values = NULL;
	series->channel_count = series->count = 0;
}
