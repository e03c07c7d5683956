// Group and instance normalisation of row-major images, a group of a sample for each block, and
// their gradients. Instance normalisation has as many groups as channels.
#include "adapters/native/cuda/kernels/common.cuh"

// The channel of element i of a row, a group's.
DEVICE int channel_of(long long row, long long i, const struct group_arguments &a)
{
	return (int)(row % a.groups) * a.channels + (int)(i / a.inner);
}

// moments: [mean, 1 / sqrt(variance + epsilon)][row], or NULL. Sums are over differences from the
// row's first number, then from its mean, so that a large mean does not cancel.
template <class T>
DEVICE void group_norm(T *y, float *moments, const T *x, const float *scale, const float *shift,
		       const struct group_arguments &a)
{
	long long length = (long long)a.channels * a.inner, rows = (long long)a.samples * a.groups;

	FOR_BLOCKS (row, rows) {
		const T *from = x + row * length;
		float origin = to_float(from[0]), sum = 0, squares = 0, mean, inverse;

		FOR_THREADS (i, length)
			sum += to_float(from[i]) - origin;
		mean = origin + block_sum(sum) / (float)length;
		FOR_THREADS (i, length) {
			float d = to_float(from[i]) - mean;

			squares += d * d;
		}
		inverse = 1 / sqrtf(block_sum(squares) / (float)length + a.epsilon);
		FOR_THREADS (i, length) {
			int channel = channel_of(row, i, a);

			y[row * length + i] = from_float<T>(
				(to_float(from[i]) - mean) * inverse * scale[channel] +
				shift[channel]);
		}
		if (moments && threadIdx.x == 0) {
			moments[row] = mean;
			moments[rows + row] = inverse;
		}
	}
}

// dx = inverse (g - mean of g - z mean of g z) with g = scale dy and z = (x - mean) inverse. dx may
// be dy.
template <class T>
DEVICE void group_norm_grad(T *dx, const T *dy, const T *x, const float *moments,
			    const float *scale, const struct group_arguments &a)
{
	long long length = (long long)a.channels * a.inner, rows = (long long)a.samples * a.groups;

	FOR_BLOCKS (row, rows) {
		long long start = row * length;
		float mean = moments[row], inverse = moments[rows + row], sum = 0, product = 0;

		FOR_THREADS (i, length) {
			float g = scale[channel_of(row, i, a)] * to_float(dy[start + i]);

			sum += g;
			product += g * (to_float(x[start + i]) - mean);
		}
		sum = block_sum(sum) / (float)length;
		product = block_sum(product) * inverse * inverse / (float)length;
		FOR_THREADS (i, length) {
			float g = scale[channel_of(row, i, a)] * to_float(dy[start + i]);

			dx[start + i] = from_float<T>(
				inverse * (g - sum - (to_float(x[start + i]) - mean) * product));
		}
	}
}

// The gradients of scale and shift, a channel for each block.
template <class T>
DEVICE void group_norm_sums(float *dscale, float *dshift, const T *dy, const T *x,
			    const float *moments, const struct group_arguments &a)
{
	long long rows = (long long)a.samples * a.groups;
	int channels = a.groups * a.channels;

	FOR_BLOCKS (channel, channels) {
		float sum = 0, product = 0;

		FOR_THREADS (i, (long long)a.samples * a.inner) {
			long long sample = i / a.inner;
			long long row = sample * a.groups + channel / a.channels;
			long long at = (sample * channels + channel) * a.inner + i % a.inner;
			float slope = to_float(dy[at]);

			sum += slope;
			product += slope * (to_float(x[at]) - moments[row]) * moments[rows + row];
		}
		sum = block_sum(sum);
		product = block_sum(product);
		if (threadIdx.x == 0) {
			dscale[channel] = product;
			dshift[channel] = sum;
		}
	}
}

#define GROUP_NORM(T, suffix)                                                                      \
	BLOCK_KERNEL(group_norm_##suffix)                                                          \
	(T *y, float *moments, const T *x, const float *scale, const float *shift,                 \
	 struct group_arguments a)                                                                 \
	{                                                                                          \
		group_norm<T>(y, moments, x, scale, shift, a);                                     \
	}                                                                                          \
	BLOCK_KERNEL(group_norm_grad_##suffix)                                                     \
	(T *dx, const T *dy, const T *x, const float *moments, const float *scale,                 \
	 struct group_arguments a)                                                                 \
	{                                                                                          \
		group_norm_grad<T>(dx, dy, x, moments, scale, a);                                  \
	}                                                                                          \
	BLOCK_KERNEL(group_norm_sums_##suffix)                                                     \
	(float *dscale, float *dshift, const T *dy, const T *x, const float *moments,              \
	 struct group_arguments a)                                                                 \
	{                                                                                          \
		group_norm_sums<T>(dscale, dshift, dy, x, moments, a);                             \
	}
FOR_TYPES(GROUP_NORM)
