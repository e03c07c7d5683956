// Layer and RMS normalisation of the rows of a matrix, a row for each block, and their gradients.
#include "adapters/native/cuda/kernels/channels.cuh"

// moments: [mean, 1 / sqrt(variance + epsilon)][row], or NULL. Sums are over differences from the
// row's first number, then from its mean, so that a large mean does not cancel; all passes but the
// first find the row in the cache.
template <class T, int N>
DEVICE void layer_norm(T *y, float *moments, const T *x, const float *scale, const float *shift,
		       const norm_arguments &a)
{
	FOR_BLOCKS (row, a.rows) {
		const T *from = x + row * a.channels;
		float origin = to_float(from[0]), sum = 0.0f, squares = 0.0f, mean = 0.0f, inverse;

		if (!a.uncentred) {
			FOR_THREADS (i, a.channels / N) {
				pack<T, N> v = load_pack<N>(from + i * N);

				for (int k = 0; k < N; k++)
					sum += to_float(v.v[k]) - origin;
			}
			mean = origin + block_sum(sum) / (float)a.channels;
		}
		FOR_THREADS (i, a.channels / N) {
			pack<T, N> v = load_pack<N>(from + i * N);

			for (int k = 0; k < N; k++) {
				float d = to_float(v.v[k]) - mean;

				squares += d * d;
			}
		}
		inverse = 1.0f / sqrtf(block_sum(squares) / (float)a.channels + a.epsilon);
		FOR_THREADS (i, a.channels / N) {
			pack<T, N> v = load_pack<N>(from + i * N);
			float factor[N], bias[N] = {};

			load_floats<N>(factor, scale + i * N);
			if (shift)
				load_floats<N>(bias, shift + i * N);
			for (int k = 0; k < N; k++)
				v.v[k] = from_float<T>((to_float(v.v[k]) - mean) * inverse *
							       factor[k] +
						       bias[k]);
			store_pack<N>(y + row * a.channels + i * N, v);
		}
		if (moments && threadIdx.x == 0) {
			moments[row] = mean;
			moments[a.rows + row] = inverse;
		}
	}
}

// dx = inverse (g - mean of g - z mean of g z) with g = scale dy and z = (x - mean) inverse; RMS
// normalisation has neither mean. dx may be dy.
template <class T, int N>
DEVICE void layer_norm_grad(T *dx, const T *dy, const T *x, const float *moments,
			    const float *scale, const norm_arguments &a)
{
	FOR_BLOCKS (row, a.rows) {
		long long start = row * a.channels;
		float mean = moments[row], inverse = moments[a.rows + row];
		float sum = 0.0f, product = 0.0f;

		FOR_THREADS (i, a.channels / N) {
			pack<T, N> v = load_pack<N>(x + start + i * N);
			pack<T, N> d = load_pack<N>(dy + start + i * N);
			float factor[N];

			load_floats<N>(factor, scale + i * N);
			for (int k = 0; k < N; k++) {
				float g = factor[k] * to_float(d.v[k]);

				sum += g;
				product += g * (to_float(v.v[k]) - mean);
			}
		}
		sum = a.uncentred ? 0.0f : block_sum(sum) / (float)a.channels;
		product = block_sum(product) * inverse * inverse / (float)a.channels;
		FOR_THREADS (i, a.channels / N) {
			pack<T, N> v = load_pack<N>(x + start + i * N);
			pack<T, N> d = load_pack<N>(dy + start + i * N);
			float factor[N];

			load_floats<N>(factor, scale + i * N);
			for (int k = 0; k < N; k++)
				d.v[k] = from_float<T>(inverse *
						       (factor[k] * to_float(d.v[k]) - sum -
							(to_float(v.v[k]) - mean) * product));
			store_pack<N>(dx + start + i * N, d);
		}
	}
}

// partial: [chunk][sum of dy, sum of dy z][column], for norm_parameter_grad.
template <class T, int N>
DEVICE void layer_norm_sums(float *partial, const T *dy, const T *x, const float *moments,
			    const norm_arguments &a)
{
	FOR_BLOCKS (block, (long long)a.tiles * a.chunks) {
		norm_share s = share_of<N>(a, block);
		float sum[2 * N] = {};

#pragma unroll 2
		for (long long row = s.first; row < s.units; row += s.step) {
			pack<T, N> v = load_pack<N>(x + row * a.channels + s.channel);
			pack<T, N> d = load_pack<N>(dy + row * a.channels + s.channel);
			float mean = moments[row], inverse = moments[a.rows + row];

			for (int k = 0; k < N; k++) {
				float slope = to_float(d.v[k]);

				sum[2 * k] += slope;
				sum[2 * k + 1] += slope * (to_float(v.v[k]) - mean) * inverse;
			}
		}
		store_sums<N>(partial + block / a.tiles * 2 * a.channels, a, s, sum);
	}
}

#define LAYER_NORM(T, suffix)                                                                      \
	BLOCK_KERNEL(layer_norm_##suffix)                                                          \
	(T *y, float *moments, const T *x, const float *scale, const float *shift,                 \
	 norm_arguments a)                                                                         \
	{                                                                                          \
		if (a.packed)                                                                      \
			layer_norm<T, packed<T>::COUNT>(y, moments, x, scale, shift, a);           \
		else                                                                               \
			layer_norm<T, 1>(y, moments, x, scale, shift, a);                          \
	}
FOR_TYPES(LAYER_NORM)

#define LAYER_NORM_GRAD(T, suffix)                                                                 \
	BLOCK_KERNEL(layer_norm_grad_##suffix)                                                     \
	(T *dx, const T *dy, const T *x, const float *moments, const float *scale,                 \
	 norm_arguments a)                                                                         \
	{                                                                                          \
		if (a.packed)                                                                      \
			layer_norm_grad<T, packed<T>::COUNT>(dx, dy, x, moments, scale, a);        \
		else                                                                               \
			layer_norm_grad<T, 1>(dx, dy, x, moments, scale, a);                       \
	}
FOR_TYPES(LAYER_NORM_GRAD)

#define LAYER_NORM_SUMS(T, suffix)                                                                 \
	BLOCK_KERNEL(layer_norm_sums_##suffix)                                                     \
	(float *partial, const T *dy, const T *x, const float *moments, norm_arguments a)          \
	{                                                                                          \
		if (a.packed)                                                                      \
			layer_norm_sums<T, packed<T>::COUNT>(partial, dy, x, moments, a);          \
		else                                                                               \
			layer_norm_sums<T, 1>(partial, dy, x, moments, a);                         \
	}
FOR_TYPES(LAYER_NORM_SUMS)
