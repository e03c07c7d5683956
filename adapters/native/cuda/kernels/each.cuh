// Element-wise functions of contiguous arrays: 16 bytes at a time, as long as the arrays begin at a
// multiple of 16 bytes.
#ifndef PRONY_KERNELS_EACH_CUH
#define PRONY_KERNELS_EACH_CUH

#include "adapters/native/cuda/kernels/common.cuh"

template <class T> struct alignas(16) pack {
	enum { COUNT = 16 / sizeof(T) };
	T values[COUNT];
};

template <class T>
DEVICE long long whole_packs(const void *a, const void *b, const void *c, long long n)
{
	return ((size_t)a | (size_t)b | (size_t)c) % 16 == 0 ? n / pack<T>::COUNT : 0;
}

// y[i] = f(x[i], i); y may be x.
template <class T, class F> DEVICE void each(T *y, const T *x, long long n, F f)
{
	const int count = pack<T>::COUNT;
	long long packs = whole_packs<T>(y, x, x, n);

	FOR_ELEMENTS (i, packs) {
		pack<T> in = ((const pack<T> *)x)[i];

#pragma unroll
		for (int k = 0; k < count; k++)
			in.values[k] = from_float<T>(f(to_float(in.values[k]), i * count + k));
		((pack<T> *)y)[i] = in;
	}
	FOR_ELEMENTS (i, n - packs * count)
		y[packs * count + i] =
			from_float<T>(f(to_float(x[packs * count + i]), packs * count + i));
}

// y[i] = f(a[i], b[i]); y may be a or b.
template <class T, class F> DEVICE void each_pair(T *y, const T *a, const T *b, long long n, F f)
{
	const int count = pack<T>::COUNT;
	long long packs = whole_packs<T>(y, a, b, n);

	FOR_ELEMENTS (i, packs) {
		pack<T> first = ((const pack<T> *)a)[i], second = ((const pack<T> *)b)[i];

#pragma unroll
		for (int k = 0; k < count; k++)
			first.values[k] = from_float<T>(
				f(to_float(first.values[k]), to_float(second.values[k])));
		((pack<T> *)y)[i] = first;
	}
	FOR_ELEMENTS (i, n - packs * count) {
		long long at = packs * count + i;

		y[at] = from_float<T>(f(to_float(a[at]), to_float(b[at])));
	}
}

#endif
