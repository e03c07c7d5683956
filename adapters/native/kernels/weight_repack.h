/*
 * Copies of weights from one layout in blocks into another, tile by tile: a tile is up to 16 rows
 * of up to 16 elements each that lie side by side in the source, and side by side, in rows or in
 * columns, in the copy. Most weights want their rows and columns exchanged in blocks of 16 x 16,
 * which vectors do in their registers. fp32 only.
 */
#ifndef PRONY_ADAPTERS_NATIVE_KERNELS_WEIGHT_REPACK_H
#define PRONY_ADAPTERS_NATIVE_KERNELS_WEIGHT_REPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapters/native/kernels/instruction_set.h"

#define TILE_SIDE 16
#define BLOCKED_MAX_RANK 12

/*
 * A layout as oneDNN describes it: an index along dimension d counts inner blocks of d first, the
 * last of which is contiguous, and what is left moves by strides[d] elements.
 */
struct blocked {
	int rank, blocks;
	int64_t padded[BLOCKED_MAX_RANK], strides[BLOCKED_MAX_RANK];
	int64_t block_size[BLOCKED_MAX_RANK];
	int block_dim[BLOCKED_MAX_RANK];
};

/* Elements between index 0 and index i of dimension d. */
int64_t blocked_offset(const struct blocked *b, int d, int64_t i);

/* What all tiles of a copy share. Element c of row r lies at r * from_step + c in the source, and
 * at c * to_step + r in the copy if turned, else at r * to_step + c. */
struct tile_shape {
	size_t from_step, to_step;
	bool turned;
};

struct tile {
	uint32_t from, to; /* elements from the beginnings of source and copy */
	uint16_t copy;	   /* the caller's */
	uint8_t rows, columns;
};

/* How two layouts of the same dimensions fall into tiles. */
struct tiling {
	struct blocked from, to;
	int64_t extent[BLOCKED_MAX_RANK], step[BLOCKED_MAX_RANK];
	int row, column; /* dimensions that the index of a row, and that within a row, runs along */
	struct tile_shape shape;
};

/* False where they do not, or in tiles too small to be worth it. What only one of them pads is no
 * part of any tile; what both pad is. */
bool tiling_make(struct tiling *t, const struct blocked *from, const struct blocked *to);
size_t tiling_count(const struct tiling *t);
/* Writes tiling_count tiles in no particular order. */
void tiling_list(const struct tiling *t, uint16_t copy, struct tile *out);

/* Puts tiles in the order of their places in the source. */
void tiles_sort(struct tile *tiles, size_t count);
/* The element behind the last that the tile reads. */
size_t tile_end(const struct tile *tile, const struct tile_shape *shape);

/* Copies one tile; pointers are those of its first elements. */
typedef void tile_copy(float *to, const float *from, const struct tile_shape *shape, int rows,
		       int columns);

/* The copy of a set that the processor must have. */
tile_copy *tiles_pick(enum instruction_set set);

#endif
