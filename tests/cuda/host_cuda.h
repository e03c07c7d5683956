/* CUDA C++ for the host's compiler, as far as the kernels of adapters/native/cuda/kernels use it.
 * The fake driver runs the threads of a block one after another, in fibers where they meet at
 * barriers, all on one thread of the process. Included before a kernel's source (kernel_table.py);
 * C++ only. */
#ifndef PRONY_TESTS_CUDA_HOST_CUDA_H
#define PRONY_TESTS_CUDA_HOST_CUDA_H

#define HOST_CUDA 1

/* kernel_table.py reads the names of kernels in preprocessed source. */
#ifdef KERNEL_NAMES
#define KERNEL(name) plain_kernel name
#define BLOCK_KERNEL(name) block_kernel name
#else
#define KERNEL(name) extern "C" void name
#define BLOCK_KERNEL(name) extern "C" void name
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

#include "tests/cuda/fake_driver.h"

#define __device__
#define __restrict__ __restrict
#define __forceinline__ inline
#define DEVICE static inline
#define DEVICE_CASE inline
/* One copy in the process, not one a block: blocks run one after another. The driver fills it with
 * NaN before each block; thread_local gathers all such variables in one place (fake_kernels.c). */
#define SHARED static thread_local
#define BARRIER host_barrier(__FILE__, __LINE__)
enum { WARP = 1 };

struct host_dim3 {
	unsigned x, y, z;
};
extern "C" struct host_dim3 threadIdx, blockIdx, blockDim, gridDim;
extern "C" void host_barrier(const char *file, int line);

/* Never called: a warp of one thread exchanges nothing. */
static inline float warp_exchange(float value, int)
{
	return value;
}

/* IEEE binary16 and bfloat16 as storage. They have no arithmetic, as kernels compute in fp32. */
struct half {
	uint16_t bits;
};
struct bf16 {
	uint16_t bits;
};

static inline uint32_t host_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}
static inline float host_float(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline float __bfloat162float(bf16 x)
{
	return host_float((uint32_t)x.bits << 16);
}
static inline bf16 __float2bfloat16_rn(float x)
{
	uint32_t bits = host_bits(x);

	if (x != x)
		return bf16{0x7fff};
	return bf16{(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
static inline float __half2float(half x)
{
	uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16;
	uint32_t exponent = x.bits >> 10 & 0x1fu, fraction = x.bits & 0x3ffu;
	float value;

	if (exponent == 0) { /* zero or subnormal: multiples of 2^-24 */
		value = (float)fraction * 0x1p-24f;
		return sign != 0 ? -value : value;
	}
	if (exponent == 31) /* infinity or NaN */
		return host_float(sign | 0x7f800000u | fraction << 13);
	return host_float(sign | (exponent + 112) << 23 | fraction << 13);
}
static inline half __float2half_rn(float x)
{
	uint32_t bits = host_bits(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;

	if (size > 0x7f800000u)
		return half{0x7fff};
	if (size >= 0x477ff000u) /* 65520: halfway from the largest number to 65536 */
		return half{(uint16_t)(sign | 0x7c00u)};
	/* Below 2^-14 half has multiples of 2^-24; 0.5 has that unit in the last place of float. */
	if (size < 0x38800000u)
		return half{(uint16_t)(sign | (host_bits(host_float(size) + 0.5f) - 0x3f000000u))};
	size += 0xfffu + (size >> 13 & 1u);
	return half{(uint16_t)(sign | ((size >> 13) - (112u << 10)))};
}

/* The row of a kernel in the driver's table, from its parameters. */
template <auto kernel> struct host_kernel;
template <class... A, void (*kernel)(A...)> struct host_kernel<kernel> {
	static constexpr struct fake_argument arguments[] = {
		{sizeof(A), std::is_pointer<A>::value}...};

	template <size_t... I> static void spread(void **values, std::index_sequence<I...>)
	{
		kernel(*static_cast<std::remove_const_t<A> *>(values[I])...);
	}
	static void call(void **values)
	{
		spread(values, std::index_sequence_for<A...>());
	}
	static constexpr struct fake_kernel row(const char *name, bool block)
	{
		return {name, block, (int)sizeof...(A), arguments, call};
	}
};

#endif
