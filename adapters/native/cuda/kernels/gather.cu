// Gather: rows of a table of fp32; its gradient sums the rows' gradients in their order. TensorScatter:
// rows into a cache of fp32.
#include "adapters/native/cuda/kernels/common.cuh"

// The row and the column of element i, of which there are less than 2^31.
DEVICE int row_of(long long i, int width)
{
	return (int)((unsigned)i / (unsigned)width);
}

DEVICE int column_of(long long i, int width)
{
	return (int)((unsigned)i % (unsigned)width);
}

// `count` rows of `width` numbers.
template <class T>
DEVICE void gather(T *y, const float *table, const int *indices, int count, int width)
{
	FOR_ELEMENTS (i, (long long)count * width)
		y[i] = from_float<T>(
			table[(long long)indices[row_of(i, width)] * width + column_of(i, width)]);
}

#define GATHER(T, suffix)                                                                          \
	KERNEL(gather_##suffix)                                                                    \
	(T * y, const float *table, const int *indices, int count, int width)                      \
	{                                                                                          \
		gather<T>(y, table, indices, count, width);                                        \
	}
FOR_TYPES(GATHER)

// next[i]: the next place with the same index as place i, or `count`; -1 - next if an earlier place
// has it too. So the places of an index are a list that begins at the first one.
KERNEL(gather_links)(int *next, const int *indices, int count)
{
	FOR_ELEMENTS (i, count) {
		int index = indices[i], later = (int)i + 1;
		bool earlier = false;

		for (int k = 0; k < i; k++)
			earlier |= indices[k] == index;
		while (later < count && indices[later] != index)
			later++;
		next[i] = earlier ? -1 - later : later;
	}
}

// Writes the rows of the table's gradient that have an index; the others are zero already.
template <class T>
DEVICE void gather_grad(float *dtable, const T *dy, const int *indices, const int *next, int count,
			int width)
{
	FOR_ELEMENTS (i, (long long)count * width) {
		int place = row_of(i, width), column = column_of(i, width);
		float sum = 0;

		if (next[place] < 0)
			continue;
		for (int k = place; k < count; k = next[k] < 0 ? -1 - next[k] : next[k])
			sum += to_float(dy[(long long)k * width + column]);
		dtable[(long long)indices[place] * width + column] = sum;
	}
}

#define GATHER_GRAD(T, suffix)                                                                     \
	KERNEL(gather_grad_##suffix)                                                               \
	(float *dtable, const T *dy, const int *indices, const int *next, int count, int width)    \
	{                                                                                          \
		gather_grad<T>(dtable, dy, indices, next, count, width);                           \
	}
FOR_TYPES(GATHER_GRAD)

// TensorScatter: `outer` blocks of `size` rows of `width` numbers go into a cache of `places` rows
// for each block, in place, from row index[block / blocks_of_sample] on; without an index from row 0.
template <class T>
DEVICE void scatter(float *cache, const T *rows, const int *index, const struct cache_shape &s)
{
	int block = s.size * s.width;

	FOR_ELEMENTS (i, (long long)s.outer * block) {
		int outer = row_of(i, block), inner = column_of(i, block);
		long long first = index ? index[outer / s.blocks_of_sample] : 0;

		cache[((long long)outer * s.places + first) * s.width + inner] = to_float(rows[i]);
	}
}

#define SCATTER(T, suffix)                                                                         \
	KERNEL(scatter_##suffix)                                                                   \
	(float *cache, const T *rows, const int *index, struct cache_shape s)                      \
	{                                                                                          \
		scatter<T>(cache, rows, index, s);                                                 \
	}
FOR_TYPES(SCATTER)
