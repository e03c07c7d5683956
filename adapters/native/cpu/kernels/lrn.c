/* Response normalisation, for each instruction set. */
#include "adapters/native/cpu/kernels/lrn.h"

#include <math.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "adapters/bf16.h"

/* All channels of a position are computed together, so that a window is a few overlapping loads.
 * The gradient recomputes s, which is cheaper than reading it from memory. */

enum { ARRAYS = 6, LANES = 16 };

static int64_t whole_vectors(int64_t floats)
{
	return (floats + LANES - 1) / LANES * LANES;
}

/* The number of zeros in front of an array of channels; they align the array to a cache line. */
static int64_t lead(const struct lrn *lrn)
{
	return whole_vectors(lrn->before + lrn->after);
}

/* The number of floats of an array of channels with the zeros around it. */
static int64_t room(const struct lrn *lrn)
{
	return lead(lrn) + whole_vectors(lrn->channels + lrn->before + lrn->after);
}

size_t lrn_scratch_floats(const struct lrn *lrn)
{
	return (size_t)(ARRAYS * room(lrn));
}

/* Loads the channels of the position that begins with element `at` of an array. */
BODY void gather(const struct lrn *lrn, float *to, const void *from, int64_t at)
{
	for (int64_t c = 0; c < lrn->channels; c += lrn->block) {
		int64_t start = at + c / lrn->block * lrn->block_stride;
		int64_t count = lrn->channels - c < lrn->block ? lrn->channels - c : lrn->block;

		if (lrn->bf16)
			for (int64_t i = 0; i < count; i++)
				to[c + i] = bf16_to_float(((const uint16_t *)from)[start + i]);
		else
			for (int64_t i = 0; i < count; i++)
				to[c + i] = ((const float *)from)[start + i];
	}
}

BODY void scatter(const struct lrn *lrn, void *to, int64_t at, const float *from)
{
	for (int64_t c = 0; c < lrn->channels; c += lrn->block) {
		int64_t start = at + c / lrn->block * lrn->block_stride;
		int64_t count = lrn->channels - c < lrn->block ? lrn->channels - c : lrn->block;

		if (lrn->bf16)
			for (int64_t i = 0; i < count; i++)
				((uint16_t *)to)[start + i] = bf16_from_float(from[c + i]);
		else
			for (int64_t i = 0; i < count; i++)
				((float *)to)[start + i] = from[c + i];
	}
}

/* sum[c] = sum of from[c - before] to from[c + after]; `from` is surrounded by zeros. */
BODY void window_sum(int64_t channels, int64_t before, int64_t after, float *restrict sum,
		     const float *restrict from)
{
	if (before == 2 && after == 2) { /* the windows of AlexNet and GoogLeNet, in one pass */
		for (int64_t c = 0; c < channels; c++)
			sum[c] = from[c - 2] + from[c - 1] + from[c] + from[c + 1] + from[c + 2];
		return;
	}
	for (int64_t c = 0; c < channels; c++)
		sum[c] = from[c - before];
	for (int64_t d = 1 - before; d <= after; d++) {
		for (int64_t c = 0; c < channels; c++)
			sum[c] += from[c + d];
	}
}

/* power[c] = s[c]^-beta. */
BODY void powers(int64_t channels, float beta, float *restrict power, const float *restrict s)
{
	if (beta == 0.75f) {
		for (int64_t c = 0; c < channels; c++) {
			float root = sqrtf(s[c]);

			power[c] = 1 / (root * sqrtf(root));
		}
		return;
	}
	for (int64_t c = 0; c < channels; c++)
		power[c] = powf(s[c], -beta);
}

static void powers_baseline(int64_t channels, float beta, float *restrict power,
			    const float *restrict s)
{
	powers(channels, beta, power, s);
}

#ifdef __x86_64__
VECTORISED_AVX2 static void powers_avx2(int64_t channels, float beta, float *restrict power,
					const float *restrict s)
{
	powers(channels, beta, power, s);
}

/* v^-1/2 within 2 ulp: 14 bits by table, the others by one Newton step. */
VECTORISED_AVX512 static inline __m512 reciprocal_root(__m512 v)
{
	__m512 r = _mm512_rsqrt14_ps(v), half = _mm512_mul_ps(v, _mm512_set1_ps(0.5f));
	__m512 rest = _mm512_fnmadd_ps(_mm512_mul_ps(half, r), r, _mm512_set1_ps(1.5f));

	return _mm512_mul_ps(r, rest);
}

/* Roots and quotients are not faster in wide registers. s^-3/4 = (s^-1/2)^2 (s^-1/2)^-1/2. */
VECTORISED_AVX512 static void powers_avx512(int64_t channels, float beta, float *restrict power,
					    const float *restrict s)
{
	if (beta != 0.75f) {
		powers(channels, beta, power, s);
		return;
	}
	for (int64_t c = 0; c < channels; c += LANES) {
		int64_t left = channels - c;
		__mmask16 mask = (__mmask16)(left < LANES ? (1u << left) - 1 : 0xffff);
		__m512 r = reciprocal_root(_mm512_mask_loadu_ps(_mm512_set1_ps(1), mask, s + c));

		_mm512_mask_storeu_ps(power + c, mask,
				      _mm512_mul_ps(_mm512_mul_ps(r, r), reciprocal_root(r)));
	}
}
#endif

