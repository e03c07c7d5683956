// Batch normalisation with an optional max(0, y), and its gradient.
//
// x is a matrix of `rows` rows with `inner` adjacent columns for each channel: one with channels
// last, a plane otherwise. A reduction over a channel has two stages: each block reduces the share
// of `chunk`, then `finish` combines the chunks in their order. All threads go through the matrix
// from the front to the back; the kernels afterwards go from the back to the front, to find its end
// in the cache.
#include "adapters/native/cuda/kernels/channels.cuh"

// count numbers with that mean, whose squared differences from it have the sum `squares`.
struct moments {
	float count, mean, squares;
};

// Chan et al. 1979, "Updating formulae and a pairwise algorithm for computing sample variances".
DEVICE moments merge(const moments &a, const moments &b)
{
	float count = a.count + b.count, difference = b.mean - a.mean;
	moments m = {count, a.mean, a.squares};

	if (a.count == 0.0f)
		return b;
	m.mean += difference * (b.count / count);
	m.squares += b.squares + difference * difference * (a.count * (b.count / count));
	return m;
}

// The moments of a share; means are distances from `origin`, the channel's first number. Sums are
// over differences from the thread's first number. So a large mean does not cancel.
template <class T, int N>
DEVICE void share_moments(const T *x, const norm_arguments &a, const norm_share &s, float *origin,
			  moments *m)
{
	float start[N] = {}, sum[N] = {}, squares[N] = {}, count = 0.0f;

	if (s.first < s.units) {
		pack<T, N> v = load_pack<N>(x + unit_offset<N>(a, s.channel, s.first));

		for (int k = 0; k < N; k++)
			start[k] = to_float(v.v[k]);
		count = 1.0f;
	}
#pragma unroll 4
	for (long long unit = s.first + s.step; unit < s.units; unit += s.step) {
		pack<T, N> v = load_pack<N>(x + unit_offset<N>(a, s.channel, unit));

		for (int k = 0; k < N; k++) {
			float d = to_float(v.v[k]) - start[k];

			sum[k] += d;
			squares[k] += d * d;
		}
		count += 1.0f;
	}
	for (int k = 0; k < N; k++) {
		float shift = count > 0.0f ? sum[k] / count : 0.0f;
		float rest = squares[k] - sum[k] * shift;

		if (!s.idle)
			origin[k] = to_float(x[a.inner == 1 ? s.channel + k
							    : (long long)s.channel * a.inner]);
		m[k].count = count;
		m[k].mean = start[k] - origin[k] + shift;
		m[k].squares = rest < 0.0f ? 0.0f : rest;
	}
}

// partial: [chunk][count, mean - origin, squares][channel], then [channel] of origins
template <class T, int N>
DEVICE void norm_moments(float *partial, const T *x, const norm_arguments &a)
{
	SHARED float count[BLOCK_THREADS_MAX], mean[N][BLOCK_THREADS_MAX];
	SHARED float squares[N][BLOCK_THREADS_MAX];
	int me = (int)threadIdx.x, kept = a.inner == 1 ? N : 1;

	FOR_BLOCKS (block, (long long)a.tiles * a.chunks) {
		norm_share s = share_of<N>(a, block);
		float origin[N] = {};
		moments m[N];

		share_moments<T, N>(x, a, s, origin, m);
		for (int k = 1; k < N && kept == 1; k++)
			m[0] = merge(m[0], m[k]);
		BARRIER;
		for (int half = s.rows / 2;; half /= 2) {
			count[me] = m[0].count;
			for (int k = 0; k < N; k++) {
				mean[k][me] = m[k].mean;
				squares[k][me] = m[k].squares;
			}
			BARRIER;
			if (half == 0)
				break;
			for (int k = 0; k < N && s.row < half; k++) {
				int other = me + half * a.lanes;
				moments theirs = {count[other], mean[k][other], squares[k][other]};

				m[k] = merge(m[k], theirs);
			}
			BARRIER;
		}
		float *to = partial + block / a.tiles * 3 * a.channels + s.channel;
		float *origins = partial + (long long)a.chunks * 3 * a.channels + s.channel;
		for (int k = 0; k < N; k++) {
			if (k >= kept || s.row != 0 || s.idle)
				continue;
			to[k] = m[k].count;
			to[a.channels + k] = m[k].mean;
			to[2 * a.channels + k] = m[k].squares;
			if (block < a.tiles)
				origins[k] = origin[k];
		}
	}
}

