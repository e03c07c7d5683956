/* Loops that normalise rows, compiled for each instruction set. Each row is read into sums of
 * LANES elements, which the compiler vectorises. */
#include "adapters/native/cpu/kernels/row_norm.h"

#include <math.h>
#include <stdint.h>

#include "adapters/bf16.h"
#include "adapters/native/cpu/kernels/instruction_set.h"

enum { LANES = 16 };

BODY float get(const void *x, size_t i, bool bf16)
{
	return bf16 ? bf16_to_float(((const uint16_t *)x)[i]) : ((const float *)x)[i];
}

BODY void put(void *x, size_t i, float value, bool bf16)
{
	if (bf16)
		((uint16_t *)x)[i] = bf16_from_float(value);
	else
		((float *)x)[i] = value;
}

BODY float total(const float *lanes)
{
	float sum = 0;

	for (int k = 0; k < LANES; k++)
		sum += lanes[k];
	return sum;
}

/* The sum of x - shift, or of its squares, over n elements from `at` on. */
BODY float sum_of(const void *x, size_t at, size_t n, float shift, bool squares, bool bf16)
{
	float lanes[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		for (size_t k = 0; k < LANES; k++) {
			float d = get(x, at + i + k, bf16) - shift;

			lanes[k] += squares ? d * d : d;
		}
	}
	for (; i < n; i++) {
		float d = get(x, at + i, bf16) - shift;

		lanes[i % LANES] += squares ? d * d : d;
	}
	return total(lanes);
}

/* Adds up dy and dy * (x - mean) over n elements from `at` on, each times its scale if there is
 * one for each element. */
BODY void products(const struct row_norm *norm, size_t at, size_t n, const float *scale, float mean,
		   float *sum, float *product, bool bf16)
{
	float sums[LANES] = {0}, dots[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		for (size_t k = 0; k < LANES; k++) {
			float g = get(norm->dy, at + i + k, bf16) * (scale ? scale[i + k] : 1);

			sums[k] += g;
			dots[k] += g * (get(norm->x, at + i + k, bf16) - mean);
		}
	}
	for (; i < n; i++) {
		float g = get(norm->dy, at + i, bf16) * (scale ? scale[i] : 1);

		sums[i % LANES] += g;
		dots[i % LANES] += g * (get(norm->x, at + i, bf16) - mean);
	}
	*sum = total(sums);
	*product = total(dots);
}

BODY void forward_body(const struct row_norm *norm, size_t first, size_t end, bool bf16)
{
	size_t n = norm->length, inner = norm->inner, count = n / inner;

	for (size_t row = first; row < end; row++) {
		size_t at = row * n, group = row % norm->groups * count;
		const float *scale = norm->scale + group;
		const float *shift = norm->shift ? norm->shift + group : NULL;
		float mean = norm->centred ? sum_of(norm->x, at, n, 0, false, bf16) / (float)n : 0;
		float variance = sum_of(norm->x, at, n, mean, true, bf16) / (float)n;
		float inverse = 1 / sqrtf(variance + norm->epsilon);

		if (norm->moments) {
			norm->moments[2 * row] = mean;
			norm->moments[2 * row + 1] = inverse;
		}
		if (inner == 1) {
			INDEPENDENT
			for (size_t i = 0; i < n; i++)
				put(norm->y, at + i,
				    (get(norm->x, at + i, bf16) - mean) * inverse * scale[i] +
					    (shift ? shift[i] : 0),
				    bf16);
			continue;
		}
		for (size_t c = 0; c < count; c++, at += inner) {
			float factor = inverse * scale[c], term = shift ? shift[c] : 0;

			INDEPENDENT
			for (size_t i = 0; i < inner; i++)
				put(norm->y, at + i,
				    (get(norm->x, at + i, bf16) - mean) * factor + term, bf16);
		}
	}
}

/* dx = (g - mean g - z mean(g z)) / sqrt(variance + epsilon) with g = scale dy, z = (x - mean) /
 * sqrt(variance + epsilon); without `centred`, mean g counts as 0. */
