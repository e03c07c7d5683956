// Softmax over one dimension of a row-major array, and its gradient: one line a block. Elements of
// a line are `inner` apart; lines are those of outer * inner.
#include "adapters/native/cuda/kernels/softmax.cuh"

DEVICE long long line_start(long long line, int size, long long inner)
{
	return line / inner * size * inner + line % inner;
}

template <class T> DEVICE void softmax(T *y, const T *x, long long lines, int size, long long inner)
{
	FOR_BLOCKS (line, lines) {
		long long start = line_start(line, size, inner);
		float largest, sum = softmax_sum(x + start, size, inner, &largest);

		FOR_THREADS (i, size)
			y[start + i * inner] =
				from_float<T>(expf(to_float(x[start + i * inner]) - largest) / sum);
	}
}

#define SOFTMAX(T, suffix)                                                                         \
	BLOCK_KERNEL(softmax_##suffix)                                                             \
	(T * y, const T *x, long long lines, int size, long long inner)                            \
	{                                                                                          \
		softmax<T>(y, x, lines, size, inner);                                              \
	}
FOR_TYPES(SOFTMAX)

// dx = y (dy - sum of dy y)
template <class T>
DEVICE void softmax_grad(T *dx, const T *dy, const T *y, long long lines, int size, long long inner)
{
	FOR_BLOCKS (line, lines) {
		long long start = line_start(line, size, inner);
		float sum = 0;

		FOR_THREADS (i, size)
			sum += to_float(dy[start + i * inner]) * to_float(y[start + i * inner]);
		sum = block_sum(sum);
		FOR_THREADS (i, size) {
			long long at = start + i * inner;

			dx[at] = from_float<T>(to_float(y[at]) * (to_float(dy[at]) - sum));
		}
	}
}

#define SOFTMAX_GRAD(T, suffix)                                                                    \
	BLOCK_KERNEL(softmax_grad_##suffix)                                                        \
	(T * dx, const T *dy, const T *y, long long lines, int size, long long inner)              \
	{                                                                                          \
		softmax_grad<T>(dx, dy, y, lines, size, inner);                                    \
	}
FOR_TYPES(SOFTMAX_GRAD)
