/* Winograd convolutions: blocks of tiles, and the loops for each instruction set. */
#include "adapters/native/cpu/kernels/winograd.h"

#include <string.h>

#define POSITIONS 16 /* positions of a transformed tile */
/* The number of tiles that are transformed at once. It must be large, because all windows are read
 * once for each block, and small, because the transformed tiles are written and read again. The
 * minimum makes the time to read the windows a fraction of the multiplications; above it the limit
 * is the second cache. */
#define BLOCK_TILES_MIN 96
#define BLOCK_TILES_MOST 384
#define BLOCK_BYTES ((int64_t)1 << 20)
/* Extra floats between positions: without them 16 stores use the same set of the first cache. */
#define APART 48

/* The place of a tile. */
struct place {
	int64_t image, at[2];
};

/* A block of tiles during its computation. */
struct block {
	int64_t room;		    /* tiles, including those that fill the last product */
	int64_t v_stride, m_stride; /* floats between positions of inputs and of products */
};

struct winograd_loops {
	int64_t lanes, rows[2];
	void (*windows)(float *u, int64_t stride, const float *w, bool flipped);
	void (*input)(const struct winograd *c, const struct block *b, float *v, const float *x,
		      const struct place *tile, int64_t t);
	void (*product[2])(float *m, const float *x, const float *u, int64_t blocks,
			   int64_t stride);
	void (*output)(const struct winograd *c, const struct block *b, float *y, const float *m,
		       const float *bias, const struct place *tile, int64_t t);
};

#ifdef __x86_64__
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define ROWS 6
#define ROWS_FEW 4
#include "adapters/native/cpu/kernels/winograd_body.h"
#undef NAME
#undef TARGET
#undef LANES
#undef ROWS
#undef ROWS_FEW

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define LANES 16
#define ROWS 12
#define ROWS_FEW 8
#include "adapters/native/cpu/kernels/winograd_body.h"
#endif

const struct winograd_loops *winograd_pick(enum instruction_set set)
{
#ifdef __x86_64__
	if (set == INSTRUCTIONS_AVX512)
		return &loops_avx512;
	if (set == INSTRUCTIONS_AVX2)
		return &loops_avx2;
#else
	(void)set;
#endif
	return NULL;
}

int64_t winograd_lanes(const struct winograd_loops *loops)
{
	return loops->lanes;
}

int64_t winograd_tiles(const struct winograd *c)
{
	return c->batch * ((c->out[0] + 1) / 2) * ((c->out[1] + 1) / 2);
}

size_t winograd_panels(const struct winograd *c, const struct winograd_loops *loops)
{
	return (size_t)((c->outputs + 2 * loops->lanes - 1) / (2 * loops->lanes));
}

size_t winograd_weight_floats(const struct winograd *c, const struct winograd_loops *loops)
{
	return POSITIONS * winograd_panels(c, loops) * (size_t)(c->channels * 2 * loops->lanes);
}

void winograd_weights(const struct winograd *c, const struct winograd_loops *loops, float *u,
		      const float *w, bool flipped, size_t first, size_t end)
{
	int64_t lanes = loops->lanes, block = 9 * lanes * lanes;
	int64_t inputs = c->channels / lanes, outputs = c->outputs / lanes;
	int64_t stride = (int64_t)winograd_panels(c, loops) * c->channels * 2 * lanes;

	for (int64_t o = (int64_t)first * 2; o < (int64_t)end * 2; o++) {
		float *panel = u + o / 2 * c->channels * 2 * lanes + o % 2 * lanes;

		for (int64_t i = 0; i < inputs; i++) {
			const float *from =
				w + (flipped ? i * outputs + o : o * inputs + i) * block;

			loops->windows(panel + i * lanes * 2 * lanes, stride,
				       o < outputs ? from : NULL, flipped);
		}
	}
}

/* The number of tiles per block, so that the blocks of a share are equal. It is a multiple of 4 and
 * at least 8, so that products of many and of few rows cover it. */
