// What softmax and its loss share.
#ifndef PRONY_KERNELS_SOFTMAX_CUH
#define PRONY_KERNELS_SOFTMAX_CUH

#include <float.h>

#include "adapters/native/cuda/kernels/common.cuh"

// The largest of `size` numbers, and the sum of exp(x - largest), by all threads of the block in
// one pass (Milakov and Gimelshein 2018, arXiv 1805.02867).
template <class T>
DEVICE float softmax_sum(const T *x, long long size, long long stride, float *largest)
{
	/* Not -infinity, whose difference from an element of -infinity would be NaN. */
	float own = -FLT_MAX, sum = 0;

	FOR_THREADS (i, size) {
		float value = to_float(x[i * stride]);

		if (value > own) {
			sum = sum * expf(own - value) + 1;
			own = value;
		} else {
			sum += expf(value - own);
		}
	}
	*largest = block_max(own);
	return block_sum(sum * expf(own - *largest));
}

#endif
