// Several adjacent values that a thread loads and stores at once, and divisions of indices.
#ifndef PRONY_KERNELS_PACK_CUH
#define PRONY_KERNELS_PACK_CUH

#include "adapters/native/cuda/kernels/common.cuh"

// Its address is a multiple of its size.
template <class T, int N> struct alignas(sizeof(T) * N) pack {
	T v[N];
};

// Elements of a pack of PACK_BYTES.
template <class T> struct packed {
	enum { COUNT = PACK_BYTES / (int)sizeof(T) };
};

template <int N, class T> DEVICE pack<T, N> load_pack(const T *from)
{
	return *reinterpret_cast<const pack<T, N> *>(from);
}
template <int N, class T> DEVICE void store_pack(T *to, const pack<T, N> &values)
{
	*reinterpret_cast<pack<T, N> *>(to) = values;
}

// N adjacent floats, 16 bytes at a time if N allows it; then their address is a multiple of 16.
template <int N> DEVICE void load_floats(float *to, const float *from)
{
	const int count = N % 4 == 0 ? 4 : 1;

	for (int i = 0; i < N; i += count) {
		pack<float, count> four = load_pack<count>(from + i);

		for (int k = 0; k < count; k++)
			to[i + k] = four.v[k];
	}
}

// Divides *i, which is not negative; returns the remainder. 32 bits where they suffice: a GPU has
// no instruction for divisions, and those of 64 bits take several times as long.
DEVICE int take_index(long long *i, int by)
{
	long long whole = *i;

	if (whole <= 0xffffffffll) {
		*i = (unsigned)whole / (unsigned)by;
		return (int)((unsigned)whole % (unsigned)by);
	}
	*i = whole / by;
	return (int)(whole % by);
}

#endif
