/* The gradient of max-pooling, for each instruction set. */
#include "adapters/native/cpu/kernels/max_pool.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

void max_pool_spans(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t before,
		    struct max_pool_span *spans)
{
	for (int64_t i = 0; i < in; i++) {
		int64_t place = i + before, beyond = place - (kernel - 1);
		int64_t first = beyond > 0 ? (beyond + stride - 1) / stride : 0;
		int64_t last = place / stride < out - 1 ? place / stride : out - 1;

		spans[i] = (struct max_pool_span){
			.first = first,
			.count = last >= first ? last - first + 1 : 0,
			.tap = place - first * stride,
		};
	}
}

void max_pool_find_inner(struct max_pool *p, int64_t before)
{
	const int64_t stride = p->strides[1], before_window = (p->kernel_width - 1) / stride;
	int64_t first = (before + stride - 1) / stride;
	int64_t last = (p->in[1] + before) / stride - 1;

	if (first < before_window)
		first = before_window;
	if (last > p->out[1] - 1)
		last = p->out[1] - 1;
	p->inner = first * stride - before;
	p->inner_count = last >= first ? last - first + 1 : 0;
	if (p->inner_count == 0)
		p->inner = -1;
}

/* Types of vectors of one width. They are never arguments or results: callers compiled without the
 * instruction set would pass them differently. */
#define VECTORS(lanes)                                                                             \
	typedef float vector __attribute__((vector_size((lanes)*4)));                              \
	typedef int32_t bits __attribute__((vector_size((lanes)*4)))
#define VECTORS_baseline(lanes)                                                                    \
	typedef uint8_t memory_u8 __attribute__((vector_size(lanes), aligned(1), may_alias))
#define VECTORS_avx2(lanes)
#define VECTORS_avx512(lanes)
#define VECTORS_f32(lanes)                                                                         \
	typedef float memory_f32 __attribute__((vector_size((lanes)*4), aligned(4), may_alias))
#define VECTORS_bf16(lanes)                                                                        \
	typedef uint32_t words __attribute__((vector_size((lanes)*4)));                            \
	typedef uint16_t halves __attribute__((vector_size((lanes)*2)));                           \
	typedef uint16_t memory_bf16 __attribute__((vector_size((lanes)*2), aligned(2), may_alias))

#define LOAD_f32(set, address) (*(const memory_f32 *)(const void *)(address))
#define STORE_f32(set, address, x) (*(memory_f32 *)(void *)(address) = (x))
#define LOAD_bf16(set, address) ((vector)((words)WIDEN16_##set(address) << 16))
/* Rounds like bf16_from_float. */
#define STORE_bf16(set, address, x)                                                                \
	do {                                                                                       \
		words raw = (words)(x), number = (words)((x) == (x));                              \
		words near = raw + 0x7fffu + (raw >> 16 & 1u);                                     \
                                                                                                   \
		raw = ((near & number) | ((raw | 0x400000u) & ~number)) >> 16;                     \
		*(memory_bf16 *)(void *)(address) = NARROW_##set(raw);                             \
	} while (0)

/* Conversions of integers. GCC 12 splits the generic conversion into scalar code. */
#define WIDEN8_baseline(address)                                                                   \
	__builtin_convertvector(*(const memory_u8 *)(const void *)(address), bits)
#define WIDEN16_baseline(address)                                                                  \
	__builtin_convertvector(*(const memory_bf16 *)(const void *)(address), bits)
#define NARROW_baseline(x) __builtin_convertvector(x, halves)
#define WIDEN8_avx2(address) ((bits)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(address))))
#define WIDEN16_avx2(address)                                                                      \
	((bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(address))))
#define NARROW_avx2(x) __builtin_convertvector(x, halves)
#define WIDEN8_avx512(address)                                                                     \
	((bits)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(address))))
#define WIDEN16_avx512(address)                                                                    \
	((bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(address))))
#define NARROW_avx512(x) ((halves)_mm512_cvtepi32_epi16((__m512i)(x)))

