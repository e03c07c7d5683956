#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "tests/bench/floor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/*
 * The peak of the processor: multiply-adds on registers alone, in twelve chains, which is more than
 * latency times ports of any processor so far (Intel 4 x 2, Haswell 5 x 2) and fits into sixteen
 * registers. Each chain counts: x = x * one + one, with a `one` that the compiler cannot know, from
 * different starts. As long as counts stay below 2^24 they are exact in fp32, so the result tells
 * how many multiply-adds of each lane were really done; a wrong count ends the program.
 */
#define CHAINS 12
#define LANES_MAX 16
#define ROUNDS (1 << 21)
#define CALLS 12

struct fma_set {
	const char *name;
	size_t lanes;
	void (*run)(float one, float *lanes); /* CHAINS x lanes, in place */
};

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
#endif

/* What every processor has: four lanes, multiplied and added as the compiler sees fit. */
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

static struct fma_set pick_set(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return (struct fma_set){"avx512f", 16, run_avx512};
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return (struct fma_set){"avx2+fma", 8, run_avx2};
#endif
	return (struct fma_set){"portable", 4, run_portable};
}

/* Runs in each thread, with a set of chains of its own. */
static void run_piece(void *data, size_t first, size_t end)
{
	const struct fma_set *set = data;
	static volatile float unknown = 1;
	size_t count = CHAINS * set->lanes;

	for (; first < end; first++) {
		float lanes[CHAINS * LANES_MAX];

		for (size_t i = 0; i < count; i++)
			lanes[i] = (float)i;
		set->run(unknown, lanes);
		for (size_t i = 0; i < count; i++) {
			if (lanes[i] != (float)i + ROUNDS) {
				fprintf(stderr,
					"bench_floor: the %s loop counted %.0f instead of %d: its "
					"time says nothing\n",
					set->name, (double)lanes[i] - (double)i, ROUNDS);
				exit(EXIT_FAILURE);
			}
		}
	}
}

static void measure_fma(const struct onednn *dnn, int threads, struct floor_peak *peak)
{
	struct fma_set set = pick_set();
	double work = 2.0 * ROUNDS * CHAINS * (double)set.lanes * threads, mean;
	int64_t first_ns = floor_now_ns();

	for (int i = 0; i < CALLS; i++) {
		int64_t begin_ns = floor_now_ns();
		double flops;

		onednn_split(dnn, threads, (size_t)threads, run_piece, &set);
		flops = work / (double)(floor_now_ns() - begin_ns) * 1e9;
		peak->fma = flops > peak->fma ? flops : peak->fma;
	}
	mean = CALLS * work / (double)(floor_now_ns() - first_ns) * 1e9;
	if (peak->fma_worst <= 0 || mean < peak->fma_worst)
		peak->fma_worst = mean;
	peak->fma_set = set.name;
}

static void measure_sgemm(const struct onednn *dnn, struct floor_peak *peak)
{
	static const int sizes[] = {384, 768, 1536, 2304};
	typedef dnnl_status_t sgemm(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float,
				    const float *, dnnl_dim_t, const float *, dnnl_dim_t, float,
				    float *, dnnl_dim_t);
	union {
		void *address;
		sgemm *call;
	} found = {.address = dlsym(dnn->handle, "dnnl_sgemm")};
	size_t most = 2304 * 2304;
	float *a = memory_alloc(most * sizeof(float)), *b = memory_alloc(most * sizeof(float)),
	      *c = memory_alloc(most * sizeof(float));
	struct random random;

	random_init(&random, 1);
	for (size_t i = 0; i < most; i++) {
		a[i] = (float)random_uniform(&random);
		b[i] = (float)random_uniform(&random);
	}
	for (size_t s = 0; found.address && s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int64_t n = sizes[s], spent_ns = 0;

		for (int i = 0; i < 30 && (i < 3 || spent_ns < 150000000); i++) {
			int64_t begin_ns = floor_now_ns(), took_ns;
			double flops;

			found.call('N', 'N', n, n, n, 1, a, n, b, n, 0, c, n);
			took_ns = floor_now_ns() - begin_ns;
			spent_ns += took_ns;
			flops = 2.0 * (double)(n * n * n) / (double)took_ns * 1e9;
			if (i > 0 && flops > peak->sgemm) {
				peak->sgemm = flops;
				peak->sgemm_size = (int)n;
			}
		}
	}
	free(a);
	free(b);
	free(c);
}

void floor_measure_peak(const struct onednn *dnn, int threads, struct floor_peak *peak)
{
	measure_fma(dnn, threads, peak);
	measure_sgemm(dnn, peak);
}

double floor_best_peak(const struct floor_peak *peak)
{
	return peak->fma > peak->sgemm ? peak->fma : peak->sgemm;
}
