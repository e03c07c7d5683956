// Local response normalisation across channels, and its gradient, in either layout: with
// s[c] = bias + scale * the sum of squares of x from c - before to c + after, y = x s^-beta.
//
// A thread computes a run of channels at one point, so that neighbours share what they read and
// their powers. Windows beyond LRN_HALO channels on a side have a loop for each channel.
#include "adapters/native/cuda/kernels/pack.cuh"

DEVICE float lrn_power(float s, float beta)
{
	if (beta == 0.75f) {
		float root = 1.0f / sqrtf(s);

		return root * sqrtf(root);
	}
	return powf(s, -beta);
}

// The first element of the point of item i, and the first channel of its run.
DEVICE long long lrn_point(const lrn_arguments &a, int run, long long i, int *channel)
{
	int runs = (a.channels + run - 1) / run;

	if (a.inner == 1) {
		*channel = take_index(&i, runs) * run;
		return i * a.channels;
	}
	int place = take_index(&i, a.inner);
	*channel = take_index(&i, runs) * run;
	return i * a.channels * a.inner + place;
}

// values[LEFT + k] = channel first + k of the point, from k = -LEFT up to RUN + LEFT; 0 outside.
// PACKED: channels are adjacent and a run is a pack.
template <int RUN, int LEFT, bool PACKED, class T>
DEVICE void lrn_load(float *values, const T *point, const lrn_arguments &a, int first)
{
	if constexpr (PACKED) {
		for (int side = -1; side <= 1; side++) {
			int start = first + side * RUN;
			bool inside = start >= 0 && start < a.channels;
			pack<T, RUN> v = load_pack<RUN>(point + (inside ? start : first));

			for (int k = 0; k < RUN; k++) {
				int to = LEFT + side * RUN + k;

				if (to >= 0 && to < RUN + 2 * LEFT)
					values[to] = inside ? to_float(v.v[k]) : 0.0f;
			}
		}
	} else {
		for (int k = -LEFT; k < RUN + LEFT; k++) {
			int c = first + k;

			values[LEFT + k] = c >= 0 && c < a.channels
						   ? to_float(point[(long long)c * a.inner])
						   : 0.0f;
		}
	}
}

template <int RUN, bool PACKED, class T>
DEVICE void lrn_store(T *point, const lrn_arguments &a, int first, const float *values)
{
	if constexpr (PACKED) {
		pack<T, RUN> v;

		for (int k = 0; k < RUN; k++)
			v.v[k] = from_float<T>(values[k]);
		store_pack<RUN>(point + first, v);
	} else {
		for (int k = 0; k < RUN; k++) {
			if (first + k < a.channels)
				point[(long long)(first + k) * a.inner] = from_float<T>(values[k]);
		}
	}
}

// s of the channel whose x is at x[0]; both sides have LRN_HALO more.
DEVICE float lrn_scale(const lrn_arguments &a, const float *x)
{
	float sum = 0.0f;

	for (int k = -LRN_HALO; k <= LRN_HALO; k++)
		sum += k >= -a.before && k <= a.after ? x[k] * x[k] : 0.0f;
	return a.bias + a.scale * sum;
}

template <class T, int RUN, bool PACKED>
DEVICE void lrn(T *y, const T *x, const lrn_arguments &a, long long n)
{
	FOR_ELEMENTS (i, n) {
		float in[RUN + 2 * LRN_HALO], out[RUN];
		int first;
		long long point = lrn_point(a, RUN, i, &first);

		lrn_load<RUN, LRN_HALO, PACKED>(in, x + point, a, first);
		for (int k = 0; k < RUN; k++) {
			const float *own = &in[LRN_HALO + k];

			out[k] = *own * lrn_power(lrn_scale(a, own), a.beta);
		}
		lrn_store<RUN, PACKED>(y + point, a, first, out);
	}
}

