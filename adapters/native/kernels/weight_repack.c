#include "adapters/native/kernels/weight_repack.h"

#include <stdlib.h>

/* Fewer elements in the largest tile, and the library's reorder is the better copy. */
#define WORTHWHILE_ELEMENTS 16

int64_t blocked_offset(const struct blocked *b, int d, int64_t i)
{
	int64_t inner = 1, offset = 0;

	for (int k = b->blocks - 1; k >= 0; k--) {
		if (b->block_dim[k] == d) {
			offset += i % b->block_size[k] * inner;
			i /= b->block_size[k];
		}
		inner *= b->block_size[k];
	}
	return offset + i * b->strides[d];
}

/* Whether runs of `side` indices of d, from each multiple of it on, move by `step` elements. */
static bool runs_by(const struct blocked *b, int d, int64_t extent, int64_t side, int64_t step)
{
	for (int64_t first = 0; first < extent; first += side) {
		int64_t start = blocked_offset(b, d, first);

		for (int64_t i = 1; i < side && first + i < extent; i++) {
			if (blocked_offset(b, d, first + i) != start + i * step)
				return false;
		}
	}
	return true;
}

/* The longest run that tiles can have along d, given what it moves by in both layouts. */
static int64_t longest_run(const struct tiling *t, int d, int64_t from_step, int64_t to_step)
{
	int64_t side = TILE_SIDE;

	while (side > 1 && !(runs_by(&t->from, d, t->extent[d], side, from_step) &&
			     runs_by(&t->to, d, t->extent[d], side, to_step)))
		side /= 2;
	return side;
}

static int64_t step_of(const struct blocked *b, int d, int64_t extent)
{
	return extent > 1 ? blocked_offset(b, d, 1) : 0;
}

/* The dimension whose neighbours are neighbours in memory; or one without neighbours, or -1. */
static int contiguous(const struct blocked *b, const int64_t *extent)
{
	int single = -1;

	for (int d = 0; d < b->rank; d++) {
		if (step_of(b, d, extent[d]) == 1)
			return d;
		if (extent[d] == 1)
			single = d;
	}
	return single;
}

/* Rows of a copy that stay rows: along the dimension, other than theirs, with the longest run, and
 * of those the one that is nearest in the source. */
static int row_dimension(const struct tiling *t)
{
	int best = -1;
	int64_t best_run = 0, best_step = 0;

	for (int d = 0; d < t->from.rank; d++) {
		int64_t step = step_of(&t->from, d, t->extent[d]), run;

		if (d == t->column)
			continue;
		run = longest_run(t, d, step, step_of(&t->to, d, t->extent[d]));
		run = run < t->extent[d] ? run : t->extent[d];
		if (best < 0 || run > best_run || (run == best_run && step < best_step)) {
			best = d;
			best_run = run;
			best_step = step;
		}
	}
	return best;
}

/* The last element must be within reach of struct tile. */
static bool within_reach(const struct blocked *b, const int64_t *extent)
{
	int64_t last = 0;

	for (int d = 0; d < b->rank; d++)
		last += blocked_offset(b, d, extent[d] - 1);
	return last < UINT32_MAX;
}

bool tiling_make(struct tiling *t, const struct blocked *from, const struct blocked *to)
{
	int64_t row_from, row_to, column_to;

	*t = (struct tiling){.from = *from, .to = *to};
	if (from->rank != to->rank || from->rank < 2 || from->rank > BLOCKED_MAX_RANK)
		return false;
	for (int d = 0; d < from->rank; d++) {
		t->step[d] = 1;
		t->extent[d] = from->padded[d] < to->padded[d] ? from->padded[d] : to->padded[d];
		if (t->extent[d] < 1)
			return false;
	}
	t->column = contiguous(from, t->extent);
	t->row = contiguous(to, t->extent);
	if (t->column < 0 || t->row < 0 || !within_reach(from, t->extent) ||
	    !within_reach(to, t->extent))
		return false;
	t->shape.turned = t->column != t->row;
	if (!t->shape.turned)
		t->row = row_dimension(t);
	row_from = step_of(from, t->row, t->extent[t->row]);
	row_to = step_of(to, t->row, t->extent[t->row]);
	column_to = step_of(to, t->column, t->extent[t->column]);
	t->shape.from_step = (size_t)row_from;
	t->shape.to_step = (size_t)(t->shape.turned ? column_to : row_to);
	t->step[t->row] = longest_run(t, t->row, row_from, row_to);
	t->step[t->column] = longest_run(t, t->column, 1, column_to);
	return t->step[t->row] * t->step[t->column] >= WORTHWHILE_ELEMENTS;
}

size_t tiling_count(const struct tiling *t)
{
	size_t count = 1;

	for (int d = 0; d < t->from.rank; d++)
		count *= (size_t)((t->extent[d] + t->step[d] - 1) / t->step[d]);
	return count;
}

static uint8_t part(const struct tiling *t, int d, int64_t at)
{
	int64_t left = t->extent[d] - at;

	return (uint8_t)(left < t->step[d] ? left : t->step[d]);
}

void tiling_list(const struct tiling *t, uint16_t copy, struct tile *out)
{
	int64_t at[BLOCKED_MAX_RANK] = {0};
	int d;

	do {
		int64_t from = 0, to = 0;

		for (d = 0; d < t->from.rank; d++) {
			from += blocked_offset(&t->from, d, at[d]);
			to += blocked_offset(&t->to, d, at[d]);
		}
		*out++ = (struct tile){.from = (uint32_t)from,
				       .to = (uint32_t)to,
				       .copy = copy,
				       .rows = part(t, t->row, at[t->row]),
				       .columns = part(t, t->column, at[t->column])};
		for (d = t->from.rank - 1; d >= 0; d--) {
			at[d] += t->step[d];
			if (at[d] < t->extent[d])
				break;
			at[d] = 0;
		}
	} while (d >= 0);
}