/* One vector of channels of a point, whose first window is at `dy` and `at`. */
#define POINT(set, target, type, element, lanes)                                                   \
	target static inline void point_##type##_##set##_##lanes(                                  \
		const struct max_pool *p, const struct max_pool_span *down,                        \
		const struct max_pool_span *across, element *dx, const element *dy,                \
		const uint8_t *at)                                                                 \
	{                                                                                          \
		VECTORS(lanes);                                                                    \
		VECTORS_##set(lanes);                                                              \
		VECTORS_##type(lanes);                                                             \
		const int64_t right = p->channels, below = p->out[1] * right;                      \
		const int32_t left_tap = (int32_t)p->strides[1];                                   \
		const int32_t upper_tap = (int32_t)(p->strides[0] * p->kernel_width);              \
		int32_t tap = (int32_t)(down->tap * p->kernel_width + across->tap);                \
		vector sum = {0};                                                                  \
                                                                                                   \
		for (int64_t i = 0; i < down->count; i++, tap -= upper_tap) {                      \
			for (int64_t j = 0; j < across->count; j++) {                              \
				const uint8_t *is = at + i * below + j * right;                    \
				vector y = LOAD_##type(set, dy + i * below + j * right);           \
				bits mine = WIDEN8_##set(is) == tap - (int32_t)j * left_tap;       \
                                                                                                   \
				sum += (vector)((bits)y & mine);                                   \
			}                                                                          \
		}                                                                                  \
		STORE_##type(set, dx, sum);                                                        \
	}

/* Walks over a point's channels in vectors. The last vector starts early enough to be whole: the
 * channels that it shares with the previous one are written twice, with the same values. */
#define CHANNELS(c, lanes)                                                                         \
	for (int64_t c = 0; c<channels; c = c + 2 * (lanes)> channels && c + (lanes) < channels    \
				    ? channels - (lanes)                                           \
				    : c + (lanes))

/* Computes `count` times `stride` points of a row that have all their windows. Windows are `rows`
 * high; the last window begins at the first point, at `dy` and `at`. If the caller passes
 * constants, the taps are constants in the loop. */
#define INNER(set, target, type, element, lanes)                                                   \
	target static inline __attribute__((always_inline)) void inner_##type##_##set##_##lanes(   \
		const struct max_pool *p, const int64_t kernel, const int64_t stride,              \
		const int64_t rows, const int64_t top_tap, element *dx, const element *dy,         \
		const uint8_t *at, int64_t count)                                                  \
	{                                                                                          \
		VECTORS(lanes);                                                                    \
		VECTORS_##set(lanes);                                                              \
		VECTORS_##type(lanes);                                                             \
		const int64_t channels = p->channels, below = p->out[1] * channels;                \
                                                                                                   \
		for (int64_t q = 0; q < count; q++, dy += channels, at += channels) {              \
			CHANNELS(c, lanes)                                                         \
			{                                                                          \
				UNROLL for (int64_t r = 0; r < stride; r++)                        \
				{                                                                  \
					int64_t before = (kernel - 1 - r) / stride;                \
					vector sum = {0};                                          \
                                                                                                   \
					UNROLL for (int64_t i = 0; i < rows; i++)                  \
						UNROLL for (int64_t k = before; k >= 0; k--)       \
					{                                                          \
						int64_t w = i * below - k * channels + c;          \
						int64_t tap = top_tap - i * stride * kernel + r +  \
							      k * stride;                          \
						vector y = LOAD_##type(set, dy + w);               \
						bits mine = WIDEN8_##set(at + w) == (int32_t)tap;  \
                                                                                                   \
						sum += (vector)((bits)y & mine);                   \
					}                                                          \
					STORE_##type(set, dx + r * channels + c, sum);             \
				}                                                                  \
			}                                                                          \
			dx += stride * channels;                                                   \
		}                                                                                  \
	}

/* Calls the loop for windows of this size, stride and height over a row; used for the most common
 * windows. */
