// Sums over dimensions of an array, in fp32 and a fixed order.
#include "adapters/native/cuda/kernels/walk.cuh"

struct terms {
	long long start; /* of the output's first term */
	int first, end;
};

// The terms of part `split` of an output.
DEVICE struct terms terms_of(const struct cuda_reduction &r, unsigned output, int split)
{
	return {place(output, r.outputs), (int)((long long)r.term_count * split / r.splits),
		(int)((long long)r.term_count * (split + 1) / r.splits)};
}

template <class T>
DEVICE float term(const T *x, const struct cuda_reduction &r, long long start, int i)
{
	return to_float(x[start + place((unsigned)i, r.terms)]);
}

// One part of an output a block: for terms that are neighbours in memory.
template <class T> DEVICE void reduce_rows(float *y, const T *x, const struct cuda_reduction &r)
{
	FOR_BLOCKS (k, (long long)r.output_count * r.splits) {
		struct terms t =
			terms_of(r, (unsigned)(k % r.output_count), (int)(k / r.output_count));
		float sum = 0;

		FOR_THREADS (i, t.end - t.first)
			sum += term(x, r, t.start, t.first + (int)i);
		sum = block_sum(sum);
		if (threadIdx.x == 0)
			y[k] = sum * r.factor;
	}
}

#define REDUCE_ROWS(T, suffix)                                                                     \
	BLOCK_KERNEL(reduce_rows_##suffix)(float *y, const T *x, struct cuda_reduction r)          \
	{                                                                                          \
		reduce_rows<T>(y, x, r);                                                           \
	}
FOR_TYPES(REDUCE_ROWS)

// One part of an output a thread: for outputs that are neighbours in memory.
template <class T> DEVICE void reduce_columns(float *y, const T *x, const struct cuda_reduction &r)
{
	FOR_ELEMENTS (k, (long long)r.output_count * r.splits) {
		struct terms t =
			terms_of(r, (unsigned)(k % r.output_count), (int)(k / r.output_count));
		float sum = 0;

#pragma unroll 4
		for (int i = t.first; i < t.end; i++)
			sum += term(x, r, t.start, i);
		y[k] = sum * r.factor;
	}
}

#define REDUCE_COLUMNS(T, suffix)                                                                  \
	KERNEL(reduce_columns_##suffix)(float *y, const T *x, struct cuda_reduction r)             \
	{                                                                                          \
		reduce_columns<T>(y, x, r);                                                        \
	}
FOR_TYPES(REDUCE_COLUMNS)
