// Functions of two numbers, of arrays of the same shape or with broadcasting.
#include "adapters/native/cuda/kernels/each.cuh"
#include "adapters/native/cuda/kernels/walk.cuh"

DEVICE float rectified(float x, int relu)
{
	return relu && x < 0 ? 0 : x;
}

DEVICE float combined(int code, float a, float b)
{
	return code == BROADCAST_ADD   ? a + b
	       : code == BROADCAST_SUB ? a - b
	       : code == BROADCAST_MUL ? a * b
				       : a / b;
}

// Arrays of the same layout. mask: NULL, or the output of a Relu whose gradient is asked for.
template <class T>
DEVICE void binary(T *y, const T *a, const T *b, const T *mask, long long n, int code, int relu)
{
	each_of(y, a, b, mask, n, [=](float c, float d, float kept, long long) {
		return mask && kept == 0 ? 0 : rectified(combined(code, c, d), relu);
	});
}

#define BINARY(T, suffix)                                                                          \
	KERNEL(binary_##suffix)                                                                    \
	(T * y, const T *a, const T *b, const T *mask, long long n, int code, int relu)            \
	{                                                                                          \
		binary<T>(y, a, b, mask, n, code, relu);                                           \
	}
FOR_TYPES(BINARY)

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
