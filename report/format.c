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

/* The number of digits that a relative half width justifies: the last one is the half width's
 * second, and from 100 % on only one is left. `usual`: without a half width. */
static int digits_within(double half_width, int usual, int most)
{
	if (!(half_width > 0) || isinf(half_width))
		return usual;
	int digits = (int)ceil(-log10(fmin(half_width, 1))) + 1;
	return digits < most ? digits : most;
}

/* Rounds to so many digits, also before the decimal point: 83 to one digit is 80. */
static double significant(double value, int digits)
{
	if (!isfinite(value) || value == 0)
		return value;
	double unit = pow(10, abs(digits - 1 - (int)floor(log10(fabs(value)))));
	return fabs(value) >= pow(10, digits) ? round(value / unit) * unit
					      : round(value * unit) / unit;
}

/* Like format_scaled, with the digits that the half width justifies. */
static void format_within(double value, double half_width, int usual, int most,
			  const struct unit *units, double limit, char *out, size_t out_bytes)
{
	int digits = digits_within(half_width, usual, most);
	if (half_width > 0)
		value = significant(value, digits);
	format_scaled(value, digits, units, limit, out, out_bytes);
}

void format_duration_within(double ns, double half_width, char *out, size_t out_bytes)
{
	format_within(ns, half_width, 3, DIGITS_MAX, durations, 1000, out, out_bytes);
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

void format_rate(double per_second, double half_width, char *out, size_t out_bytes)
{
	/*
	 * Images per second are usually compared as whole numbers, so thousands keep the unit "/s".
	 */
	static const struct unit units[] = {{1, "/s"}, {1e6, "M/s"}, {1e9, "G/s"}, {0, NULL}};
	format_within(per_second, half_width, DIGITS, DIGITS, units, 1e6, out, out_bytes);
}

void format_energy(double joules, char *out, size_t out_bytes)
{
	static const struct unit units[] = {
		{1e-6, "uJ"}, {1e-3, "mJ"}, {1, "J"}, {1e3, "kJ"}, {0, NULL},
	};
	format_scaled(joules, 3, units, 1000, out, out_bytes);
}

void format_flops(double per_second, double half_width, char *out, size_t out_bytes)
{
	static const struct unit units[] = {
		{1e6, "MFLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}, {0, NULL},
	};
	format_within(per_second, half_width, 3, 3, units, 1000, out, out_bytes);
}

void format_ratio_within(double ratio, double half_width, char *out, size_t out_bytes)
{
	enum { USUAL = 3 };
	int digits = digits_within(half_width, USUAL, USUAL);
	if (!isfinite(ratio)) {
		snprintf(out, out_bytes, "-");
		return;
	}
	if (half_width > 0)
		ratio = significant(ratio, digits);
	int decimals = ratio < 0.995 ? 3 : ratio < 9.995 ? 2 : ratio < 99.95 ? 1 : 0;
	if (digits < USUAL && ratio > 0)
		decimals = (int)fmax(digits - 1 - floor(log10(ratio)), 0);
	snprintf(out, out_bytes, "%.*fx", decimals < USUAL ? decimals : USUAL, ratio);
}

void format_ratio(double ratio, char *out, size_t out_bytes)
{
	format_ratio_within(ratio, NAN, out, out_bytes);
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
