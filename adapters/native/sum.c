#include "adapters/native/sum.h"

#include "adapters/native/bf16.h"

/* As in loops.c: the result may be one of the terms, number by number. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed" /* sanitizers keep loops from being vectorised */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define BODY static inline __attribute__((always_inline))

/* Partial sums of more than two terms stay in the first cache. */
#define CHUNK 1024

BODY void finish_f32(float *out, const float *a, const float *b, enum sum_then then,
		     const float *mask, size_t n)
{
	if (then == SUM_ONLY) {
		INDEPENDENT
		for (size_t i = 0; i < n; i++)
			out[i] = b ? a[i] + b[i] : a[i];
	} else if (then == SUM_RELU) {
		INDEPENDENT
		for (size_t i = 0; i < n; i++) {
			float x = b ? a[i] + b[i] : a[i];

			out[i] = x > 0 ? x : 0;
		}
	} else {
		INDEPENDENT
		for (size_t i = 0; i < n; i++)
			out[i] = mask[i] > 0 ? b ? a[i] + b[i] : a[i] : 0;
	}
}

/* The two cases of b apart: neither loop tests it. */
BODY void last_f32(float *out, const float *a, const float *b, enum sum_then then,
		   const float *mask, size_t n)
{
	if (b)
		finish_f32(out, a, b, then, mask, n);
	else
		finish_f32(out, a, NULL, then, mask, n);
}

BODY void body_f32(void *out, const void *const *terms, int count, enum sum_then then,
		   const void *mask, size_t n)
{
	float partial[CHUNK];

	if (count <= 2) {
		last_f32(out, terms[0], count == 2 ? terms[1] : NULL, then, mask, n);
		return;
	}
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t length = n - at < CHUNK ? n - at : CHUNK;
		const float *a = (const float *)terms[0] + at, *b = (const float *)terms[1] + at;

		for (size_t i = 0; i < length; i++)
			partial[i] = a[i] + b[i];
		for (int k = 2; k + 1 < count; k++) {
			const float *term = (const float *)terms[k] + at;

			for (size_t i = 0; i < length; i++)
				partial[i] += term[i];
		}
		last_f32((float *)out + at, partial, (const float *)terms[count - 1] + at, then,
			 mask ? (const float *)mask + at : NULL, length);
	}
}

BODY void body_bf16(void *out, const void *const *terms, int count, enum sum_then then,
		    const void *mask, size_t n)
{
	float partial[CHUNK];

	for (size_t at = 0; at < n; at += CHUNK) {
		size_t length = n - at < CHUNK ? n - at : CHUNK;
		const uint16_t *a = (const uint16_t *)terms[0] + at;
		/* Order and sign are those of the bits as an integer. */
		const int16_t *sign = mask ? (const int16_t *)mask + at : NULL;
		uint16_t *to = (uint16_t *)out + at;

		for (size_t i = 0; i < length; i++)
			partial[i] = bf16_to_float(a[i]);
		for (int k = 1; k < count; k++) {
			const uint16_t *term = (const uint16_t *)terms[k] + at;

			for (size_t i = 0; i < length; i++)
				partial[i] += bf16_to_float(term[i]);
		}
		if (then == SUM_RELU)
			for (size_t i = 0; i < length; i++)
				partial[i] = partial[i] > 0 ? partial[i] : 0;
		if (then == SUM_RELU_GRAD)
			for (size_t i = 0; i < length; i++)
				to[i] = sign[i] > 0 ? bf16_from_float(partial[i]) : 0;
		else
			for (size_t i = 0; i < length; i++)
				to[i] = bf16_from_float(partial[i]);
	}
}

#define SUM_SET(set, attribute)                                                                    \
	attribute static void f32_##set(void *out, const void *const *terms, int count,            \
					enum sum_then then, const void *mask, size_t n)            \
	{                                                                                          \
		body_f32(out, terms, count, then, mask, n);                                        \
	}                                                                                          \
	attribute static void bf16_##set(void *out, const void *const *terms, int count,           \
					 enum sum_then then, const void *mask, size_t n)           \
	{                                                                                          \
		body_bf16(out, terms, count, then, mask, n);                                       \
	}

#define NO_ATTRIBUTE
SUM_SET(baseline, NO_ATTRIBUTE)
#if defined(__x86_64__)
SUM_SET(avx2, __attribute__((target("avx2,fma"))))
#if defined(__clang__)
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl,fma"
#else
#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"
#endif
SUM_SET(avx512, __attribute__((target(AVX512))))
#endif

enum sum_set sum_best(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return SUM_AVX512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return SUM_AVX2;
#endif
	return SUM_BASELINE;
}

sum_loop *sum_pick(bool bf16, enum sum_set set)
{
#if defined(__x86_64__)
	if (set >= SUM_AVX512)
		return bf16 ? bf16_avx512 : f32_avx512;
	if (set >= SUM_AVX2)
		return bf16 ? bf16_avx2 : f32_avx2;
#else
	(void)set;
#endif
	return bf16 ? bf16_baseline : f32_baseline;
}

void sum_rows_run(const struct sum_rows *rows, void *const *arrays, size_t first, size_t end)
{
	size_t bytes = rows->bf16 ? sizeof(uint16_t) : sizeof(float);
	int used = rows->count + 1 + (rows->then == SUM_RELU_GRAD);

	while (first < end) {
		size_t row = first / rows->inner, column = first % rows->inner;
		size_t n = rows->inner - column < end - first ? rows->inner - column : end - first;
		const void *places[SUM_ARRAYS_MAX] = {0};
		unsigned char *out = (unsigned char *)arrays[0] +
				     (rows->starts[0] + row * rows->strides[0] + column) * bytes;

		for (int k = 1; k < used; k++)
			places[k] = (const unsigned char *)arrays[k] +
				    (rows->starts[k] + row * rows->strides[k] + column) * bytes;
		rows->loop(out, places + 1, rows->count, rows->then,
			   rows->then == SUM_RELU_GRAD ? places[rows->count + 1] : NULL, n);
		first += n;
	}
}