// The second stage of a reduction: NORM_FINISH_CHANNELS channels a block, the other threads share
// the chunks.
DEVICE void norm_finish(float *mean, float *variance, float *running_mean, float *running_variance,
			const float *partial, const norm_arguments &a)
{
	SHARED float part[3][BLOCK_THREADS_MAX];
	int me = (int)threadIdx.x, row = me / NORM_FINISH_CHANNELS;
	int rows = (int)blockDim.x / NORM_FINISH_CHANNELS;

	FOR_BLOCKS (block, (a.channels + NORM_FINISH_CHANNELS - 1) / NORM_FINISH_CHANNELS) {
		int c = (int)block * NORM_FINISH_CHANNELS + me % NORM_FINISH_CHANNELS;
		moments m = {0.0f, 0.0f, 0.0f};

#pragma unroll 4
		for (int chunk = row; chunk < a.chunks && c < a.channels; chunk += rows) {
			const float *from = partial + (long long)chunk * 3 * a.channels + c;
			moments more = {from[0], from[a.channels], from[2 * a.channels]};

			m = merge(m, more);
		}
		BARRIER;
		for (int half = rows / 2;; half /= 2) {
			part[0][me] = m.count;
			part[1][me] = m.mean;
			part[2][me] = m.squares;
			BARRIER;
			if (half == 0)
				break;
			if (row < half) {
				int other = me + half * NORM_FINISH_CHANNELS;
				moments theirs = {part[0][other], part[1][other], part[2][other]};

				m = merge(m, theirs);
			}
			BARRIER;
		}
		if (row != 0 || c >= a.channels)
			continue;
		float center = partial[(long long)a.chunks * 3 * a.channels + c] + m.mean;
		float spread = m.squares / m.count, rest = 1.0f - a.momentum;

		mean[c] = center;
		variance[c] = spread;
		running_mean[c] = a.momentum * running_mean[c] + rest * center;
		running_variance[c] = a.momentum * running_variance[c] + rest * spread;
	}
}

// What the elements of a channel share.
struct norm_channel {
	float mean, inverse, factor, shift;
};
DEVICE norm_channel channel_of(const norm_arguments &a, int c, const float *mean,
			       const float *variance, const float *scale, const float *shift)
{
	norm_channel n = {mean[c], 1.0f / sqrtf(variance[c] + a.epsilon), 0.0f, shift[c]};

	n.factor = scale[c] * n.inverse;
	return n;
}

// The same operations in each kernel, so that the gradient of max(0, y) sees the signs of the
// forward pass.
DEVICE float normalise(const norm_channel &n, float x)
{
	return fmaf(x - n.mean, n.factor, n.shift);
}

// What a thread of an element-wise kernel goes through: N adjacent columns from `column` on, in the
// rows `group`, `group + a.groups`, ...
template <int N> struct norm_item {
	long long group, column, width;
	int channel;

	__device__ norm_item(const norm_arguments &a, long long i)
	{
		width = (long long)a.channels * a.inner;
		column = (long long)take_index(&i, (int)(width / N)) * N;
		group = i;
		channel = a.inner == 1 ? (int)column : (int)(column / a.inner);
	}
	// The channel of element k.
	__device__ int of(const norm_arguments &a, int k) const
	{
		return a.inner == 1 ? channel + k : channel;
	}
	__device__ long long last(const norm_arguments &a) const
	{
		return group + (a.rows - 1 - group) / a.groups * a.groups;
	}
};

// added: NULL, or an array that is added before max(0, y).
template <class T, int N>
DEVICE void norm_apply(T *y, const T *x, const T *added, const float *mean, const float *variance,
		       const float *scale, const float *shift, const norm_arguments &a)
{
	FOR_ELEMENTS (i, a.groups * ((long long)a.channels * a.inner / N)) {
		norm_item<N> item(a, i);
		norm_channel c[N];

		for (int k = 0; k < N; k++)
			c[k] = channel_of(a, item.of(a, k), mean, variance, scale, shift);
#pragma unroll 4
		for (long long row = item.last(a); row >= 0; row -= a.groups) {
			long long at = row * item.width + item.column;
			pack<T, N> v = load_pack<N>(x + at), more = {};

			if (added)
				more = load_pack<N>(added + at);
			for (int k = 0; k < N; k++) {
				float value = normalise(c[k], to_float(v.v[k]));

				if (added)
					value += to_float(more.v[k]);
				v.v[k] = from_float<T>(a.relu && value < 0.0f ? 0.0f : value);
			}
			store_pack<N>(y + at, v);
		}
	}
}

