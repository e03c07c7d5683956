/* The float64 matrix product: packs blocks of both factors and multiplies them tile by tile. */
#include "graph/gemm_f64.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parallel.h"

/* Computes a tile of the result: rows x lanes(b) elements over one block of depth. It uses the
 * compiler's vectors instead of intrinsics, so that one text serves all instruction sets, and also
 * processors other than x86-64. The loops over rows and vectors are unrolled, so that `sum` stays
 * in registers: 8 x 3 of the 32 of AVX-512, 4 x 3 of the 16 of AVX2, 4 x 2 of 16 otherwise. The
 * build allows contraction of products and sums in this file; without it, AVX2 and AVX-512 would be
 * half as fast. */
#define TILE(name, target, vector_bytes, tile_rows, vectors)                                       \
	target static void name(int64_t depth, const double *restrict a, const double *restrict b, \
				double *restrict tile)                                             \
	{                                                                                          \
		typedef double vector __attribute__((vector_size(vector_bytes), may_alias));       \
		vector sum[tile_rows][vectors] = {0};                                              \
		vector *to = (vector *)tile;                                                       \
                                                                                                   \
		for (int64_t k = 0; k < depth; k++) {                                              \
			const vector *row = (const vector *)b + k * (vectors);                     \
			const double *column = a + k * (tile_rows);                                \
                                                                                                   \
			UNROLL for (int i = 0; i < (tile_rows); i++)                               \
				UNROLL for (int v = 0; v < (vectors); v++) sum[i][v] +=            \
				column[i] * row[v];                                                \
		}                                                                                  \
		UNROLL for (int i = 0; i < (tile_rows); i++)                                       \
			UNROLL for (int v = 0; v < (vectors); v++) to[i * (vectors) + v] =         \
				sum[i][v];                                                         \
	}
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

TILE(tile_baseline, , 16, 4, 2)
#ifdef __x86_64__
TILE(tile_avx2, __attribute__((target("avx2,fma"))), 32, 4, 3)
TILE(tile_avx512, __attribute__((target("avx512f"))), 64, 8, 3)
#endif

#define TILE_MAX (8 * GEMM_F64_LANES)

struct tile {
	void (*multiply)(int64_t depth, const double *a, const double *b, double *tile);
	int64_t rows, columns;
};

bool gemm_f64_has(enum gemm_f64_set set)
{
	switch (set) {
	case GEMM_F64_BEST:
	case GEMM_F64_BASELINE:
		return true;
#ifdef __x86_64__
	case GEMM_F64_AVX2:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	case GEMM_F64_AVX512:
		return __builtin_cpu_supports("avx512f");
#else
	case GEMM_F64_AVX2:
	case GEMM_F64_AVX512:
		return false;
#endif
	}
	return false;
}

static struct tile pick_tile(enum gemm_f64_set set)
{
#ifdef __x86_64__
	bool any = set == GEMM_F64_BEST;

	if ((any || set == GEMM_F64_AVX512) && gemm_f64_has(GEMM_F64_AVX512))
		return (struct tile){tile_avx512, 8, 24};
	if ((any || set == GEMM_F64_AVX2) && gemm_f64_has(GEMM_F64_AVX2))
		return (struct tile){tile_avx2, 4, 12};
#else
	(void)set;
#endif
	return (struct tile){tile_baseline, 4, 4};
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Packs a panel of a matrix; the inner loop runs along the smaller stride. */
static void pack_matrix(const struct gemm_f64_factor *factor, const struct gemm_f64_panel *panel)
{
	const double *from =
		factor->data + panel->first * factor->depth + panel->first_lane * factor->lane;

	for (int64_t k = 0; k < panel->depth; k++)
		for (int64_t i = panel->lanes; i < panel->width; i++)
			panel->to[k * panel->width + i] = 0;
	if (factor->depth < factor->lane) {
		for (int64_t i = 0; i < panel->lanes; i++)
			for (int64_t k = 0; k < panel->depth; k++)
				panel->to[k * panel->width + i] =
					from[k * factor->depth + i * factor->lane];
		return;
	}
	for (int64_t k = 0; k < panel->depth; k++)
		for (int64_t i = 0; i < panel->lanes; i++)
			panel->to[k * panel->width + i] =
				from[k * factor->depth + i * factor->lane];
}

struct gemm_f64_factor gemm_f64_matrix(const double *data, int64_t depth_stride,
				       int64_t lane_stride)
{
	return (struct gemm_f64_factor){
		.pack = pack_matrix, .data = data, .depth = depth_stride, .lane = lane_stride};
}

struct gemm_f64_target gemm_f64_rows(double *data, int64_t columns)
{
	return (struct gemm_f64_target){
		.data = data, .row = columns, .lines = 1, .positions = INT64_MAX, .step = 1};
}

/* The product, cut into a grid of items of the same size; the last item of a row or column is
 * smaller. */
struct grid {
	const struct gemm_f64 *product;
	struct tile tile;
	int64_t rows, columns; /* of an item; multiples of the tile */
	int64_t across;	       /* items in a row of the grid */
};

/* A part of the result: rows [row, row_end), columns [column, column_end). */
struct part {
	int64_t row, row_end, column, column_end;
};

static void pack_lanes(const struct gemm_f64_factor *factor, int64_t first, int64_t depth,
		       int64_t lane, int64_t end, int64_t width, double *to)
{
	for (; lane < end; lane += width, to += depth * width)
		factor->pack(factor, &(struct gemm_f64_panel){.first = first,
							      .depth = depth,
							      .first_lane = lane,
							      .lanes = least(width, end - lane),
							      .width = width,
							      .to = to});
}

/* Computes the offsets of a tile's columns from the start of a row. */
static void find_offsets(const struct gemm_f64_target *target, int64_t column, int64_t count,
			 int64_t *offsets)
{
	for (int64_t i = 0; i < count; i++) {
		int64_t line = (column + i) / target->positions;

		offsets[i] = line / target->lines * target->sample +
			     line % target->lines * target->line +
			     (column + i) % target->positions * target->step;
	}
}

static void add_tile(const struct gemm_f64 *product, const double *tile, int64_t tile_columns,
		     struct part part)
{
	int64_t offsets[GEMM_F64_LANES], columns = part.column_end - part.column;

