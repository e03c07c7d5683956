// Positions in arrays with strides.
#ifndef PRONY_KERNELS_WALK_CUH
#define PRONY_KERNELS_WALK_CUH

#include "adapters/native/cuda/kernels/common.cuh"

// Where element `index` is. Divisions of 32 bits are several times as fast as those of 64.
DEVICE long long place(unsigned index, const struct cuda_walk &w)
{
	long long at = 0;

	for (int i = w.rank - 1; i > 0; i--) {
		unsigned rest = index / (unsigned)w.dims[i];

		at += (long long)(index - rest * (unsigned)w.dims[i]) * w.strides[i];
		index = rest;
	}
	return w.rank > 0 ? at + (long long)index * w.strides[0] : 0;
}

#endif
