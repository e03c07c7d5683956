// Sums over the rows of a matrix.
#include "adapters/native/cuda/kernels/common.cuh"

enum { SUM_COLUMNS = 32, SUM_LANES_MAX = BLOCK_THREADS_MAX / SUM_COLUMNS };

// A block adds SUM_COLUMNS columns of one part of the rows: out[part][column]. Threads side by side
// read columns side by side.
template <class T>
DEVICE void column_sums(float *out, const T *x, long long rows, long long columns, long long parts)
{
	SHARED float lanes[SUM_LANES_MAX][SUM_COLUMNS];
	long long tiles = (columns + SUM_COLUMNS - 1) / SUM_COLUMNS;
	long long share = (rows + parts - 1) / parts;
	int lane = threadIdx.x / SUM_COLUMNS, count = blockDim.x / SUM_COLUMNS;

	FOR_BLOCKS(block, tiles * parts)
	{
		long long part = block / tiles;
		long long column = block % tiles * SUM_COLUMNS + threadIdx.x % SUM_COLUMNS;
		long long end = (part + 1) * share < rows ? (part + 1) * share : rows;
		float sum = 0;

		for (long long row = part * share + lane; column < columns && row < end;
		     row += count)
			sum += to_float(x[row * columns + column]);
		lanes[lane][threadIdx.x % SUM_COLUMNS] = sum;
		BARRIER;
		for (int i = 1; lane == 0 && i < count; i++)
			sum += lanes[i][threadIdx.x];
		if (lane == 0 && column < columns)
			out[part * columns + column] = sum;
		BARRIER;
	}
}

#define COLUMN_SUMS(T, suffix)                                                                     \
	BLOCK_KERNEL(column_sums_##suffix)                                                         \
	(float *out, const T *x, long long rows, long long columns, long long parts)               \
	{                                                                                          \
		column_sums<T>(out, x, rows, columns, parts);                                      \
	}
FOR_TYPES(COLUMN_SUMS)
