// Max and average pooling of images in either layout, and their gradients. A gradient gathers from
// the windows that cover an element, so that its sum has a fixed order.
#include "adapters/native/cuda/kernels/pack.cuh"

// The work of a thread: N adjacent channels at one point of an image.
struct pool_place {
	long long image;
	int channel, point[2];
};

template <int N>
DEVICE pool_place place_of(const pool_arguments &a, const int *size, long long i)
{
	pool_place at;

	if (a.channels_last)
		at.channel = take_index(&i, a.channels / N) * N;
	at.point[1] = take_index(&i, size[1]);
	at.point[0] = take_index(&i, size[0]);
	if (!a.channels_last)
		at.channel = take_index(&i, a.channels);
	at.image = i;
	return at;
}

// The offset of an element in images of that size.
DEVICE long long offset_of(const pool_arguments &a, const int *size, const pool_place &at, int row,
			   int column)
{
	if (a.channels_last)
		return ((at.image * size[0] + row) * size[1] + column) * a.channels + at.channel;
	return ((at.image * a.channels + at.channel) * size[0] + row) * size[1] + column;
}

// The elements of window `place` on one axis that are in the image: from first up to end.
struct pool_taps {
	int origin, first, end;
};
DEVICE pool_taps taps_of(const pool_arguments &a, int axis, int place)
{
	int step = a.dilations[axis], left;
	pool_taps t;

	t.origin = place * a.strides[axis] - a.pads[axis];
	left = a.in[axis] - t.origin;
	t.first = t.origin < 0 ? (step - 1 - t.origin) / step : 0;
	t.end = left > 0 ? (left + step - 1) / step : 0;
	if (t.end > a.kernel[axis])
		t.end = a.kernel[axis];
	return t;
}

// The windows on one axis that can cover element `place`: from first up to end. With dilations, one
// of them covers it only if distance() is a multiple of the dilation.
struct pool_windows {
	int first, end;
};
DEVICE pool_windows windows_of(const pool_arguments &a, int axis, int place)
{
	int last = place + a.pads[axis], reach = (a.kernel[axis] - 1) * a.dilations[axis];
	pool_windows w;

	w.first = last > reach ? (last - reach + a.strides[axis] - 1) / a.strides[axis] : 0;
	w.end = last / a.strides[axis] + 1;
	if (w.end > a.out[axis])
		w.end = a.out[axis];
	return w;
}

// From the start of a window to element `place`.
DEVICE int distance(const pool_arguments &a, int axis, int window, int place)
{
	return place + a.pads[axis] - window * a.strides[axis];
}

// The divisor of a window on one axis: elements that ceil_mode adds never count.
DEVICE int counted(const pool_arguments &a, int axis, int window)
{
	int first = window * a.strides[axis] - a.pads[axis], end = first + a.kernel[axis];
	int low = a.include_pad ? -a.pads[axis] : 0;
	int high = a.in[axis] + (a.include_pad ? a.pads[axis + 2] : 0);

	return (end < high ? end : high) - (first > low ? first : low);
}

// taps: where in its window each maximum is, row by row; a byte each, or an int if a.wide.
template <int N>
DEVICE void store_taps(void *taps, const pool_arguments &a, long long at, const int *tap)
{
	pack<unsigned char, N> bytes;

	for (int k = 0; k < N; k++) {
		bytes.v[k] = (unsigned char)tap[k];
		if (a.wide)
			static_cast<int *>(taps)[at + k] = tap[k];
	}
	if (!a.wide)
		store_pack<N>(static_cast<unsigned char *>(taps) + at, bytes);
}

template <int N>
DEVICE void load_taps(const void *taps, const pool_arguments &a, long long at, int *tap)
{
	if (a.wide) {
		for (int k = 0; k < N; k++)
			tap[k] = static_cast<const int *>(taps)[at + k];
		return;
	}
	pack<unsigned char, N> bytes = load_pack<N>(static_cast<const unsigned char *>(taps) + at);
	for (int k = 0; k < N; k++)
		tap[k] = bytes.v[k];
}

// The first of the largest elements wins; the last NaN if there is one.
template <class T, int N>
DEVICE void max_pool(T *y, void *taps, const T *x, const pool_arguments &a, long long n)
{
	FOR_ELEMENTS(i, n) {
		pool_place at = place_of<N>(a, a.out, i);
		pool_taps rows = taps_of(a, 0, at.point[0]), columns = taps_of(a, 1, at.point[1]);
		pack<T, N> best = {};
		int tap[N];

		for (int k = 0; k < N; k++)
			tap[k] = -1;
		for (int r = rows.first; r < rows.end; r++) {
			for (int s = columns.first; s < columns.end; s++) {
				pack<T, N> v = load_pack<N>(
					x + offset_of(a, a.in, at, rows.origin + r * a.dilations[0],
						      columns.origin + s * a.dilations[1]));

				for (int k = 0; k < N; k++) {
					float value = to_float(v.v[k]);

					if (tap[k] < 0 || value > to_float(best.v[k]) ||
					    value != value) {
						best.v[k] = v.v[k];
						tap[k] = r * a.kernel[1] + s;
					}
				}
			}
		}
		long long to = offset_of(a, a.out, at, at.point[0], at.point[1]);
		store_pack<N>(y + to, best);
		if (taps)
			store_taps<N>(taps, a, to, tap);
	}
}

