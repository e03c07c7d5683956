/* The loops of the product of few rows, for each instruction set. */
#include "adapters/native/cpu/kernels/few_rows_gemm.h"

#define BLOCK_MAX 32
#define VECTORS 2	 /* vectors per block: the weights of an element are whole cache lines */
#define TILE_ROWS_MAX 12 /* rows whose sums stay in registers */
/* Products are summed by panels, and then the panels' sums are added. One sum over 25088 similar
 * products rounds most of them in the same direction, so that its error grows with their count. */
#define PANEL 64 /* elements, if several tiles share weights: these stay in the first cache */
#define PANEL_ALONE 512	    /* if there is only one tile */
#define PREFETCH_BYTES 4096 /* with 1024 and 2048 up to a tenth slower */

/* Adds the products of `count` elements. For each element x has `rows` floats and w has a block;
 * `sums` has a block per row. */
typedef void tile_function(float *sums, const float *x, const float *w, int64_t count);

struct few_rows_loops {
	int64_t lanes, rows_max;
	tile_function *tiles[TILE_ROWS_MAX]; /* index: rows - 1 */
};

#define TILE(set, target, lanes, rows)                                                             \
	target static void tile_##set##_##rows(float *sums, const float *x, const float *w,        \
					       int64_t count)                                      \
	{                                                                                          \
		typedef float vector                                                               \
			__attribute__((vector_size((lanes)*4), aligned(4), may_alias));            \
		vector sum[rows][VECTORS];                                                         \
                                                                                                   \
		UNROLL for (int r = 0; r < (rows); r++) UNROLL for (int v = 0; v < VECTORS; v++)   \
			sum[r][v] = (vector){0};                                                   \
		for (int64_t i = 0; i < count; i++) {                                              \
			vector weight[VECTORS];                                                    \
                                                                                                   \
			UNROLL for (int v = 0; v < VECTORS; v++)                                   \
			{                                                                          \
				weight[v] = *(const vector *)(w + v * (lanes));                    \
				__builtin_prefetch((const char *)(w + v * (lanes)) +               \
						   PREFETCH_BYTES);                                \
			}                                                                          \
			UNROLL for (int r = 0; r < (rows); r++)                                    \
				UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] +=              \
				weight[v] * x[r];                                                  \
			x += (rows);                                                               \
			w += VECTORS * (lanes);                                                    \
		}                                                                                  \
		UNROLL for (int r = 0; r < (rows); r++) UNROLL for (int v = 0; v < VECTORS; v++) * \
			(vector *)(sums + (r * VECTORS + v) * (lanes)) += sum[r][v];               \
	}

#define TILES_6(set, target, lanes)                                                                \
	TILE(set, target, lanes, 1)                                                                \
	TILE(set, target, lanes, 2)                                                                \
	TILE(set, target, lanes, 3)                                                                \
	TILE(set, target, lanes, 4)                                                                \
	TILE(set, target, lanes, 5)                                                                \
	TILE(set, target, lanes, 6)

#define NO_TARGET
TILES_6(baseline, NO_TARGET, 4)
static const struct few_rows_loops baseline = {
	.lanes = 4,
	.rows_max = 6,
	.tiles = {tile_baseline_1, tile_baseline_2, tile_baseline_3, tile_baseline_4,
		  tile_baseline_5, tile_baseline_6},
};
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
TILES_6(avx2, AVX2, 8)
TILES_6(avx512, AVX512, 16)
TILE(avx512, AVX512, 16, 7)
TILE(avx512, AVX512, 16, 8)
TILE(avx512, AVX512, 16, 9)
TILE(avx512, AVX512, 16, 10)
TILE(avx512, AVX512, 16, 11)
TILE(avx512, AVX512, 16, 12)
static const struct few_rows_loops avx2 = {
	.lanes = 8,
	.rows_max = 6,
	.tiles = {tile_avx2_1, tile_avx2_2, tile_avx2_3, tile_avx2_4, tile_avx2_5, tile_avx2_6},
};
static const struct few_rows_loops avx512 = {
	.lanes = 16,
	.rows_max = 12,
	.tiles = {tile_avx512_1, tile_avx512_2, tile_avx512_3, tile_avx512_4, tile_avx512_5,
		  tile_avx512_6, tile_avx512_7, tile_avx512_8, tile_avx512_9, tile_avx512_10,
		  tile_avx512_11, tile_avx512_12},
};
#endif