// x[c] is part of s[k] for k from c - after to c + before: dx[c] = dy[c] s[c]^-beta - slope x[c]
// the sum over those k of dy[k] x[k] s[k]^(-beta - 1).
template <class T, int RUN, bool PACKED>
DEVICE void lrn_grad(T *dx, const T *dy, const T *x, const lrn_arguments &a, long long n)
{
	FOR_ELEMENTS (i, n) {
		float in[RUN + 4 * LRN_HALO], slope[RUN + 2 * LRN_HALO], out[RUN];
		float term[RUN + 2 * LRN_HALO];
		int first;
		long long point = lrn_point(a, RUN, i, &first);

		lrn_load<RUN, 2 * LRN_HALO, PACKED>(in, x + point, a, first);
		lrn_load<RUN, LRN_HALO, PACKED>(slope, dy + point, a, first);
		for (int k = 0; k < RUN + 2 * LRN_HALO; k++) {
			const float *own = &in[LRN_HALO + k];
			float s = lrn_scale(a, own), power = lrn_power(s, a.beta);

			if (k >= LRN_HALO && k < RUN + LRN_HALO)
				out[k - LRN_HALO] = slope[k] * power;
			term[k] = slope[k] * *own * power / s;
		}
		for (int k = 0; k < RUN; k++) {
			float sum = 0.0f;

			for (int j = -LRN_HALO; j <= LRN_HALO; j++)
				sum += j >= -a.after && j <= a.before ? term[LRN_HALO + k + j]
								      : 0.0f;
			out[k] -= a.slope * in[2 * LRN_HALO + k] * sum;
		}
		lrn_store<RUN, PACKED>(dx + point, a, first, out);
	}
}

// Windows of any size.
template <class T> DEVICE float lrn_wide_scale(const lrn_arguments &a, const T *point, int c)
{
	int first = c < a.before ? 0 : c - a.before;
	int end = a.channels - c <= a.after ? a.channels : c + a.after + 1;
	float sum = 0.0f;

	for (int k = first; k < end; k++) {
		float value = to_float(point[(long long)k * a.inner]);

		sum += value * value;
	}
	return a.bias + a.scale * sum;
}

template <class T> DEVICE void lrn_wide(T *y, const T *x, const lrn_arguments &a, long long n)
{
	FOR_ELEMENTS (i, n) {
		int c;
		long long point = lrn_point(a, 1, i, &c), at = point + (long long)c * a.inner;

		y[at] = from_float<T>(to_float(x[at]) *
				      lrn_power(lrn_wide_scale(a, x + point, c), a.beta));
	}
}

template <class T>
DEVICE void lrn_wide_grad(T *dx, const T *dy, const T *x, const lrn_arguments &a, long long n)
{
	FOR_ELEMENTS (i, n) {
		int c;
		long long point = lrn_point(a, 1, i, &c), at = point + (long long)c * a.inner;
		int first = c < a.after ? 0 : c - a.after;
		int end = a.channels - c <= a.before ? a.channels : c + a.before + 1;
		float sum = 0.0f, own = 0.0f;

		for (int k = first; k < end; k++) {
			long long from = point + (long long)k * a.inner;
			float s = lrn_wide_scale(a, x + point, k);
			float term = to_float(dy[from]) * lrn_power(s, a.beta);

			if (k == c)
				own = term;
			sum += term * to_float(x[from]) / s;
		}
		dx[at] = from_float<T>(own - a.slope * to_float(x[at]) * sum);
	}
}

// n: points times runs of channels (LRN_RUN, a pack, or 1 if a.wide). y is not x, and dx is not dy: threads
// read beside what they write.
#define LRN(T, suffix)                                                                             \
	KERNEL(lrn_##suffix)(T *y, const T *x, lrn_arguments a, long long n)                       \
	{                                                                                          \
		if (a.wide)                                                                        \
			lrn_wide<T>(y, x, a, n);                                                   \
		else if (a.packed)                                                                 \
			lrn<T, packed<T>::COUNT, true>(y, x, a, n);                                \
		else                                                                               \
			lrn<T, LRN_RUN, false>(y, x, a, n);                                        \
	}
FOR_TYPES(LRN)

#define LRN_GRAD(T, suffix)                                                                        \
	KERNEL(lrn_grad_##suffix)(T *dx, const T *dy, const T *x, lrn_arguments a, long long n)    \
	{                                                                                          \
		if (a.wide)                                                                        \
			lrn_wide_grad<T>(dx, dy, x, a, n);                                         \
		else if (a.packed)                                                                 \
			lrn_grad<T, packed<T>::COUNT, true>(dx, dy, x, a, n);                      \
		else                                                                               \
			lrn_grad<T, LRN_RUN, false>(dx, dy, x, a, n);                              \
	}
FOR_TYPES(LRN_GRAD)
