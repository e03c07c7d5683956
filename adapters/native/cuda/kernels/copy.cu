// Copies between places of any strides and types; fills.
#include "adapters/native/cuda/kernels/common.cuh"

// A type is read as itself, or converted through fp32.
template <class To, class From> struct converted {
	static __device__ To of(From x)
	{
		return from_float<To>(to_float(x));
	}
};
template <class Same> struct converted<Same, Same> {
	static __device__ Same of(Same x)
	{
		return x;
	}
};

// I: the type of an element's number.
template <class I, class To, class From>
DEVICE void copy_by(To *to, const From *from, const copy_shape &s)
{
	FOR_ELEMENTS(i, s.elements)
	{
		long long source = s.from_start, target = s.to_start;
		I rest = (I)i;

		for (int d = s.rank - 1; d > 0; d--) {
			I quotient = rest / (I)s.dims[d];
			long long index = rest - quotient * (I)s.dims[d];

			source += index * s.from[d];
			target += index * s.to[d];
			rest = quotient;
		}
		to[target + rest * s.to[0]] =
			converted<To, From>::of(from[source + rest * s.from[0]]);
	}
}

// Divisions of 32 bits are several times as fast as those of 64.
template <class To, class From> DEVICE void copy(To *to, const From *from, const copy_shape &s)
{
	if (s.elements < 1ll << 31)
		copy_by<unsigned>(to, from, s);
	else
		copy_by<unsigned long long>(to, from, s);
}

#define COPY_FROM_F32(T, suffix)                                                                   \
	KERNEL(copy_f32_to_##suffix)(T * to, const float *from, copy_shape shape)                  \
	{                                                                                          \
		copy<T, float>(to, from, shape);                                                   \
	}
FOR_TYPES(COPY_FROM_F32)
#define COPY_FROM_F16(T, suffix)                                                                   \
	KERNEL(copy_f16_to_##suffix)(T * to, const half *from, copy_shape shape)                   \
	{                                                                                          \
		copy<T, half>(to, from, shape);                                                    \
	}
FOR_TYPES(COPY_FROM_F16)
#define COPY_FROM_BF16(T, suffix)                                                                  \
	KERNEL(copy_bf16_to_##suffix)(T * to, const bf16 *from, copy_shape shape)                  \
	{                                                                                          \
		copy<T, bf16>(to, from, shape);                                                    \
	}
FOR_TYPES(COPY_FROM_BF16)

// Integers of 32 bits.
KERNEL(copy_i32)(int *to, const int *from, copy_shape shape)
{
	copy<int, int>(to, from, shape);
}

// Tiles of 32 x 32 elements pass through shared memory, so that both sides are read and written in
// order: images between NCHW and NHWC.
enum { TILE = 32 };

template <class To, class From>
DEVICE void transpose(To *to, const From *from, const transpose_shape &s)
{
	SHARED float tile[TILE][TILE + 1];
	long long down = (s.rows + TILE - 1) / TILE, across = (s.columns + TILE - 1) / TILE;

	FOR_BLOCKS(block, s.batch * down * across)
	{
		long long image = block / (down * across), place = block % (down * across);
		long long row = place / across * TILE, column = place % across * TILE;
		const From *source = from + image * s.rows * s.columns;
		To *target = to + image * s.rows * s.columns;

		FOR_THREADS(i, TILE * TILE)
		{
			long long r = i / TILE, c = i % TILE;

			if (row + r < s.rows && column + c < s.columns)
				tile[r][c] = to_float(source[(row + r) * s.columns + column + c]);
		}
		BARRIER;
		FOR_THREADS(i, TILE * TILE)
		{
			long long r = i % TILE, c = i / TILE;

			if (row + r < s.rows && column + c < s.columns)
				target[(column + c) * s.rows + row + r] =
					from_float<To>(tile[r][c]);
		}
		BARRIER;
	}
}

#define TRANSPOSE_FROM_F32(T, suffix)                                                              \
	BLOCK_KERNEL(transpose_f32_to_##suffix)(T * to, const float *from, transpose_shape shape)  \
	{                                                                                          \
		transpose<T, float>(to, from, shape);                                              \
	}
FOR_TYPES(TRANSPOSE_FROM_F32)
#define TRANSPOSE_FROM_F16(T, suffix)                                                              \
	BLOCK_KERNEL(transpose_f16_to_##suffix)(T * to, const half *from, transpose_shape shape)   \
	{                                                                                          \
		transpose<T, half>(to, from, shape);                                               \
	}
FOR_TYPES(TRANSPOSE_FROM_F16)
#define TRANSPOSE_FROM_BF16(T, suffix)                                                             \
	BLOCK_KERNEL(transpose_bf16_to_##suffix)(T * to, const bf16 *from, transpose_shape shape)  \
	{                                                                                          \
		transpose<T, bf16>(to, from, shape);                                               \
	}
FOR_TYPES(TRANSPOSE_FROM_BF16)

template <class T> DEVICE void fill(T *to, float value, long long n)
{
	FOR_ELEMENTS(i, n)
	to[i] = from_float<T>(value);
}

#define FILL(T, suffix)                                                                            \
	KERNEL(fill_##suffix)(T * to, float value, long long n)                                    \
	{                                                                                          \
		fill<T>(to, value, n);                                                             \
	}
FOR_TYPES(FILL)