const struct few_rows_loops *few_rows_pick(enum instruction_set set)
{
#ifdef __x86_64__
	if (set == INSTRUCTIONS_AVX512)
		return &avx512;
	if (set == INSTRUCTIONS_AVX2)
		return &avx2;
#else
	(void)set;
#endif
	return &baseline;
}

int64_t few_rows_block(const struct few_rows_loops *loops)
{
	return VECTORS * loops->lanes;
}

/* Rows are computed in tiles of equal height; missing rows of the last tile are zero. */
struct tiles {
	int64_t count, rows;
};

static struct tiles cut(const struct few_rows *s, const struct few_rows_loops *loops)
{
	int64_t count = (s->rows + loops->rows_max - 1) / loops->rows_max;

	return (struct tiles){.count = count, .rows = (s->rows + count - 1) / count};
}

size_t few_rows_packed_floats(const struct few_rows *s, const struct few_rows_loops *loops)
{
	struct tiles tiles = cut(s, loops);

	return (size_t)(tiles.count * tiles.rows * s->inner);
}

void few_rows_pack(const struct few_rows *s, const struct few_rows_loops *loops, float *packed,
		   const float *x, size_t first, size_t end)
{
	const struct few_rows_source *source = &s->x;
	struct tiles tiles = cut(s, loops);

	for (int64_t t = 0; t < tiles.count; t++) {
		const float *rows = x + t * tiles.rows * source->row_stride;
		int64_t present = s->rows - t * tiles.rows;
		float *to = packed + (t * s->inner + (int64_t)first * source->points) * tiles.rows;

		if (present > tiles.rows)
			present = tiles.rows;
		for (int64_t c = (int64_t)first; c < (int64_t)end; c++) {
			const float *from = rows + c / source->block * source->block_stride +
					    c % source->block * source->channel_stride;

			for (int64_t p = 0; p < source->points; p++) {
				for (int64_t row = 0; row < present; row++)
					to[row] = from[row * source->row_stride];
				for (int64_t row = present; row < tiles.rows; row++)
					to[row] = 0;
				from += source->point_stride;
				to += tiles.rows;
			}
		}
	}
}

/* Stores rows of sums into y, with the ReLU and without the padding of the last block. */
static void store(const struct few_rows *s, float *y, const float *sums, int64_t block,
		  int64_t first)
{
	int64_t width = s->outputs - first < block ? s->outputs - first : block;

	for (int64_t row = 0; row < s->rows; row++) {
		for (int64_t i = 0; i < width; i++) {
			float sum = sums[row * block + i];

			y[row * s->outputs + first + i] = s->relu && sum <= 0 ? 0 : sum;
		}
	}
}

void few_rows_product(const struct few_rows *s, const struct few_rows_loops *loops, float *y,
		      const float *packed, const float *w, const float *bias, size_t first,
		      size_t end)
{
	float sums[FEW_ROWS_ROWS_MAX * BLOCK_MAX];
	struct tiles tiles = cut(s, loops);
	int64_t block = few_rows_block(loops);
	int64_t panel = tiles.count > 1 ? PANEL : PANEL_ALONE;

	for (int64_t b = (int64_t)first; b < (int64_t)end; b++) {
		const float *weights = w + b * s->inner * block;

		for (int64_t i = 0; i < tiles.count * tiles.rows * block; i++) {
			int64_t output = b * block + i % block;

			sums[i] = bias && output < s->outputs ? bias[output] : 0;
		}
		for (int64_t k = 0; k < s->inner; k += panel) {
			int64_t count = s->inner - k < panel ? s->inner - k : panel;

			for (int64_t t = 0; t < tiles.count; t++)
				loops->tiles[tiles.rows - 1](sums + t * tiles.rows * block,
							     packed + (t * s->inner + k) *
									      tiles.rows,
							     weights + k * block, count);
		}
		store(s, y, sums, block, b * block);
	}
}
