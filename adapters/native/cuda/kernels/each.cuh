// Element-wise functions of contiguous arrays: 16 bytes at a time, as long as the arrays begin at a
// multiple of 16 bytes.
#ifndef PRONY_KERNELS_EACH_CUH
#define PRONY_KERNELS_EACH_CUH

#include "adapters/native/cuda/kernels/pack.cuh"

template <class T>
DEVICE long long whole_packs(const void *a, const void *b, const void *c, long long n)
{
	return ((size_t)a | (size_t)b | (size_t)c) % PACK_BYTES == 0 ? n / packed<T>::COUNT : 0;
}

// y[i] = f(x[i], i); y may be x.
template <class T, class F> DEVICE void each(T *y, const T *x, long long n, F f)
{
	const int count = packed<T>::COUNT;
	long long packs = whole_packs<T>(y, x, x, n);

	FOR_ELEMENTS (i, packs) {
		pack<T, count> in = load_pack<count>(x + i * count);

#pragma unroll
		for (int k = 0; k < count; k++)
			in.v[k] = from_float<T>(f(to_float(in.v[k]), i * count + k));
		store_pack<count>(y + i * count, in);
	}
	FOR_ELEMENTS (i, n - packs * count)
		y[packs * count + i] =
			from_float<T>(f(to_float(x[packs * count + i]), packs * count + i));
}

// y[i] = f(a[i], b[i]); y may be a or b.
template <class T, class F> DEVICE void each_pair(T *y, const T *a, const T *b, long long n, F f)
{
	const int count = packed<T>::COUNT;
	long long packs = whole_packs<T>(y, a, b, n);

	FOR_ELEMENTS (i, packs) {
		pack<T, count> first = load_pack<count>(a + i * count);
		pack<T, count> second = load_pack<count>(b + i * count);

#pragma unroll
		for (int k = 0; k < count; k++)
			first.v[k] = from_float<T>(f(to_float(first.v[k]), to_float(second.v[k])));
		store_pack<count>(y + i * count, first);
	}
	FOR_ELEMENTS (i, n - packs * count) {
		long long at = packs * count + i;

		y[at] = from_float<T>(f(to_float(a[at]), to_float(b[at])));
	}
}

#endif