typedef void powers_function(int64_t channels, float beta, float *restrict power,
			     const float *restrict s);

/* s and s^-beta of every channel; `squares` is scratch surrounded by zeros. */
BODY void factors(const struct lrn *lrn, powers_function *to_power, const float *restrict x,
		  float *restrict squares, float *restrict s, float *restrict power)
{
	for (int64_t c = 0; c < lrn->channels; c++)
		squares[c] = x[c] * x[c];
	window_sum(lrn->channels, lrn->before, lrn->after, s, squares);
	for (int64_t c = 0; c < lrn->channels; c++)
		s[c] = lrn->bias + lrn->scale * s[c];
	to_power(lrn->channels, lrn->beta, power, s);
}

/* The first element of position `i`, counted through all samples. */
static int64_t place(const struct lrn *lrn, int64_t i)
{
	return i / lrn->positions * lrn->sample_stride + i % lrn->positions * lrn->position_stride;
}

BODY void forward(const struct lrn *lrn, powers_function *to_power, void *out, const void *in,
		  float *scratch, size_t first, size_t end)
{
	int64_t step = room(lrn);
	float *x = scratch + lead(lrn), *squares = x + step, *s = squares + step;
	float *power = s + step;

	for (size_t i = first; i < end; i++) {
		int64_t at = place(lrn, (int64_t)i);

		gather(lrn, x, in, at);
		factors(lrn, to_power, x, squares, s, power);
		for (int64_t c = 0; c < lrn->channels; c++)
			x[c] *= power[c];
		scatter(lrn, out, at, x);
	}
}

BODY void backward(const struct lrn *lrn, powers_function *to_power, void *dx, const void *in,
		   const void *gradient, float *scratch, size_t first, size_t end)
{
	int64_t step = room(lrn);
	float *x = scratch + lead(lrn), *squares = x + step, *s = squares + step;
	float *power = s + step, *dy = power + step, *ratio = dy + step;
	float factor = 2 * lrn->beta * lrn->scale;

	for (size_t i = first; i < end; i++) {
		int64_t at = place(lrn, (int64_t)i);

		gather(lrn, x, in, at);
		gather(lrn, dy, gradient, at);
		factors(lrn, to_power, x, squares, s, power);
		for (int64_t c = 0; c < lrn->channels; c++)
			ratio[c] = dy[c] * x[c] * power[c] / s[c];
		window_sum(lrn->channels, lrn->after, lrn->before, s, ratio);
		for (int64_t c = 0; c < lrn->channels; c++)
			dy[c] = dy[c] * power[c] - factor * x[c] * s[c];
		scatter(lrn, dx, at, dy);
	}
}

struct lrn_loops {
	void (*forward)(const struct lrn *lrn, void *out, const void *x, float *scratch,
			size_t first, size_t end);
	void (*backward)(const struct lrn *lrn, void *dx, const void *x, const void *dy,
			 float *scratch, size_t first, size_t end);
};

#define LOOPS(set, attribute)                                                                      \
	attribute static void forward_##set(const struct lrn *lrn, void *out, const void *x,       \
					    float *scratch, size_t first, size_t end)              \
	{                                                                                          \
		forward(lrn, powers_##set, out, x, scratch, first, end);                           \
	}                                                                                          \
	attribute static void backward_##set(const struct lrn *lrn, void *dx, const void *x,       \
					     const void *dy, float *scratch, size_t first,         \
					     size_t end)                                           \
	{                                                                                          \
		backward(lrn, powers_##set, dx, x, dy, scratch, first, end);                       \
	}                                                                                          \
	static const struct lrn_loops loops_##set = {forward_##set, backward_##set}

LOOPS(baseline, );
#ifdef __x86_64__
LOOPS(avx2, VECTORISED_AVX2);
LOOPS(avx512, VECTORISED_AVX512);
#endif

const struct lrn_loops *lrn_pick(enum instruction_set set)
{
#ifdef __x86_64__
	if (set == INSTRUCTIONS_AVX512)
		return &loops_avx512;
	if (set == INSTRUCTIONS_AVX2)
		return &loops_avx2;
#endif
	(void)set;
	return &loops_baseline;
}

void lrn_forward(const struct lrn *lrn, void *out, const void *x, float *scratch, size_t first,
		 size_t end)
{
	lrn->loops->forward(lrn, out, x, scratch, first, end);
}

void lrn_backward(const struct lrn *lrn, void *dx, const void *x, const void *dy, float *scratch,
		  size_t first, size_t end)
{
	lrn->loops->backward(lrn, dx, x, dy, scratch, first, end);
}