BODY void gradient_body(const struct row_norm *norm, size_t first, size_t end, bool bf16)
{
	size_t n = norm->length, inner = norm->inner, count = n / inner;

	for (size_t row = first; row < end; row++) {
		size_t at = row * n;
		const float *scale = norm->scale + row % norm->groups * count;
		float mean = norm->moments[2 * row], inverse = norm->moments[2 * row + 1];
		float sum = 0, dot = 0;

		if (inner == 1)
			products(norm, at, n, scale, mean, &sum, &dot, bf16);
		for (size_t c = 0; inner > 1 && c < count; c++) {
			float part, product;

			products(norm, at + c * inner, inner, NULL, mean, &part, &product, bf16);
			sum += scale[c] * part;
			dot += scale[c] * product;
		}
		sum = norm->centred ? sum / (float)n : 0;
		dot *= inverse * inverse / (float)n;
		for (size_t c = 0; c < (inner > 1 ? count : 1); c++) {
			size_t width = inner > 1 ? inner : n;
			const float *each = inner > 1 ? NULL : scale;
			float one = scale[c];

			INDEPENDENT
			for (size_t i = 0; i < width; i++)
				put(norm->dx, at + i,
				    inverse *
					    (get(norm->dy, at + i, bf16) * (each ? each[i] : one) -
					     sum - (get(norm->x, at + i, bf16) - mean) * dot),
				    bf16);
			at += width;
		}
	}
}

/* Scales of elements: row after row, so that memory is read in order. */
BODY void sums_of_elements(const struct row_norm *norm, size_t first, size_t end, bool bf16)
{
	for (size_t i = first; i < end; i++)
		norm->dscale[i] = 0;
	for (size_t i = first; norm->dshift && i < end; i++)
		norm->dshift[i] = 0;
	for (size_t row = 0; row < norm->rows; row++) {
		size_t at = row * norm->length;
		float mean = norm->moments[2 * row], inverse = norm->moments[2 * row + 1];

		INDEPENDENT
		for (size_t i = first; i < end; i++)
			norm->dscale[i] += get(norm->dy, at + i, bf16) *
					   (get(norm->x, at + i, bf16) - mean) * inverse;
		for (size_t i = first; norm->dshift && i < end; i++)
			norm->dshift[i] += get(norm->dy, at + i, bf16);
	}
}

BODY void sums_body(const struct row_norm *norm, size_t first, size_t end, bool bf16)
{
	size_t count = norm->length / norm->inner;

	if (norm->inner == 1 && norm->groups == 1) {
		sums_of_elements(norm, first, end, bf16);
		return;
	}
	for (size_t c = first; c < end; c++) {
		double sum = 0, dot = 0;

		for (size_t row = c / count; row < norm->rows; row += norm->groups) {
			float part, product;

			products(norm, row * norm->length + c % count * norm->inner, norm->inner,
				 NULL, norm->moments[2 * row], &part, &product, bf16);
			sum += (double)part;
			dot += (double)(product * norm->moments[2 * row + 1]);
		}
		norm->dscale[c] = (float)dot;
		if (norm->dshift)
			norm->dshift[c] = (float)sum;
	}
}

#define LOOP(set, attribute, name)                                                                 \
	attribute static void name##_##set(const struct row_norm *norm, size_t first, size_t end)  \
	{                                                                                          \
		if (norm->bf16)                                                                    \
			name##_body(norm, first, end, true);                                       \
		else                                                                               \
			name##_body(norm, first, end, false);                                      \
	}
#define LOOPS(set, attribute)                                                                      \
	LOOP(set, attribute, forward)                                                              \
	LOOP(set, attribute, gradient)                                                             \
	LOOP(set, attribute, sums)                                                                 \
	static const struct row_norm_loops loops_##set = {forward_##set, gradient_##set,           \
							  sums_##set};

#define NO_ATTRIBUTE
LOOPS(baseline, NO_ATTRIBUTE)
#if defined(__x86_64__)
LOOPS(avx2, VECTORISED_AVX2)
LOOPS(avx512, VECTORISED_AVX512)
#endif

const struct row_norm_loops *row_norm_pick(void)
{
#if defined(__x86_64__)
	if (instruction_set_best() == INSTRUCTIONS_AVX512)
		return &loops_avx512;
	if (instruction_set_best() == INSTRUCTIONS_AVX2)
		return &loops_avx2;
#endif
	return &loops_baseline;
}
