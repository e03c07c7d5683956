#include "adapters/native/kernels/add_n.h"

#include "adapters/native/kernels/bf16.h"

/* One loop reads all terms side by side: for a few pages of each in turn, the processor would have
 * to find out anew what comes next. `count` and `then` are constants where this is called. */
BODY void add_f32(float *out, const void *const *terms, int count, enum sum_then then,
		  const float *mask, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++) {
		float x = ((const float *)terms[0])[i];

		for (int k = 1; k < count; k++)
			x += ((const float *)terms[k])[i];
		if (then == SUM_RELU)
			x = x > 0 ? x : 0;
		if (then == SUM_RELU_GRAD)
			x = mask[i] > 0 ? x : 0;
		out[i] = x;
	}
}

BODY void add_bf16(uint16_t *out, const void *const *terms, int count, enum sum_then then,
		   const uint16_t *mask, size_t n)
{
	INDEPENDENT
	for (size_t i = 0; i < n; i++) {
		float x = bf16_to_float(((const uint16_t *)terms[0])[i]);

		for (int k = 1; k < count; k++)
			x += bf16_to_float(((const uint16_t *)terms[k])[i]);
		if (then == SUM_RELU)
			x = x > 0 ? x : 0;
		if (then == SUM_RELU_GRAD)
			x = bf16_to_float(mask[i]) > 0 ? x : 0;
		out[i] = bf16_from_float(x);
	}
}

#define COUNT(number, type)                                                                        \
	case number:                                                                               \
		if (then == SUM_ONLY)                                                              \
			add_##type(out, copy, number, SUM_ONLY, NULL, n);                          \
		else if (then == SUM_RELU)                                                         \
			add_##type(out, copy, number, SUM_RELU, NULL, n);                          \
		else                                                                               \
			add_##type(out, copy, number, SUM_RELU_GRAD, mask, n);                     \
		break;
#define COUNTS(type)                                                                               \
	COUNT(1, type)                                                                             \
	COUNT(2, type)                                                                             \
	COUNT(3, type)                                                                             \
	COUNT(4, type)                                                                             \
	COUNT(5, type)                                                                             \
	COUNT(6, type)                                                                             \
	COUNT(7, type)                                                                             \
	COUNT(8, type)

/* The addresses in variables of our own, which nothing written can change. */
#define BODY_OF(type)                                                                              \
	BODY void body_##type(void *out, const void *const *terms, int count, enum sum_then then,  \
			      const void *mask, size_t n)                                          \
	{                                                                                          \
		const void *copy[SUM_TERMS_MAX] = {0};                                             \
                                                                                                   \
		for (int k = 0; k < count; k++)                                                    \
			copy[k] = terms[k];                                                        \
		switch (count) {                                                                   \
			COUNTS(type)                                                               \
		}                                                                                  \
	}
BODY_OF(f32)
BODY_OF(bf16)

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
SUM_SET(avx2, VECTORISED_AVX2)
SUM_SET(avx512, VECTORISED_AVX512)
#endif

sum_loop *sum_pick(bool bf16, enum instruction_set set)
{
#if defined(__x86_64__)
	if (set >= INSTRUCTIONS_AVX512)
		return bf16 ? bf16_avx512 : f32_avx512;
	if (set >= INSTRUCTIONS_AVX2)
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