static int64_t block_tiles(const struct winograd *c, size_t shares)
{
	int64_t most =
		BLOCK_BYTES / (POSITIONS * (int64_t)sizeof(float)) / (c->channels + c->outputs);
	int64_t share = (winograd_tiles(c) + (int64_t)shares - 1) / (int64_t)shares, blocks, tiles;

	if (most < BLOCK_TILES_MIN)
		most = BLOCK_TILES_MIN;
	if (most > BLOCK_TILES_MOST)
		most = BLOCK_TILES_MOST;
	blocks = (share + most - 1) / most;
	tiles = ((share + blocks - 1) / blocks + 3) / 4 * 4;
	return tiles < 8 ? 8 : tiles;
}

static struct block block_make(const struct winograd *c, const struct winograd_loops *loops,
			       size_t shares)
{
	int64_t room = block_tiles(c, shares);
	int64_t padded = (int64_t)winograd_panels(c, loops) * 2 * loops->lanes;

	return (struct block){.room = room,
			      .v_stride = room * c->channels + APART,
			      .m_stride = room * padded + APART};
}

size_t winograd_scratch_floats(const struct winograd *c, const struct winograd_loops *loops,
			       size_t shares)
{
	struct block b = block_make(c, loops, shares);

	return (size_t)(POSITIONS * (b.v_stride + b.m_stride));
}

static struct place place_of(const struct winograd *c, int64_t tile)
{
	int64_t columns = (c->out[1] + 1) / 2, image = (c->out[0] + 1) / 2 * columns;

	return (struct place){.image = tile / image,
			      .at = {tile % image / columns, tile % columns}};
}

/* One product per position: tiles x channels by channels x outputs. Only `tiles` tiles are used. */
static void multiply(const struct winograd *c, const struct winograd_loops *loops,
		     const struct block *b, float *m, const float *v, const float *u, int64_t tiles)
{
	int64_t stride = b->room * loops->lanes, blocks = c->channels / loops->lanes;
	int64_t panels = (int64_t)winograd_panels(c, loops);
	int64_t panel_floats = c->channels * 2 * loops->lanes;

	for (int64_t p = 0; p < POSITIONS; p++) {
		for (int64_t k = 0; k < panels; k++) {
			const float *weights = u + (p * panels + k) * panel_floats;
			int64_t t = 0;

			while (t < tiles) {
				int few = (b->room - t) % loops->rows[0] != 0;

				loops->product[few](m + p * b->m_stride + k * 2 * stride +
							    t * loops->lanes,
						    v + p * b->v_stride + t * loops->lanes, weights,
						    blocks, stride);
				t += loops->rows[few];
			}
		}
	}
}

static void compute_share(const struct winograd *c, const struct winograd_loops *loops,
			  const struct block *b, float *y, const float *x, const float *u,
			  const float *bias, float *scratch, int64_t from, int64_t to)
{
	float *v = scratch, *m = scratch + POSITIONS * b->v_stride;

	for (; from < to; from += b->room) {
		int64_t tiles = to - from < b->room ? to - from : b->room;

		for (int64_t t = 0; t < tiles; t++) {
			struct place tile = place_of(c, from + t);

			loops->input(c, b, v, x, &tile, t);
		}
		multiply(c, loops, b, m, v, u, tiles);
		for (int64_t t = 0; t < tiles; t++) {
			struct place tile = place_of(c, from + t);

			loops->output(c, b, y, m, bias, &tile, t);
		}
	}
}

void winograd_forward(const struct winograd *c, const struct winograd_loops *loops, float *y,
		      const float *x, const float *u, const float *bias, float *scratch,
		      size_t shares, size_t first, size_t end)
{
	struct block b = block_make(c, loops, shares);
	size_t own = winograd_scratch_floats(c, loops, shares);
	int64_t tiles = winograd_tiles(c), count = (int64_t)shares;

	for (size_t s = first; s < end; s++)
		compute_share(c, loops, &b, y, x, u, bias, scratch + s * own,
			      tiles * (int64_t)s / count, tiles * ((int64_t)s + 1) / count);
}