#define CASE(set, type, lanes, size, step, high)                                                   \
	if (p->kernel_width == (size) && p->strides[0] == (step) && p->strides[1] == (step) &&     \
	    down->count == (high)) {                                                               \
		inner_##type##_##set##_##lanes(p, size, step, high, down->tap *(size), dx, dy, at, \
					       count);                                             \
		return true;                                                                       \
	}

#define GRADIENT(set, target, type, element, lanes)                                                \
	POINT(set, target, type, element, lanes)                                                   \
	INNER(set, target, type, element, lanes)                                                   \
	target static bool common_##type##_##set##_##lanes(                                        \
		const struct max_pool *p, const struct max_pool_span *down, element *dx,           \
		const element *dy, const uint8_t *at, int64_t count)                               \
	{                                                                                          \
		CASE(set, type, lanes, 2, 2, 1)                                                    \
		CASE(set, type, lanes, 3, 2, 1)                                                    \
		CASE(set, type, lanes, 3, 2, 2)                                                    \
		CASE(set, type, lanes, 3, 1, 2)                                                    \
		CASE(set, type, lanes, 3, 1, 3)                                                    \
		return false;                                                                      \
	}                                                                                          \
	target static void gradient_##type##_##set##_##lanes(                                      \
		const struct max_pool *p, void *dx_all, const void *dy_all, const uint8_t *chosen, \
		size_t first, size_t end)                                                          \
	{                                                                                          \
		const int64_t channels = p->channels;                                              \
                                                                                                   \
		for (int64_t row = (int64_t)first; row < (int64_t)end; row++) {                    \
			const struct max_pool_span *down = &p->rows[row % p->in[0]];               \
			int64_t top = (row / p->in[0] * p->out[0] + down->first) * p->out[1];      \
			element *dx = (element *)dx_all + row * p->in[1] * channels;               \
                                                                                                   \
			for (int64_t w = 0; w < p->in[1]; w++) {                                   \
				const struct max_pool_span *across = &p->columns[w];               \
				int64_t corner = (top + across->first) * channels;                 \
				int64_t last = corner + (across->count - 1) * channels;            \
                                                                                                   \
				if (w == p->inner && common_##type##_##set##_##lanes(              \
							     p, down, dx + w * channels,           \
							     (const element *)dy_all + last,       \
							     chosen + last, p->inner_count)) {     \
					w += p->inner_count * p->strides[1] - 1;                   \
					continue;                                                  \
				}                                                                  \
				CHANNELS(c, lanes)                                                 \
				point_##type##_##set##_##lanes(                                    \
					p, down, across, dx + w * channels + c,                    \
					(const element *)dy_all + corner + c,                      \
					chosen + corner + c);                                      \
			}                                                                          \
		}                                                                                  \
	}

#define NO_TARGET
#define BOTH(set, target, lanes)                                                                   \
	GRADIENT(set, target, f32, float, lanes)                                                   \
	GRADIENT(set, target, bf16, uint16_t, lanes)
BOTH(baseline, NO_TARGET, 1)
BOTH(baseline, NO_TARGET, 4)
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
BOTH(avx2, AVX2, 8)
BOTH(avx512, AVX512, 16)
#endif

max_pool_gradient *max_pool_pick(int64_t channels, bool bf16, enum instruction_set set)
{
#ifdef __x86_64__
	if (set >= INSTRUCTIONS_AVX512 && channels >= 16)
		return bf16 ? gradient_bf16_avx512_16 : gradient_f32_avx512_16;
	if (set >= INSTRUCTIONS_AVX2 && channels >= 8)
		return bf16 ? gradient_bf16_avx2_8 : gradient_f32_avx2_8;
#else
	(void)set;
#endif
	if (channels >= 4)
		return bf16 ? gradient_bf16_baseline_4 : gradient_f32_baseline_4;
	return bf16 ? gradient_bf16_baseline_1 : gradient_f32_baseline_1;
}
