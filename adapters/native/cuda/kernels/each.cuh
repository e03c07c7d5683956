// Element-wise functions of contiguous arrays: 16 bytes at a time, as long as the arrays begin at a
// multiple of 16 bytes.
#ifndef PRONY_KERNELS_EACH_CUH
#define PRONY_KERNELS_EACH_CUH

#include "adapters/native/cuda/kernels/pack.cuh"

template <class T>
DEVICE long long whole_packs(const void *a, const void *b, const void *c, const void *d,
			     long long n)
{
	size_t all = (size_t)a | (size_t)b | (size_t)c | (size_t)d;

	return all % PACK_BYTES == 0 ? n / packed<T>::COUNT : 0;
}

// y[i] = f(a[i], b[i], c[i], i), where b and c may be NULL, and y may be any of the others.
template <class T, class F>
DEVICE void each_of(T *y, const T *a, const T *b, const T *c, long long n, F f)
{
	const int count = packed<T>::COUNT;
	long long packs = whole_packs<T>(y, a, b, c, n);

	FOR_ELEMENTS (i, packs) {
		long long at = i * count;
		pack<T, count> first = load_pack<count>(a + at);
		pack<T, count> second = b ? load_pack<count>(b + at) : first;
		pack<T, count> third = c ? load_pack<count>(c + at) : first;

#pragma unroll
		for (int k = 0; k < count; k++)
			first.v[k] = from_float<T>(f(to_float(first.v[k]), to_float(second.v[k]),
						     to_float(third.v[k]), at + k));
		store_pack<count>(y + at, first);
	}
	FOR_ELEMENTS (i, n - packs * count) {
		long long at = packs * count + i;

		y[at] = from_float<T>(f(to_float(a[at]), to_float(b ? b[at] : a[at]),
					to_float(c ? c[at] : a[at]), at));
	}
}

// y[i] = f(x[i], i)
template <class T, class F> DEVICE void each(T *y, const T *x, long long n, F f)
{
	const T *none = NULL;

	each_of(y, x, none, none, n, [=](float a, float, float, long long i) { return f(a, i); });
}

// y[i] = f(a[i], b[i])
template <class T, class F> DEVICE void each_pair(T *y, const T *a, const T *b, long long n, F f)
{
	const T *none = NULL;

	each_of(y, a, b, none, n, [=](float c, float d, float, long long) { return f(c, d); });
}

#endif