template <class T, int N>
DEVICE void max_pool_grad(T *dx, const T *dy, const void *taps, const pool_arguments &a,
			  long long n)
{
	FOR_ELEMENTS(i, n) {
		pool_place at = place_of<N>(a, a.in, i);
		pool_windows rows = windows_of(a, 0, at.point[0]);
		pool_windows columns = windows_of(a, 1, at.point[1]);
		float sum[N] = {};
		pack<T, N> result;

		for (int h = rows.first; h < rows.end; h++) {
			int down = distance(a, 0, h, at.point[0]);

			for (int w = columns.first; w < columns.end; w++) {
				int right = distance(a, 1, w, at.point[1]), tap[N];

				if (down % a.dilations[0] != 0 || right % a.dilations[1] != 0)
					continue;
				long long from = offset_of(a, a.out, at, h, w);
				int own = down / a.dilations[0] * a.kernel[1] +
					  right / a.dilations[1];
				pack<T, N> d = load_pack<N>(dy + from);

				load_taps<N>(taps, a, from, tap);
				for (int k = 0; k < N; k++)
					sum[k] += tap[k] == own ? to_float(d.v[k]) : 0.0f;
			}
		}
		for (int k = 0; k < N; k++)
			result.v[k] = from_float<T>(sum[k]);
		store_pack<N>(dx + offset_of(a, a.in, at, at.point[0], at.point[1]), result);
	}
}

template <class T, int N>
DEVICE void average_pool(T *y, const T *x, const pool_arguments &a, long long n)
{
	FOR_ELEMENTS(i, n) {
		pool_place at = place_of<N>(a, a.out, i);
		pool_taps rows = taps_of(a, 0, at.point[0]), columns = taps_of(a, 1, at.point[1]);
		float sum[N] = {}, divisor = (float)counted(a, 0, at.point[0]) *
					     (float)counted(a, 1, at.point[1]);
		pack<T, N> result;

		for (int r = rows.first; r < rows.end; r++) {
			for (int s = columns.first; s < columns.end; s++) {
				pack<T, N> v = load_pack<N>(x + offset_of(a, a.in, at,
									  rows.origin + r,
									  columns.origin + s));

				for (int k = 0; k < N; k++)
					sum[k] += to_float(v.v[k]);
			}
		}
		for (int k = 0; k < N; k++)
			result.v[k] = from_float<T>(sum[k] / divisor);
		store_pack<N>(y + offset_of(a, a.out, at, at.point[0], at.point[1]), result);
	}
}

template <class T, int N>
DEVICE void average_pool_grad(T *dx, const T *dy, const pool_arguments &a, long long n)
{
	FOR_ELEMENTS(i, n) {
		pool_place at = place_of<N>(a, a.in, i);
		pool_windows rows = windows_of(a, 0, at.point[0]);
		pool_windows columns = windows_of(a, 1, at.point[1]);
		float sum[N] = {};
		pack<T, N> result;

		for (int h = rows.first; h < rows.end; h++) {
			for (int w = columns.first; w < columns.end; w++) {
				float divisor = (float)counted(a, 0, h) * (float)counted(a, 1, w);
				pack<T, N> d = load_pack<N>(dy + offset_of(a, a.out, at, h, w));

				for (int k = 0; k < N; k++)
					sum[k] += to_float(d.v[k]) / divisor;
			}
		}
		for (int k = 0; k < N; k++)
			result.v[k] = from_float<T>(sum[k]);
		store_pack<N>(dx + offset_of(a, a.in, at, at.point[0], at.point[1]), result);
	}
}

// n: elements of the result, or packs of them if a.packed.
#define MAX_POOL(T, suffix)                                                                        \
	KERNEL(max_pool_##suffix)                                                                  \
	(T *y, void *taps, const T *x, pool_arguments a, long long n)                             \
	{                                                                                          \
		if (a.packed)                                                                      \
			max_pool<T, packed<T>::COUNT>(y, taps, x, a, n);                           \
		else                                                                               \
			max_pool<T, 1>(y, taps, x, a, n);                                          \
	}
FOR_TYPES(MAX_POOL)

#define MAX_POOL_GRAD(T, suffix)                                                                   \
	KERNEL(max_pool_grad_##suffix)                                                             \
	(T *dx, const T *dy, const void *taps, pool_arguments a, long long n)                     \
	{                                                                                          \
		if (a.packed)                                                                      \
			max_pool_grad<T, packed<T>::COUNT>(dx, dy, taps, a, n);                    \
		else                                                                               \
			max_pool_grad<T, 1>(dx, dy, taps, a, n);                                   \
	}
FOR_TYPES(MAX_POOL_GRAD)

#define AVERAGE_POOL(T, suffix)                                                                    \
	KERNEL(average_pool_##suffix)(T *y, const T *x, pool_arguments a, long long n)            \
	{                                                                                          \
		if (a.packed)                                                                      \
			average_pool<T, packed<T>::COUNT>(y, x, a, n);                             \
		else                                                                               \
			average_pool<T, 1>(y, x, a, n);                                            \
	}
FOR_TYPES(AVERAGE_POOL)

#define AVERAGE_POOL_GRAD(T, suffix)                                                               \
	KERNEL(average_pool_grad_##suffix)(T *dx, const T *dy, pool_arguments a, long long n)     \
	{                                                                                          \
		if (a.packed)                                                                      \
			average_pool_grad<T, packed<T>::COUNT>(dx, dy, a, n);                      \
		else                                                                               \
			average_pool_grad<T, 1>(dx, dy, a, n);                                     \
	}
FOR_TYPES(AVERAGE_POOL_GRAD)
