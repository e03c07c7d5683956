/* Formats numbers for people: durations, bytes, rates, ratios. */
#include "report/format.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
	double size;
	const char *name;
};

enum { DIGITS = 4, DIGITS_MAX = 5, DECIMALS_MAX = 4 };

/* Uses the smallest unit in which the rounded number has at most three digits before the decimal
 * point. The list ends with the unit whose name is NULL. */
static void format_scaled(double value, int digits, const struct unit *units, double limit,
			  char *out, size_t out_bytes)
{
	if (!isfinite(value)) {
		snprintf(out, out_bytes, "-");
		return;
	}
	for (const struct unit *unit = units; unit->name; unit++) {
		double scaled = value / unit->size, size = fabs(scaled);
		int decimals = size > 0 ? digits - 1 - (int)floor(log10(size)) : 0;
		if (decimals < 0)
			decimals = 0;
		if (decimals > DECIMALS_MAX)
			decimals = DECIMALS_MAX;
		double shift = pow(10, decimals), rounded = round(size * shift) / shift;
		/* Rounding up added a digit: 9.9996 becomes "10.00". */
		if (decimals > 0 && rounded >= pow(10, digits - decimals))
			decimals--;
		if (rounded >= limit && unit[1].name)
			continue;
		if (rounded >= 1e6)
			snprintf(out, out_bytes, "%.2g %s", scaled, unit->name);
		else
			snprintf(out, out_bytes, "%.*f %s", decimals, scaled, unit->name);
		return;
	}
}

static const struct unit durations[] = {
	{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}, {0, NULL},
};

void format_duration(double ns, char *out, size_t out_bytes)
{
	format_scaled(ns, DIGITS, durations, 1000, out, out_bytes);
}

void format_duration_within(double ns, double half_width, char *out, size_t out_bytes)
{
	int digits = 3;
	if (half_width > 0 && half_width < 1)
		digits = (int)ceil(-log10(half_width)) + 1;
	if (digits > DIGITS_MAX)
		digits = DIGITS_MAX;
	format_scaled(ns, digits, durations, 1000, out, out_bytes);
}

void format_bytes(double bytes, char *out, size_t out_bytes)
{
	static const struct unit units[] = {
		{1, "B"},
		{1024, "KiB"},
		{1048576, "MiB"},
		{1073741824, "GiB"},
		{1099511627776, "TiB"},
		{0, NULL},
	};
	/* Units change at 1000, so that no number needs four digits. */
	format_scaled(bytes, 3, units, 1000, out, out_bytes);
}

void format_rate(double per_second, char *out, size_t out_bytes)
{
	/*
	 * Images per second are usually compared as whole numbers, so thousands keep the unit "/s".
	 */
	static const struct unit units[] = {{1, "/s"}, {1e6, "M/s"}, {1e9, "G/s"}, {0, NULL}};
	format_scaled(per_second, DIGITS, units, 1e6, out, out_bytes);
}

void format_energy(double joules, char *out, size_t out_bytes)
{
	static const struct unit units[] = {
		{1e-6, "uJ"}, {1e-3, "mJ"}, {1, "J"}, {1e3, "kJ"}, {0, NULL},
	};
	format_scaled(joules, 3, units, 1000, out, out_bytes);
}

void format_flops(double per_second, char *out, size_t out_bytes)
{
	static const struct unit units[] = {
		{1e6, "MFLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}, {0, NULL},
	};
	format_scaled(per_second, 3, units, 1000, out, out_bytes);
}

void format_ratio(double ratio, char *out, size_t out_bytes)
{
	if (!isfinite(ratio))
		snprintf(out, out_bytes, "-");
	else if (ratio < 0.995)
		snprintf(out, out_bytes, "%.3fx", ratio);
	else
		snprintf(out, out_bytes, "%.*fx", ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0, ratio);
}

void format_percent(double fraction, char *out, size_t out_bytes)
{
	double percent = 100 * fraction;
	if (!isfinite(percent))
		snprintf(out, out_bytes, "-");
	else if (percent >= 1000)
		snprintf(out, out_bytes, ">999 %%");
	else
		snprintf(out, out_bytes, "%.*f %%",
			 percent < 0.995  ? 2
			 : percent < 9.95 ? 1
					  : 0,
			 percent);
}

void format_real(double value, struct strbuf *out)
{
	char text[40];
	if (!isfinite(value))
		return;
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	strbuf_puts(out, text);
}
