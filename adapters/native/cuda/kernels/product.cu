// What goes with matrix products: sums over rows, and epilogues that cuBLASLt has not.
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

// y[row][column] += bias[column], then max(0, y) if relu; bias may be NULL.
template <class T>
DEVICE void row_epilogue(T *y, const T *bias, long long rows, long long columns, int relu)
{
	FOR_ELEMENTS (i, rows * columns) {
		float value = to_float(y[i]) + (bias ? to_float(bias[i % columns]) : 0);

		y[i] = from_float<T>(relu && value < 0 ? 0 : value);
	}
}

#define ROW_EPILOGUE(T, suffix)                                                                    \
	KERNEL(row_epilogue_##suffix)                                                              \
	(T * y, const T *bias, long long rows, long long columns, int relu)                        \
	{                                                                                          \
		row_epilogue<T>(y, bias, rows, columns, relu);                                     \
	}
FOR_TYPES(ROW_EPILOGUE)
