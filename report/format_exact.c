/* Formats numbers for programs with every significant digit, about a million of them per second. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"

void format_integer(int64_t value, struct strbuf *out)
{
	char text[24];
	size_t at = sizeof text;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		text[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		text[--at] = '-';
	strbuf_add(out, text + at, sizeof text - at);
}

#if LDBL_MANT_DIG >= 64
/* Powers of ten that the 64 bits of a long double hold exactly. */
static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,	 1e4L,	1e5L,  1e6L,
				     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
				     1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
				     1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
enum { POWER_MAX = sizeof powers / sizeof *powers - 1 };

/* Returns the `digits` digits of a number from 1e-4 to 1e15 as an integer, value = n /
 * 10^*decimals: the digits that "%.*g" would print. False if 64-bit arithmetic cannot decide the
 * rounding, or whether the result reads back as the same number; the caller then uses the slower
 * library function. */
static bool take_digits(double value, int digits, int magnitude, uint64_t *n, int *decimals)
{
	*decimals = digits - 1 - magnitude;
	if (*decimals < 0 || *decimals > POWER_MAX)
		return false;
	long double scaled = (long double)value * powers[*decimals], whole = floorl(scaled);
	long double rest = scaled - whole;
	/* A relative error of 2^-64 in 10^17 is a hundredth. */
	if (fabsl(rest - 0.5L) < 0.02L)
		return false;
	*n = (uint64_t)whole + (rest > 0.5L);
	return true;
}

/* Whether n / 10^decimals is well within half the distance to the adjacent doubles. */
static int reads_back(double value, uint64_t n, int decimals)
{
	long double back = (long double)n / powers[decimals];
	long double half = (long double)(nextafter(value, INFINITY) - value) / 2;
	long double off = fabsl(back - (long double)value);
	int exponent;
	/* Below a power of two, the adjacent double is half as far. */
	if (frexp(value, &exponent) == 0.5)
		return -1;
	return off < half * 0.99L ? 1 : off > half * 1.01L ? 0 : -1;
}

static bool format_quickly(double value, struct strbuf *out)
{
	char text[32];
	size_t at = sizeof text;
	int decimals = 0;
	uint64_t n = 0;
	double size = fabs(value);
	bool found = false;

	if (!(size >= 1e-4 && size < 1e15))
		return false;
	int magnitude = (int)floor(log10(size));
	/* log10 rounds: near a power of ten the result may be off by one. */
	if (size >= (double)powers[magnitude + 1 > 0 ? magnitude + 1 : 0] && magnitude >= 0)
		magnitude++;
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG && !found; digits++) {
		if (!take_digits(size, digits, magnitude, &n, &decimals))
			return false;
		int same = digits == DBL_DECIMAL_DIG ? 1 : reads_back(size, n, decimals);
		if (same < 0)
			return false;
		found = same;
	}
	/* Rounding changed the number of digits. This is rare, and left to the library. */
	if ((long double)n >= powers[decimals + magnitude + 1] ||
	    (long double)n < powers[decimals + magnitude])
		return false;
	for (; decimals > 0 && n % 10 == 0; decimals--)
		n /= 10;
	for (int i = 0; n > 0 || i <= decimals; i++) {
		if (i == decimals && decimals > 0)
			text[--at] = '.';
		text[--at] = (char)('0' + n % 10);
		n /= 10;
	}
	if (value < 0)
		text[--at] = '-';
	strbuf_add(out, text + at, sizeof text - at);
	return true;
}
#else
static bool format_quickly(double value, struct strbuf *out)
{
	(void)value, (void)out;
	return false;
}
#endif

void format_real(double value, struct strbuf *out)
{
	char text[40];
	if (!isfinite(value) || format_quickly(value, out))
		return;
	for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	strbuf_puts(out, text);
}
