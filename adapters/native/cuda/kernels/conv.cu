// What a convolution needs beside cuDNN: sums over a channel, and a bias where no engine adds it.
#include "adapters/native/cuda/kernels/common.cuh"

// Row r of a channel is place r % places of image r / places. A thread sums the rows part, part +
// parts, ... of a channel. Threads side by side read elements side by side: in row-major order those
// of one channel, with channels last those of one row.
template <class T> DEVICE void channel_parts(float *out, const T *x, struct channel_rows a)
{
	FOR_ELEMENTS (i, (long long)a.channels * a.parts) {
		int channel = (int)(a.last ? i % a.channels : i / a.parts);
		long long part = a.last ? i / a.channels : i % a.parts;
		float sum = 0;

		for (long long r = part; r < a.rows; r += a.parts)
			sum += to_float(
				x[a.last ? r * a.channels + channel
					 : (r / a.places * a.channels + channel) * a.places +
						   r % a.places]);
		out[(long long)channel * a.parts + part] = sum;
	}
}
#define CHANNEL_PARTS(T, suffix)                                                                   \
	KERNEL(channel_parts_##suffix)(float *out, const T *x, struct channel_rows a)              \
	{                                                                                          \
		channel_parts<T>(out, x, a);                                                       \
	}
FOR_TYPES(CHANNEL_PARTS)

// One block for each channel.
BLOCK_KERNEL(channel_sums)(float *out, const float *parts, int channels, int count)
{
	FOR_BLOCKS (channel, channels) {
		float sum = 0;

		FOR_THREADS (i, count)
			sum += parts[channel * count + i];
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			out[channel] = sum;
	}
}

// Adds the bias of the channel, then max(0, y) if asked for; `inner`: elements of a channel that
// are side by side.
template <class T>
DEVICE void channel_bias(T *y, const T *bias, long long n, int channels, long long inner, int relu)
{
	FOR_ELEMENTS (i, n) {
		float sum = to_float(y[i]) + to_float(bias[i / inner % channels]);

		y[i] = from_float<T>(relu && sum < 0 ? 0 : sum);
	}
}
#define CHANNEL_BIAS(T, suffix)                                                                    \
	KERNEL(channel_bias_##suffix)                                                              \
	(T * y, const T *bias, long long n, int channels, long long inner, int relu)               \
	{                                                                                          \
		channel_bias<T>(y, bias, n, channels, inner, relu);                                \
	}
FOR_TYPES(CHANNEL_BIAS)
