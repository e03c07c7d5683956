// Reductions over the channels of a matrix (struct norm_arguments), in two stages: each block
// reduces the share of a chunk, then another kernel combines the chunks in their order.
#ifndef PRONY_KERNELS_CHANNELS_CUH
#define PRONY_KERNELS_CHANNELS_CUH

#include "adapters/native/cuda/kernels/pack.cuh"

// The part of a thread in a reduction: N adjacent elements at unit `first`, `first + step`, ...
// With channels last they belong to N channels from `channel` on, otherwise to one.
struct norm_share {
	int channel, row, rows; // rows: threads of the block that share the channels
	long long first, step, units;
	bool idle;
};
template <int N> DEVICE norm_share share_of(const norm_arguments &a, long long block)
{
	norm_share s;
	int tile = take_index(&block, a.tiles), lane = (int)threadIdx.x % a.lanes;

	s.row = (int)threadIdx.x / a.lanes;
	s.rows = (int)blockDim.x / a.lanes;
	s.channel = a.inner == 1 ? (tile * a.lanes + lane) * N : tile;
	s.idle = s.channel >= a.channels;
	s.first = block * s.rows + s.row;
	s.step = (long long)a.chunks * s.rows;
	s.units = s.idle ? 0 : a.inner == 1 ? a.rows : a.rows * (a.inner / N);
	return s;
}

template <int N> DEVICE long long unit_offset(const norm_arguments &a, int channel, long long unit)
{
	if (a.inner == 1)
		return unit * a.channels + channel;
	int place = take_index(&unit, a.inner / N);
	return (unit * a.channels + channel) * a.inner + (long long)place * N;
}

// Adds two sums for each of the N elements over the threads of the block, and stores them as
// [first, second][channel]. All threads of the block call it.
template <int N>
DEVICE void store_sums(float *to, const norm_arguments &a, const norm_share &s, float *sum)
{
	SHARED float part[2 * N][BLOCK_THREADS_MAX];
	int me = (int)threadIdx.x, kept = a.inner == 1 ? N : 1;

	for (int k = 2; k < 2 * N && kept == 1; k++)
		sum[k % 2] += sum[k];
	BARRIER;
	for (int half = s.rows / 2;; half /= 2) {
		for (int k = 0; k < 2 * N; k++)
			part[k][me] = sum[k];
		BARRIER;
		if (half == 0)
			break;
		for (int k = 0; k < 2 * N && s.row < half; k++)
			sum[k] += part[k][me + half * a.lanes];
		BARRIER;
	}
	for (int k = 0; k < N; k++) {
		if (k >= kept || s.row != 0 || s.idle)
			continue;
		to[s.channel + k] = sum[2 * k];
		to[a.channels + s.channel + k] = sum[2 * k + 1];
	}
}

#endif
