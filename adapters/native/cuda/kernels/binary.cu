// Functions of two numbers, of arrays of the same shape or with broadcasting.
#include "adapters/native/cuda/kernels/each.cuh"
#include "adapters/native/cuda/kernels/walk.cuh"

DEVICE float rectified(float x, int relu)
{
	return relu && x < 0 ? 0 : x;
}

// Arrays of the same layout.
template <class T> DEVICE void binary(T *y, const T *a, const T *b, long long n, int code, int relu)
{
	switch (code) {
	case BROADCAST_ADD:
		return each_pair(y, a, b, n,
				 [=](float c, float d) { return rectified(c + d, relu); });
	case BROADCAST_SUB:
		return each_pair(y, a, b, n,
				 [=](float c, float d) { return rectified(c - d, relu); });
	case BROADCAST_MUL:
		return each_pair(y, a, b, n,
				 [=](float c, float d) { return rectified(c * d, relu); });
	case BROADCAST_DIV:
		return each_pair(y, a, b, n,
				 [=](float c, float d) { return rectified(c / d, relu); });
	}
}

#define BINARY(T, suffix)                                                                          \
	KERNEL(binary_##suffix)                                                                    \
	(T * y, const T *a, const T *b, long long n, int code, int relu)                           \
	{                                                                                          \
		binary<T>(y, a, b, n, code, relu);                                                 \
	}
FOR_TYPES(BINARY)

DEVICE float combined(int code, float a, float b)
{
	return code == BROADCAST_ADD   ? a + b
	       : code == BROADCAST_SUB ? a - b
	       : code == BROADCAST_MUL ? a * b
				       : a / b;
}

template <class T>
DEVICE void broadcast(T *y, const T *a, const T *b, long long n, const struct cuda_broadcast &w)
{
	FOR_ELEMENTS (i, n) {
		float value = to_float(a[place((unsigned)i, w.a)]);

		if (w.code == BROADCAST_SCALE)
			value *= w.factor;
		else
			value = combined(w.code, value, to_float(b[place((unsigned)i, w.b)]));
		y[i] = from_float<T>(rectified(value, w.relu));
	}
}

#define BROADCAST(T, suffix)                                                                       \
	KERNEL(broadcast_##suffix)                                                                 \
	(T * y, const T *a, const T *b, long long n, struct cuda_broadcast w)                      \
	{                                                                                          \
		broadcast<T>(y, a, b, n, w);                                                       \
	}
FOR_TYPES(BROADCAST)