// dy behind max(0, y).
DEVICE float passed(const norm_arguments &a, const norm_channel &n, float x, float dy)
{
	return !a.relu || normalise(n, x) > 0.0f ? dy : 0.0f;
}

// partial: [chunk][sum of dy, sum of dy (x - mean)][channel]. If z is given, dy is added to `more`,
// unless that is NULL, and counts where z > 0 only; that part goes to `masked`, which may be dy.
template <class T, int N>
DEVICE void norm_sums(float *partial, const T *dy, const T *x, const T *more, const T *z,
		      T *masked, const float *mean, const float *variance, const float *scale,
		      const float *shift, const norm_arguments &a)
{
	FOR_BLOCKS (block, (long long)a.tiles * a.chunks) {
		norm_share s = share_of<N>(a, block);
		float sum[2 * N] = {};
		norm_channel c[N];

		for (int k = 0; k < N; k++) {
			int channel = s.channel + (a.inner == 1 ? k : 0);

			c[k] = channel_of(a, s.idle ? 0 : channel, mean, variance, scale, shift);
		}
#pragma unroll 2
		for (long long unit = s.first; unit < s.units; unit += s.step) {
			long long at = unit_offset<N>(a, s.channel, unit);
			pack<T, N> v = load_pack<N>(x + at), d = load_pack<N>(dy + at);

			if (z) {
				pack<T, N> sign = load_pack<N>(z + at);
				pack<T, N> added = load_pack<N>((more ? more : dy) + at);

				for (int k = 0; k < N; k++) {
					float sum = to_float(d.v[k]) +
						    (more ? to_float(added.v[k]) : 0.0f);

					d.v[k] = from_float<T>(to_float(sign.v[k]) > 0.0f ? sum
											  : 0.0f);
				}
				store_pack<N>(masked + at, d);
			}
			for (int k = 0; k < N; k++) {
				float value = to_float(v.v[k]);
				float slope = passed(a, c[k], value, to_float(d.v[k]));

				sum[2 * k] += slope;
				sum[2 * k + 1] += slope * (value - c[k].mean);
			}
		}
		store_sums<N>(partial + block / a.tiles * 2 * a.channels, a, s, sum);
	}
}

// variance: NULL where products have been divided by its root.
DEVICE void norm_sums_finish(float *dscale, float *dshift, const float *partial,
			     const float *variance, const norm_arguments &a)
{
	SHARED float part[2][BLOCK_THREADS_MAX];
	int me = (int)threadIdx.x, row = me / NORM_FINISH_CHANNELS;
	int rows = (int)blockDim.x / NORM_FINISH_CHANNELS;

	FOR_BLOCKS (block, (a.channels + NORM_FINISH_CHANNELS - 1) / NORM_FINISH_CHANNELS) {
		int c = (int)block * NORM_FINISH_CHANNELS + me % NORM_FINISH_CHANNELS;
		float sum = 0.0f, product = 0.0f;

#pragma unroll 4
		for (int chunk = row; chunk < a.chunks && c < a.channels; chunk += rows) {
			const float *from = partial + (long long)chunk * 2 * a.channels + c;

			sum += from[0];
			product += from[a.channels];
		}
		BARRIER;
		for (int half = rows / 2;; half /= 2) {
			part[0][me] = sum;
			part[1][me] = product;
			BARRIER;
			if (half == 0)
				break;
			if (row < half) {
				sum += part[0][me + half * NORM_FINISH_CHANNELS];
				product += part[1][me + half * NORM_FINISH_CHANNELS];
			}
			BARRIER;
		}
		if (row != 0 || c >= a.channels)
			continue;
		dscale[c] = variance ? product / sqrtf(variance[c] + a.epsilon) : product;
		dshift[c] = sum;
	}
}

