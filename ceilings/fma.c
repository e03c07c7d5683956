#include "ceilings/fma.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Twelve chains: more than latency times ports of any processor so far (Intel 4 x 2, Haswell 5 x
 * 2), and they fit into sixteen registers. Each chain counts: x = x * one + one, from different
 * starts, with a `one` unknown to the compiler. Counts are exact in fp32 below 2^24. */
#define CHAINS 12
#define LANES_MAX 16
#define ROUNDS (1 << 21)

#define EACH_CHAIN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void run_avx512(float one, float *lanes)
{
	__m512 unit = _mm512_set1_ps(one);
#define X(i) __m512 x##i = _mm512_loadu_ps(lanes + 16 * (i));
	EACH_CHAIN(X)
#undef X
	for (int round = 0; round < ROUNDS; round++) {
#define X(i) x##i = _mm512_fmadd_ps(x##i, unit, unit);
		EACH_CHAIN(X)
#undef X
	}
#define X(i) _mm512_storeu_ps(lanes + 16 * (i), x##i);
	EACH_CHAIN(X)
#undef X
}

__attribute__((target("avx2,fma"))) static void run_avx2(float one, float *lanes)
{
	__m256 unit = _mm256_set1_ps(one);
#define X(i) __m256 x##i = _mm256_loadu_ps(lanes + 8 * (i));
	EACH_CHAIN(X)
#undef X
	for (int round = 0; round < ROUNDS; round++) {
#define X(i) x##i = _mm256_fmadd_ps(x##i, unit, unit);
		EACH_CHAIN(X)
#undef X
	}
#define X(i) _mm256_storeu_ps(lanes + 8 * (i), x##i);
	EACH_CHAIN(X)
#undef X
}

/* Two bf16 products are added to each fp32 lane. */
__attribute__((target("avx512f,avx512bw,avx512bf16"))) static void run_bf16(float one, float *lanes)
{
	uint32_t bits;
	memcpy(&bits, &one, sizeof(bits));
	__m512i pair = _mm512_set1_epi32((int)(bits >> 16 | (bits & 0xffff0000u)));
	__m512bh unit;
	memcpy(&unit, &pair, sizeof(unit));
#define X(i) __m512 x##i = _mm512_loadu_ps(lanes + 16 * (i));
	EACH_CHAIN(X)
#undef X
	for (int round = 0; round < ROUNDS; round++) {
#define X(i) x##i = _mm512_dpbf16_ps(x##i, unit, unit);
		EACH_CHAIN(X)
#undef X
	}
#define X(i) _mm512_storeu_ps(lanes + 16 * (i), x##i);
	EACH_CHAIN(X)
#undef X
}
#endif

/* For any processor: four lanes; the compiler chooses the instructions. */
static void run_portable(float one, float *lanes)
{
	float unit __attribute__((vector_size(16))) = {one, one, one, one};
#define X(i)                                                                                       \
	float x##i __attribute__((vector_size(16)));                                               \
	memcpy(&x##i, lanes + 4 * (i), sizeof(x##i));
	EACH_CHAIN(X)
#undef X
	for (int round = 0; round < ROUNDS; round++) {
#define X(i) x##i = x##i * unit + unit;
		EACH_CHAIN(X)
#undef X
	}
#define X(i) memcpy(lanes + 4 * (i), &x##i, sizeof(x##i));
	EACH_CHAIN(X)
#undef X
}

static void set(struct fma_kernel *out, const char *name, size_t lanes, double per_lane,
		void (*run)(float one, float *lanes))
{
	*out = (struct fma_kernel){.name = name,
				   .lanes = lanes,
				   .per_lane = per_lane,
				   .flops = 2.0 * ROUNDS * CHAINS * (double)lanes * per_lane,
				   .run = run};
}

bool fma_kernel_find(enum fma_type type, struct fma_kernel *out)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (type == FMA_BF16 && __builtin_cpu_supports("avx512bf16")) {
		set(out, "avx512bf16", 16, 2, run_bf16);
		return true;
	}
	if (type == FMA_FP32 && __builtin_cpu_supports("avx512f")) {
		set(out, "avx512f", 16, 1, run_avx512);
		return true;
	}
	if (type == FMA_FP32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		set(out, "avx2+fma", 8, 1, run_avx2);
		return true;
	}
#endif
	if (type != FMA_FP32)
		return false;
	set(out, "portable", 4, 1, run_portable);
	return true;
}

void fma_pieces(void *data, size_t first, size_t end)
{
	struct fma_kernel *kernel = data;
	static volatile float unknown = 1;
	size_t count = CHAINS * kernel->lanes;

	for (; first < end; first++) {
		float lanes[CHAINS * LANES_MAX];

		for (size_t i = 0; i < count; i++)
			lanes[i] = (float)i;
		kernel->run(unknown, lanes);
		for (size_t i = 0; i < count; i++)
			if (lanes[i] != (float)i + ROUNDS * (float)kernel->per_lane)
				kernel->wrong = true;
	}
}