static int by_source(const void *a, const void *b)
{
	const struct tile *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

void tiles_sort(struct tile *tiles, size_t count)
{
	qsort(tiles, count, sizeof(*tiles), by_source);
}

size_t tile_end(const struct tile *tile, const struct tile_shape *shape)
{
	return tile->from + (tile->rows - 1u) * shape->from_step + tile->columns;
}

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define BODY static inline __attribute__((always_inline))

/* Elements that two vectors give to their places with blocks of h x h exchanged, lanes l to n - 1
 * of the second counting from n. */
#define UPPER(n, h, l) ((l) & (h) ? (n) + (l) - (h) : (l))
#define LOWER(n, h, l) ((l) & (h) ? (n) + (l) : (l) + (h))
#define LANES_4(which, n, h, l)                                                                    \
	which(n, h, l), which(n, h, l + 1), which(n, h, l + 2), which(n, h, l + 3)
#define LANES_8(which, n, h, l) LANES_4(which, n, h, l), LANES_4(which, n, h, l + 4)
#define LANES_16(which, n, h, l) LANES_8(which, n, h, l), LANES_8(which, n, h, l + 8)

/* Exchanges the blocks of h x h off the diagonal in each square of twice their size. */
#define EXCHANGE(n, h)                                                                             \
	UNROLL for (int r = 0; r < (n); r++)                                                       \
	{                                                                                          \
		vector upper = row[r], lower = row[r | (h)];                                       \
                                                                                                   \
		if (r & (h))                                                                       \
			continue;                                                                  \
		row[r] = __builtin_shufflevector(upper, lower, LANES_##n(UPPER, n, h, 0));         \
		row[r | (h)] = __builtin_shufflevector(upper, lower, LANES_##n(LOWER, n, h, 0));   \
	}

#define EXCHANGES_4 EXCHANGE(4, 2) EXCHANGE(4, 1)
#define EXCHANGES_8 EXCHANGE(8, 4) EXCHANGE(8, 2) EXCHANGE(8, 1)
#define EXCHANGES_16 EXCHANGE(16, 8) EXCHANGE(16, 4) EXCHANGE(16, 2) EXCHANGE(16, 1)

/* A square of n x n, turned or as it is. */
#define SQUARE(set, target, n)                                                                     \
	target static void turn_##set##_##n(float *to, size_t to_step, const float *from,          \
					    size_t from_step)                                      \
	{                                                                                          \
		typedef float vector __attribute__((vector_size((n)*4), aligned(4), may_alias));   \
		vector row[n];                                                                     \
                                                                                                   \
		UNROLL for (int r = 0; r < (n); r++) row[r] =                                      \
			*(const vector *)(from + (size_t)r * from_step);                           \
		EXCHANGES_##n UNROLL for (int r = 0; r < (n); r++) *                               \
			(vector *)(to + (size_t)r * to_step) = row[r];                             \
	}

typedef void turn(float *to, size_t to_step, const float *from, size_t from_step);

/* In squares where they fit, then what is left at both edges. */
BODY void turn_tile(turn *square, int side, float *to, const float *from,
		    const struct tile_shape *shape, int rows, int columns)
{
	int whole_rows = rows / side * side, whole_columns = columns / side * side;

	for (int r = 0; r < whole_rows; r += side) {
		for (int c = 0; c < whole_columns; c += side)
			square(to + (size_t)c * shape->to_step + r, shape->to_step,
			       from + (size_t)r * shape->from_step + c, shape->from_step);
	}
	for (int c = 0; c < columns; c++) {
		for (int r = c < whole_columns ? whole_rows : 0; r < rows; r++)
			to[(size_t)c * shape->to_step + (size_t)r] =
				from[(size_t)r * shape->from_step + (size_t)c];
	}
}

BODY void keep_tile(float *to, const float *from, const struct tile_shape *shape, int rows,
		    int columns)
{
	for (int r = 0; r < rows; r++) {
		float *restrict row = to + (size_t)r * shape->to_step;
		const float *restrict source = from + (size_t)r * shape->from_step;

		for (int c = 0; c < columns; c++)
			row[c] = source[c];
	}
}

#define TILES(set, target, n)                                                                      \
	target static void copy_##set(float *to, const float *from,                                \
				      const struct tile_shape *shape, int rows, int columns)       \
	{                                                                                          \
		if (!shape->turned)                                                                \
			keep_tile(to, from, shape, rows, columns);                                 \
		else if (rows < (n) || columns < (n))                                              \
			turn_tile(turn_baseline_4, 4, to, from, shape, rows, columns);             \
		else                                                                               \
			turn_tile(turn_##set##_##n, n, to, from, shape, rows, columns);            \
	}

#define NO_TARGET
SQUARE(baseline, NO_TARGET, 4)
TILES(baseline, NO_TARGET, 4)
#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))
SQUARE(avx2, AVX2, 8)
TILES(avx2, AVX2, 8)
SQUARE(avx512, AVX512, 16)
TILES(avx512, AVX512, 16)
#endif

tile_copy *tiles_pick(enum instruction_set set)
{
#ifdef __x86_64__
	if (set == INSTRUCTIONS_AVX512)
		return copy_avx512;
	if (set == INSTRUCTIONS_AVX2)
		return copy_avx2;
#else
	(void)set;
#endif
	return copy_baseline;
}