// dx = factor (dy - dshift / n - z dscale / n) with z = (x - mean) inverse; dx may be dy.
template <class T, int N>
DEVICE void norm_grad(T *dx, const T *dy, const T *x, const float *mean, const float *variance,
		      const float *scale, const float *shift, const float *dscale,
		      const float *dshift, const norm_arguments &a)
{
	float share = 1.0f / ((float)a.rows * (float)a.inner);

	FOR_ELEMENTS (i, a.groups * ((long long)a.channels * a.inner / N)) {
		norm_item<N> item(a, i);
		norm_channel c[N];
		float part[N], slope[N];

		for (int k = 0; k < N; k++) {
			int channel = item.of(a, k);

			c[k] = channel_of(a, channel, mean, variance, scale, shift);
			part[k] = dshift[channel] * share;
			slope[k] = c[k].inverse * dscale[channel] * share;
		}
#pragma unroll 2
		for (long long row = item.last(a); row >= 0; row -= a.groups) {
			long long at = row * item.width + item.column;
			pack<T, N> v = load_pack<N>(x + at), d = load_pack<N>(dy + at);

			for (int k = 0; k < N; k++) {
				float value = to_float(v.v[k]);
				float given = passed(a, c[k], value, to_float(d.v[k]));

				d.v[k] = from_float<T>(c[k].factor *
						       (given - part[k] -
							(value - c[k].mean) * slope[k]));
			}
			store_pack<N>(dx + at, d);
		}
	}
}

#define NORM_MOMENTS(T, suffix)                                                                    \
	BLOCK_KERNEL(norm_moments_##suffix)(float *partial, const T *x, norm_arguments a)          \
	{                                                                                          \
		if (a.packed)                                                                      \
			norm_moments<T, packed<T>::COUNT>(partial, x, a);                          \
		else                                                                               \
			norm_moments<T, 1>(partial, x, a);                                         \
	}
FOR_TYPES(NORM_MOMENTS)

BLOCK_KERNEL(norm_statistics)
(float *mean, float *variance, float *running_mean, float *running_variance, const float *partial,
 norm_arguments a)
{
	norm_finish(mean, variance, running_mean, running_variance, partial, a);
}

#define NORM_APPLY(T, suffix)                                                                      \
	KERNEL(norm_apply_##suffix)                                                                \
	(T *y, const T *x, const T *added, const float *mean, const float *variance,               \
	 const float *scale, const float *shift, norm_arguments a)                                 \
	{                                                                                          \
		if (a.packed)                                                                      \
			norm_apply<T, packed<T>::COUNT>(y, x, added, mean, variance, scale, shift, \
							a);                                        \
		else                                                                               \
			norm_apply<T, 1>(y, x, added, mean, variance, scale, shift, a);            \
	}
FOR_TYPES(NORM_APPLY)

#define NORM_SUMS(T, suffix)                                                                       \
	BLOCK_KERNEL(norm_sums_##suffix)                                                           \
	(float *partial, const T *dy, const T *x, const T *more, const T *z, T *masked,            \
	 const float *mean, const float *variance, const float *scale, const float *shift,         \
	 norm_arguments a)                                                                         \
	{                                                                                          \
		if (a.packed)                                                                      \
			norm_sums<T, packed<T>::COUNT>(partial, dy, x, more, z, masked, mean,      \
						       variance, scale, shift, a);                 \
		else                                                                               \
			norm_sums<T, 1>(partial, dy, x, more, z, masked, mean, variance, scale,    \
					shift, a);                                                 \
	}
FOR_TYPES(NORM_SUMS)

BLOCK_KERNEL(norm_parameter_grad)
(float *dscale, float *dshift, const float *partial, const float *variance, norm_arguments a)
{
	norm_sums_finish(dscale, dshift, partial, variance, a);
}

#define NORM_GRAD(T, suffix)                                                                       \
	KERNEL(norm_grad_##suffix)                                                                 \
	(T *dx, const T *dy, const T *x, const float *mean, const float *variance,                 \
	 const float *scale, const float *shift, const float *dscale, const float *dshift,         \
	 norm_arguments a)                                                                         \
	{                                                                                          \
		if (a.packed)                                                                      \
			norm_grad<T, packed<T>::COUNT>(dx, dy, x, mean, variance, scale, shift,    \
						       dscale, dshift, a);                         \
		else                                                                               \
			norm_grad<T, 1>(dx, dy, x, mean, variance, scale, shift, dscale, dshift,   \
					a);                                                        \
	}
FOR_TYPES(NORM_GRAD)
