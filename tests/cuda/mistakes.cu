// Kernels for the test of the fake driver: right ones, and ones with a mistake that it has to see.
#include "adapters/native/cuda/kernels/common.cuh"

KERNEL(test_momentum)
(float *w, float *v, const float *g, float rate, float momentum, long long n)
{
	FOR_ELEMENTS(i, n)
	{
		v[i] = momentum * v[i] + g[i];
		w[i] -= rate * v[i];
	}
}

BLOCK_KERNEL(test_sums)(float *sums, const float *x, long long rows, long long n)
{
	FOR_BLOCKS(row, rows)
	{
		float sum = 0.0f;

		FOR_THREADS(i, n)
		sum += x[row * n + i];
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			sums[row] = sum;
	}
}

// Takes for granted that there are as many threads as elements.
KERNEL(test_no_loop)(float *y, long long n)
{
	long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = 1.0f;
}

// Reads a neighbour's value without a barrier.
BLOCK_KERNEL(test_no_barrier)(float *y)
{
	SHARED float part[BLOCK_THREADS_MAX];

	part[threadIdx.x] = (float)threadIdx.x;
	y[threadIdx.x] = part[(threadIdx.x + 1) % blockDim.x] - part[threadIdx.x];
}

// A barrier that half of the threads do not come to.
BLOCK_KERNEL(test_half_barrier)(float *y)
{
	if (threadIdx.x % 2 == 0)
		BARRIER;
	y[threadIdx.x] = 1.0f;
}

KERNEL(test_undeclared_barrier)(float *y)
{
	BARRIER;
	y[threadIdx.x] = 1.0f;
}

#define TEST_COPY(T, suffix)                                                                       \
	KERNEL(test_round_##suffix)(T * y, const float *x, float *back, long long n)               \
	{                                                                                          \
		FOR_ELEMENTS(i, n)                                                                 \
		{                                                                                  \
			y[i] = from_float<T>(x[i]);                                                \
			back[i] = to_float(y[i]);                                                  \
		}                                                                                  \
	}
FOR_TYPES(TEST_COPY)
