// What all kernels share. nvcc compiles them for GPUs; the tests compile them for the host, where
// tests/cuda/host_cuda.h stands for CUDA's own headers.
//
// KERNEL(name)(arguments): a kernel whose threads share nothing. It loops with a grid stride
// (FOR_ELEMENTS), so that any grid is right.
// BLOCK_KERNEL(name)(arguments): a kernel whose threads meet at barriers. It is right for any grid
// and for any power of two of threads from 32 to BLOCK_THREADS_MAX.
#ifndef PRONY_KERNELS_COMMON_CUH
#define PRONY_KERNELS_COMMON_CUH

#include "adapters/native/cuda/kernels/arguments.h"

#ifndef HOST_CUDA
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 bf16;

#define KERNEL(name) extern "C" __global__ void name
#define BLOCK_KERNEL(name) extern "C" __global__ void name
#define BARRIER __syncthreads()
#define SHARED __shared__
#define DEVICE static __device__ __forceinline__
// Of a specialisation of a template, which takes the linkage of the template.
#define DEVICE_CASE __device__ __forceinline__
enum { WARP = 32 };

DEVICE float warp_exchange(float value, int lanes)
{
	return __shfl_xor_sync(0xffffffffu, value, lanes);
}
#endif

enum { BLOCK_THREADS_MAX = 256 };

// One MACRO(type, suffix) for each type of activations:
//	#define RELU(T, suffix) KERNEL(relu_##suffix)(T *y, const T *x, long long n) { relu<T>(y, x, n); }
//	FOR_TYPES(RELU)
#define FOR_TYPES(MACRO) MACRO(float, f32) MACRO(half, f16) MACRO(bf16, bf16)

// All elements below n, over the threads of the grid.
#define FOR_ELEMENTS(i, n)                                                                         \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n);              \
	     i += (long long)gridDim.x * blockDim.x)
// All rows below n, over the blocks of the grid; the same for all threads of a block.
#define FOR_BLOCKS(row, n) for (long long row = blockIdx.x; row < (n); row += gridDim.x)
// All elements below n, over the threads of the block.
#define FOR_THREADS(i, n) for (long long i = threadIdx.x; i < (n); i += blockDim.x)

DEVICE float to_float(float x)
{
	return x;
}
DEVICE float to_float(half x)
{
	return __half2float(x);
}
DEVICE float to_float(bf16 x)
{
	return __bfloat162float(x);
}

// Rounded to nearest, ties to even.
template <class T> DEVICE T from_float(float x);
template <> DEVICE_CASE float from_float<float>(float x)
{
	return x;
}
template <> DEVICE_CASE half from_float<half>(float x)
{
	return __float2half_rn(x);
}
template <> DEVICE_CASE bf16 from_float<bf16>(float x)
{
	return __float2bfloat16_rn(x);
}

struct add_values {
	__device__ float operator()(float a, float b) const
	{
		return a + b;
	}
};
// The larger; NaN if one is NaN.
struct larger_value {
	__device__ float operator()(float a, float b) const
	{
		return a > b || a != a ? a : b;
	}
};

// Combines the values of the block's threads, in an order that depends on their number alone. All
// threads of the block call it; each receives the result.
template <class F> DEVICE float block_combine(float value, F combine)
{
	SHARED float part[BLOCK_THREADS_MAX / WARP];
	SHARED float whole;

	for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
		value = combine(value, warp_exchange(value, lanes));
	if (threadIdx.x % WARP == 0)
		part[threadIdx.x / WARP] = value;
	BARRIER;
	if (threadIdx.x == 0) {
		value = part[0];
		for (unsigned warp = 1; warp < blockDim.x / WARP; warp++)
			value = combine(value, part[warp]);
		whole = value;
	}
	BARRIER;
	return whole;
}
DEVICE float block_sum(float value)
{
	return block_combine(value, add_values());
}
DEVICE float block_max(float value)
{
	return block_combine(value, larger_value());
}

#endif