	find_offsets(&product->target, part.column, columns, offsets);
	for (int64_t i = part.row; i < part.row_end; i++, tile += tile_columns) {
		double *row = product->target.data + i * product->target.row;

		for (int64_t j = 0; j < columns; j++)
			row[offsets[j]] += product->alpha * tile[j];
	}
}

/* Multiplies a block of packed rows by a block of packed columns. */
static void multiply_blocks(const struct grid *grid, int64_t depth, const double *a,
			    const double *b, struct part block)
{
	int64_t tile_rows = grid->tile.rows, tile_columns = grid->tile.columns;

	for (int64_t j = block.column; j < block.column_end; j += tile_columns) {
		for (int64_t i = block.row; i < block.row_end; i += tile_rows) {
			_Alignas(64) double tile[TILE_MAX];

			grid->tile.multiply(depth, a + (i - block.row) * depth,
					    b + (j - block.column) * depth, tile);
			add_tile(grid->product, tile, tile_columns,
				 (struct part){i, least(i + tile_rows, block.row_end), j,
					       least(j + tile_columns, block.column_end)});
		}
	}
}

static void multiply_item(const struct grid *grid, int64_t item, double *a, double *b)
{
	const struct gemm_f64 *p = grid->product;
	int64_t row = item / grid->across * grid->rows;
	int64_t column = item % grid->across * grid->columns;
	int64_t row_end = least(row + grid->rows, p->rows);
	int64_t column_end = least(column + grid->columns, p->columns);

	for (int64_t k = 0; k < p->depth; k += GEMM_F64_DEPTH) {
		int64_t depth = least(GEMM_F64_DEPTH, p->depth - k);

		pack_lanes(&p->b, k, depth, column, column_end, grid->tile.columns, b);
		for (int64_t i = row; i < row_end; i += GEMM_F64_ROWS) {
			int64_t end = least(i + GEMM_F64_ROWS, row_end);

			pack_lanes(&p->a, k, depth, i, end, grid->tile.rows, a);
			multiply_blocks(grid, depth, a, b,
					(struct part){i, end, column, column_end});
		}
	}
}

static void multiply_items(void *context, struct parallel_items *items)
{
	const struct grid *grid = context;
	double *a = aligned_alloc(64, GEMM_F64_SCRATCH_BYTES);

	if (!a)
		memory_exhausted("memory for a matrix product of the reference");
	double *b = a + GEMM_F64_DEPTH * GEMM_F64_ROWS;
	for (int64_t item = parallel_next(items); item >= 0; item = parallel_next(items))
		multiply_item(grid, item, a, b);
	free(a);
}

/* Half of `size`, rounded up to whole tiles. */
static int64_t halve(int64_t size, int64_t tile)
{
	return divide_up(divide_up(size, tile), 2) * tile;
}

static int64_t items_of(const struct grid *grid)
{
	return divide_up(grid->product->rows, grid->rows) *
	       divide_up(grid->product->columns, grid->columns);
}

/* Chooses the size of the items. Items as wide as a block and as high as the result pack everything
 * once. If there are too few of them for the threads, smaller items pack some data again. */
static void cut(struct grid *grid, int threads)
{
	const struct tile *tile = &grid->tile;
	int64_t wanted = threads > 1 ? 4 * (int64_t)threads : 1;

	grid->rows = divide_up(grid->product->rows, tile->rows) * tile->rows;
	grid->columns = least(GEMM_F64_COLUMNS,
			      divide_up(grid->product->columns, tile->columns) * tile->columns);
	while (items_of(grid) < wanted &&
	       (grid->rows > tile->rows || grid->columns > tile->columns)) {
		if (grid->rows >= grid->columns || grid->columns == tile->columns)
			grid->rows = halve(grid->rows, tile->rows);
		else
			grid->columns = halve(grid->columns, tile->columns);
	}
	grid->across = divide_up(grid->product->columns, grid->columns);
}

/*
 * Multiply-accumulates of the product; saturates, because only the number of threads depends on it.
 */
static int64_t macs_of(const struct gemm_f64 *product)
{
	int64_t macs;

	if (__builtin_mul_overflow(product->rows, product->columns, &macs) ||
	    __builtin_mul_overflow(macs, product->depth, &macs))
		return INT64_MAX;
	return macs;
}

void gemm_f64(const struct gemm_f64 *product)
{
	struct grid grid = {.product = product, .tile = pick_tile(product->set)};

	assert(product->rows >= 0 && product->columns >= 0 && product->depth >= 0);
	assert(GEMM_F64_ROWS % grid.tile.rows == 0 && GEMM_F64_COLUMNS % grid.tile.columns == 0);
	if (product->rows == 0 || product->columns == 0 || product->depth == 0)
		return;
	int threads = product->threads > 0 ? product->threads : parallel_threads(macs_of(product));
	cut(&grid, threads);
	parallel_run(items_of(&grid), threads, multiply_items, &grid);
}
