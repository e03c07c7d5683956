// Losses. Their terms are summed in double, in a fixed order.
#include "adapters/native/cuda/kernels/each.cuh"
#include "adapters/native/cuda/kernels/softmax.cuh"

// The sum over the block's threads; the first thread receives it.
DEVICE double block_sum_double(double value)
{
	SHARED double part[BLOCK_THREADS_MAX];

	BARRIER; /* the block has read the result of the last call */
	part[threadIdx.x] = value;
	for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
		BARRIER;
		if (threadIdx.x < width)
			part[threadIdx.x] += part[threadIdx.x + width];
	}
	return part[0];
}

// The number of valid labels; negative ones are ignored.
DEVICE float valid_labels(const int *labels, long long rows)
{
	float valid = 0;

	FOR_THREADS (i, rows)
		valid += labels[i] >= 0;
	return block_sum(valid);
}

// losses[row] = -log softmax(logits)[label]; dlogits = (softmax - onehot) * scale / valid rows.
template <class T>
DEVICE void cross_entropy(T *dlogits, double *losses, const T *logits, const int *labels,
			  const struct loss_scale *scale, long long rows, int classes)
{
	float share = scale ? ldexpf(LOSS_SCALE_START, scale->exponent) : 1;

	share /= valid_labels(labels, rows);
	FOR_BLOCKS (row, rows) {
		const T *x = logits + row * classes;
		T *dx = dlogits + row * classes;
		int label = labels[row];
		float largest, sum = softmax_sum(x, classes, 1, &largest);

		FOR_THREADS (i, classes) {
			float p = expf(to_float(x[i]) - largest) / sum;

			dx[i] = from_float<T>(label < 0 ? 0 : (p - (i == label)) * share);
		}
		if (threadIdx.x == 0)
			losses[row] =
				label < 0 ? 0 : (double)logf(sum) + largest - to_float(x[label]);
	}
}

#define CROSS_ENTROPY(T, suffix)                                                                   \
	BLOCK_KERNEL(cross_entropy_##suffix)                                                       \
	(T * dlogits, double *losses, const T *logits, const int *labels,                          \
	 const struct loss_scale *scale, long long rows, int classes)                              \
	{                                                                                          \
		cross_entropy<T>(dlogits, losses, logits, labels, scale, rows, classes);           \
	}
FOR_TYPES(CROSS_ENTROPY)

// parts[k] = half the sum of squares of the k-th of `count` parts of x.
template <class T> DEVICE void half_squares(double *parts, const T *x, long long n, int count)
{
	FOR_BLOCKS (part, count) {
		long long first = n * part / count;
		double sum = 0;

		FOR_THREADS (i, n * (part + 1) / count - first) {
			double value = to_float(x[first + i]);

			sum += value * value / 2;
		}
		sum = block_sum_double(sum);
		if (threadIdx.x == 0)
			parts[part] = sum;
	}
}

#define HALF_SQUARES(T, suffix)                                                                    \
	BLOCK_KERNEL(half_squares_##suffix)                                                        \
	(double *parts, const T *x, long long n, int count)                                        \
	{                                                                                          \
		half_squares<T>(parts, x, n, count);                                               \
	}
FOR_TYPES(HALF_SQUARES)

// The sum of the parts, divided by the number of valid labels if there are labels.
BLOCK_KERNEL(sum_loss)(double *loss, const double *parts, long long count, const int *labels)
{
	double sum = 0, divisor = labels ? valid_labels(labels, count) : 1;

	FOR_THREADS (i, count)
		sum += parts[i];
	sum = block_sum_double(sum);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*loss = sum / divisor;
}
