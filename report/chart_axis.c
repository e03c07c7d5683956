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

static size_t linear_ticks(const struct scale *scale, size_t wanted, double *ticks)
{
	double high = scale->high / scale->unit, raw = high / (double)wanted;
	double power = pow(10, floor(log10(raw))), step = 10 * power;
	static const double steps[] = {1, 2, 5};
	size_t count = 0;
	for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
		if (steps[i] * power >= raw)
			step = steps[i] * power;
	/* Add a tiny amount, so that a tick can lie on the end of the scale. */
	for (size_t i = 0; count < SCALE_TICKS_MAX && (double)i * step <= high * (1 + 1e-9); i++)
		ticks[count++] = (double)i * step * scale->unit;
	return count;
}

/* Places ticks at 1, 2 and 5 times powers of ten, or at fewer of them if there are too many. */
static size_t logarithmic_ticks(const struct scale *scale, size_t wanted, double *ticks)
{
	static const double all[] = {1, 2, 5};
	double low = scale->low / scale->unit, high = scale->high / scale->unit;
	double decades = log10(high / low);
	size_t each = decades * 3 <= (double)wanted + 1 ? 3 : 1, count = 0;
	int stride = (int)ceil(decades / (double)(wanted > 0 ? wanted : 1));
	for (int power = (int)floor(log10(low)); power <= (int)ceil(log10(high)); power++)
		for (size_t i = 0; i < each && count < SCALE_TICKS_MAX; i++) {
			double tick = all[i] * pow(10, power);
			if (tick >= low && tick <= high && (each == 3 || power % stride == 0))
				ticks[count++] = tick * scale->unit;
		}
	return count;
}

size_t scale_ticks(const struct scale *scale, size_t wanted, double ticks[SCALE_TICKS_MAX])
{
	if (scale->logarithmic) {
		size_t count = logarithmic_ticks(scale, wanted, ticks);
		if (count > 1)
			return count;
		/* Within less than a decade, the two ends are more useful than round ticks. */
		ticks[0] = scale->low;
		ticks[1] = sqrt(scale->low * scale->high);
		ticks[2] = scale->high;
		return 3;
	}
	return linear_ticks(scale, wanted, ticks);
}

void scale_label(const struct scale *scale, double tick, char out[SCALE_LABEL_BYTES])
{
	double value = tick / scale->unit;
	if (value != 0 && fabs(value) < 1e-4)
		snprintf(out, SCALE_LABEL_BYTES, "%.1e", value);
	else if (fabs(value) >= 1e6)
		snprintf(out, SCALE_LABEL_BYTES, "%.3g", value);
	else if (fabs(value) >= 100)
		snprintf(out, SCALE_LABEL_BYTES, "%.0f", value);
	else
		snprintf(out, SCALE_LABEL_BYTES, "%.3g", value);
}

void scale_title(const struct scale *scale, const struct chart_axis *axis, char *out,
		 size_t out_bytes)
{
	if (*scale->unit_name)
		snprintf(out, out_bytes, "%s (%s)", axis->title, scale->unit_name);
	else
		snprintf(out, out_bytes, "%s", axis->title);
}
