/* Scales of chart axes and their ticks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chart_internal.h"

struct unit {
	double size;
	const char *name;
};

static const struct unit times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}, {0, NULL}};
static const struct unit sizes[] = {
	{1073741824, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}, {1, "B"}, {0, NULL}};
static const struct unit rates[] = {{1e6, "million/s"}, {1, "1/s"}, {0, NULL}};
static const struct unit plain[] = {{1, ""}, {0, NULL}};

/* Chooses the unit in which the largest value is easy to read. */
static void choose_unit(struct scale *scale, enum chart_measure measure)
{
	static const struct unit *const units[] = {[CHART_NS] = times,
						   [CHART_BYTES] = sizes,
						   [CHART_PER_SECOND] = rates,
						   [CHART_PLAIN] = plain};
	const struct unit *unit = units[measure];
	while (unit[1].name && scale->high < unit->size)
		unit++;
	scale->unit = unit->size;
	scale->unit_name = unit->name;
}

void extent_add(struct extent *extent, double value)
{
	if (!isfinite(value))
		return;
	if (!(value <= extent->high))
		extent->high = value;
	if (value > 0 && !(value >= extent->low))
		extent->low = value;
}

void extent_stretch(struct extent *extent, double value)
{
	if (isfinite(value) && value > 0)
		extent_add(extent, fmax(fmin(value, extent->high * CHART_REACH),
					extent->low / CHART_REACH));
}

void scale_init(struct scale *scale, const struct chart_axis *axis, double low, double high,
		double from, double to)
{
	*scale = (struct scale){.high = high > 0 && isfinite(high) ? high : 1,
				.from = from,
				.to = to,
				.logarithmic = axis->logarithmic && low > 0};
	choose_unit(scale, axis->measure);
	if (!scale->logarithmic)
		return;
	/* Leave a small margin at both ends, also if all values are equal. */
	double room = pow(scale->high / low, 0.05);
	if (room < 1.05)
		room = 1.05;
	scale->low = low / room;
	scale->high *= room;
}

double scale_at(const struct scale *scale, double value)
{
	double share = scale->logarithmic ? log(value / scale->low) / log(scale->high / scale->low)
					  : (value - scale->low) / (scale->high - scale->low);
	if (!(share > 0))
		share = 0;
	if (share > 1)
		share = 1;
	return scale->from + share * (scale->to - scale->from);
}

/* Places ticks at multiples of a step, which is 1, 2 or 5 times a power of ten. */
static size_t step_ticks(const struct scale *scale, size_t wanted, double *ticks)
{
	double low = scale->low / scale->unit, high = scale->high / scale->unit;
	double raw = (high - low) / (double)wanted, power = pow(10, floor(log10(raw)));
	double step = raw <= power	 ? power
		      : raw <= 2 * power ? 2 * power
		      : raw <= 5 * power ? 5 * power
					 : 10 * power;
	size_t count = 0;
	/* Add a tiny amount, so that a tick can lie on the end of the scale. */
	for (double i = ceil(low / step); count < SCALE_TICKS_MAX && i * step <= high * (1 + 1e-9);
	     i++)
		ticks[count++] = i * step * scale->unit;
	return count;
}

/* Places ticks at the digits times each `stride`-th power of ten; returns how many the scale has,
 * though at most `room` are written. */
static size_t power_ticks(const struct scale *scale, const char *digits, int stride, size_t room,
			  double *ticks)
{
	double low = scale->low / scale->unit, high = scale->high / scale->unit;
	size_t count = 0;
	for (int power = (int)floor(log10(low)); power <= (int)ceil(log10(high)); power++)
		for (const char *digit = digits; *digit && power % stride == 0; digit++) {
			double tick = (*digit - '0') * pow(10, power);
			if (tick < low || tick > high)
				continue;
			if (count < room)
				ticks[count] = tick * scale->unit;
			count++;
		}
	return count;
}

/* Whether a logarithmic scale is so short that it has fewer than three of 1, 2 and 5 times a power
 * of ten. It then gets steps, as a linear scale does. */
static bool is_short(const struct scale *scale)
{
	return power_ticks(scale, "125", 1, 0, NULL) < 3;
}

size_t scale_ticks(const struct scale *scale, size_t wanted, double ticks[SCALE_TICKS_MAX])
{
	if (!scale->logarithmic || is_short(scale))
		return step_ticks(scale, wanted, ticks);
	size_t all = power_ticks(scale, "125", 1, SCALE_TICKS_MAX, ticks);
	int stride = (int)ceil((log10(scale->high) - log10(scale->low)) / (double)wanted);
	if (all <= wanted + 2 || power_ticks(scale, "1", stride, 0, NULL) < 2)
		return all;
	return power_ticks(scale, "1", stride, SCALE_TICKS_MAX, ticks);
}

size_t scale_minor_ticks(const struct scale *scale, double ticks[SCALE_MINOR_MAX])
{
	if (!scale->logarithmic || is_short(scale))
		return 0;
	size_t count = power_ticks(scale, "123456789", 1, SCALE_MINOR_MAX, ticks);
	return count <= SCALE_MINOR_MAX ? count : 0;
}

/* Ticks are round numbers or counts, so that six digits show them whole. */
void scale_label(const struct scale *scale, double tick, char out[SCALE_LABEL_BYTES])
{
	snprintf(out, SCALE_LABEL_BYTES, "%.6g", tick / scale->unit);
}

void scale_title(const struct scale *scale, const struct chart_axis *axis, char *out,
		 size_t out_bytes)
{
	bool named = *scale->unit_name, marked = scale->logarithmic;
	snprintf(out, out_bytes, "%s%s%s%s%s%s", axis->title, named || marked ? " (" : "",
		 scale->unit_name, named && marked ? ", " : "", marked ? "log" : "",
		 named || marked ? ")" : "");
}
