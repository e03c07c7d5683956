#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "ceilings/fma.h"
#include "tests/bench/floor.h"

#define CALLS 12

static void measure_fma(const struct onednn *dnn, int threads, struct floor_peak *peak)
{
	struct fma_kernel kernel;
	fma_kernel_find(FMA_FP32, &kernel);
	double work = kernel.flops * threads, mean;
	int64_t first_ns = floor_now_ns();

	for (int i = 0; i < CALLS; i++) {
		int64_t begin_ns = floor_now_ns();
		double flops;

		onednn_split(dnn, threads, (size_t)threads, fma_pieces, &kernel);
		flops = work / (double)(floor_now_ns() - begin_ns) * 1e9;
		peak->fma = flops > peak->fma ? flops : peak->fma;
	}
	if (kernel.wrong) {
		fprintf(stderr,
			"bench_floor: the %s loop gave a wrong result, so its time is not used\n",
			kernel.name);
		exit(EXIT_FAILURE);
	}
	mean = CALLS * work / (double)(floor_now_ns() - first_ns) * 1e9;
	if (peak->fma_worst <= 0 || mean < peak->fma_worst)
		peak->fma_worst = mean;
	peak->fma_set = kernel.name;
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
