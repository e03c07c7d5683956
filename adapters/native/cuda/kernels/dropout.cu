// Dropout, whose masks are drawn where they are needed, in the forward pass and in the gradient:
// adapters/native/dropout.h on the device.
#include "adapters/native/cuda/kernels/each.cuh"

typedef unsigned long long word; /* 64 bits */

// The first command of a step that draws. *step is the number of steps begun.
KERNEL(advance_step)(word *step)
{
	FOR_ELEMENTS (i, 1)
		++*step;
}

DEVICE word scramble(word x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

DEVICE unsigned mix(word index, word key)
{
	unsigned h = (unsigned)index * 0x9e3779b9u ^ (unsigned)key;

	h ^= h >> 16;
	h *= 0x7feb352du;
	h ^= (h >> 15) ^ (unsigned)(key >> 32) ^ (unsigned)(index >> 32);
	h *= 0x846ca68bu;
	return h ^ h >> 16;
}

// y = x, or its gradient dx = dy, times scale or 0.
template <class T>
DEVICE void dropout(T *y, const T *x, const word *step, long long n, struct cuda_dropout d)
{
	word key = scramble(scramble(scramble((word)d.seed) ^ (*step - 1)) ^ (word)d.node);
	unsigned threshold = (unsigned)d.threshold;
	float scale = d.scale;

	each(y, x, n, [=](float value, long long i) {
		return mix((word)i, key) >= threshold ? value * scale : 0;
	});
}

#define DROPOUT(T, suffix)                                                                         \
	KERNEL(dropout_##suffix)                                                                   \
	(T * y, const T *x, const unsigned long long *step, long long n, struct cuda_dropout d)    \
	{                                                                                          \
		dropout<T>(y, x, step, n, d);                                                      \
	}
FOR_TYPES(DROPOUT)

// The seed of the mask that cuDNN draws in an attention: another one for each step and node.
KERNEL(attention_seed)
(long long *out, long long *offset, const unsigned long long *step, long long seed, long long node)
{
	FOR_ELEMENTS (i, 1) {
		*out = (long long)(scramble(scramble(scramble((word)seed) ^ (*step - 1)) ^ (word)node) >> 1);
		*offset = 0;
	}
}
