/* Copies of weights in other layouts against a copy element by element, on every instruction set
 * that this processor has; needs no library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/native/kernels/weight_repack.h"
#include "base/memory.h"
#include "base/random.h"

/* Elements that a layout takes: the last of them, and one. */
static size_t layout_floats(const struct blocked *b)
{
	size_t last = 0;

	for (int d = 0; d < b->rank; d++)
		last += (size_t)blocked_offset(b, d, b->padded[d] - 1);
	return last + 1;
}

/* Row-major blocks in the order `order` of dimensions, with these blocks within. */
static struct blocked layout(int rank, const int64_t *dims, const int *order, int blocks,
			     const int64_t *sizes, const int *block_dims)
{
	struct blocked b = {.rank = rank, .blocks = blocks};
	int64_t stride = 1, whole[BLOCKED_MAX_RANK];

	for (int d = 0; d < rank; d++)
		whole[d] = 1;
	for (int i = 0; i < blocks; i++) {
		b.block_size[i] = sizes[i];
		b.block_dim[i] = block_dims[i];
		whole[block_dims[i]] *= sizes[i];
		stride *= sizes[i];
	}
	for (int d = 0; d < rank; d++)
		b.padded[d] = (dims[d] + whole[d] - 1) / whole[d] * whole[d];
	for (int i = rank - 1; i >= 0; i--) {
		b.strides[order[i]] = stride;
		stride *= b.padded[order[i]] / whole[order[i]];
	}
	return b;
}

struct side {
	int order[5], blocks;
	int64_t sizes[3];
	int dims[3];
};

static const struct side row_major = {.order = {0, 1, 2, 3, 4}};
static const struct side in_16o = {{0, 1, 2, 3}, 2, {16, 16}, {1, 0}};	   /* OIhw16i16o */
static const struct side out_16i = {{0, 1, 2, 3}, 2, {16, 16}, {0, 1}};	   /* OIhw16o16i */
static const struct side out_16i_io = {{1, 0, 2, 3}, 2, {16, 16}, {0, 1}}; /* IOhw16o16i */
static const struct side in_8o = {{0, 1, 2, 3}, 2, {8, 8}, {1, 0}};
static const struct side out_8i = {{0, 1, 2, 3}, 2, {8, 8}, {0, 1}};
static const struct side o_32i = {{1, 3, 2, 0}, 1, {32}, {1}};
static const struct side o_48i = {{1, 3, 2, 0}, 1, {48}, {1}};
static const struct side i_16o = {{0, 1, 2, 3}, 1, {16}, {0}};
static const struct side in_8_16o_2i = {{0, 1, 2, 3}, 3, {8, 16, 2}, {1, 0, 1}};
static const struct side grouped = {{0, 1, 2, 3, 4}, 2, {16, 16}, {2, 1}};
static const struct side grouped_turned = {{0, 1, 2, 3, 4}, 2, {16, 16}, {1, 2}};
static const struct side ldigo = {.order = {0, 1, 2, 3, 4}};
static const struct side ldgoi = {.order = {0, 1, 3, 4, 2}};
static const struct side apart = {{0, 1, 3, 4, 2}, 1, {16}, {3}};
static const struct side twos = {{1, 2, 3, 0}, 1, {2}, {1}};
static const struct side other_twos = {{0, 1, 2, 3}, 1, {2}, {0}};

static const struct {
	int rank;
	int64_t dims[5];
	const struct side *from, *to;
	bool fits;
} cases[] = {
	{4, {64, 32, 3, 3}, &in_16o, &out_16i, true},
	{4, {64, 48, 1, 1}, &in_16o, &out_16i_io, true},
	{4, {50, 20, 5, 5}, &in_16o, &o_32i, true}, /* LeNet: what one of them pads */
	{4, {88, 96, 1, 1}, &in_16o, &o_48i, true},
	{4, {11, 16, 1, 1}, &in_16o, &i_16o, true}, /* rows stay rows */
	{4, {40, 24, 3, 2}, &in_8o, &out_8i, true},
	{4, {19, 7, 3, 3}, &row_major, &in_16o, true},
	{4, {19, 7, 3, 3}, &in_16o, &row_major, true},
	{4, {32, 32, 2, 2}, &in_16o, &in_8_16o_2i, true},
	{4, {5, 3, 1, 1}, &in_16o, &out_16i, true},
	{5, {3, 32, 16, 3, 3}, &grouped, &grouped_turned, true},
	{5, {1, 1, 60, 4, 128}, &ldigo, &ldgoi, true}, /* recurrent */
	{5, {1, 1, 1, 1, 100}, &ldigo, &ldgoi, true},
	{5, {1, 1, 1, 1, 100}, &ldigo, &apart, true}, /* nothing is contiguous */
	{5, {1, 1, 1, 1, 100}, &apart, &ldigo, true},
	{4, {8, 8, 1, 1}, &twos, &other_twos, false}, /* tiles of four elements */
	{4, {1, 1, 1, 1}, &row_major, &row_major, true},
};

static struct blocked make(const struct side *side, int rank, const int64_t *dims)
{
	return layout(rank, dims, side->order, side->blocks, side->sizes, side->dims);
}

/* What must be where: every index that exists in both, padding included. */
static void copy_slowly(const struct tiling *t, float *to, const float *from)
{
	int64_t at[BLOCKED_MAX_RANK] = {0};
	int d;

	do {
		int64_t source = 0, target = 0;

		for (d = 0; d < t->from.rank; d++) {
			source += blocked_offset(&t->from, d, at[d]);
			target += blocked_offset(&t->to, d, at[d]);
		}
		to[target] = from[source];
		for (d = t->from.rank - 1; d >= 0 && ++at[d] == t->extent[d]; d--)
			at[d] = 0;
	} while (d >= 0);
}

static void compare_sets(const struct tiling *t, const struct tile *tiles, size_t count, size_t i)
{
	size_t from_floats = layout_floats(&t->from), to_floats = layout_floats(&t->to);
	float *from = memory_alloc(from_floats * sizeof(float));
	float *to = memory_alloc(to_floats * sizeof(float));
	float *wanted = memory_alloc(to_floats * sizeof(float));
	struct random random;

	random_init(&random, 5);
	for (size_t k = 0; k < from_floats; k++)
		from[k] = (float)random_normal(&random);
	for (size_t k = 0; k < to_floats; k++)
		wanted[k] = -7;
	copy_slowly(t, wanted, from);
	for (int set = 0; set <= (int)instruction_set_best(); set++) {
		tile_copy *copy = tiles_pick((enum instruction_set)set);

		for (size_t k = 0; k < to_floats; k++)
			to[k] = -7; /* and stays so where nothing may be written */
		for (size_t k = 0; k < count; k++)
			copy(to + tiles[k].to, from + tiles[k].from, &t->shape, tiles[k].rows,
			     tiles[k].columns);
		if (memcmp(to, wanted, to_floats * sizeof(float)) != 0)
			fail_msg("case %zu differs on instruction set %d", i, set);
	}
	free(from);
	free(to);
	free(wanted);
}

static void copies_are_those_of_a_slow_loop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct blocked from = make(cases[i].from, cases[i].rank, cases[i].dims);
		struct blocked to = make(cases[i].to, cases[i].rank, cases[i].dims);
		struct tiling t;
		struct tile *tiles;
		size_t count, covered = 0, elements = 1;

		if (tiling_make(&t, &from, &to) != cases[i].fits)
			fail_msg("case %zu", i);
		if (!cases[i].fits)
			continue;
		count = tiling_count(&t);
		tiles = memory_alloc(count * sizeof(*tiles));
		tiling_list(&t, 3, tiles);
		tiles_sort(tiles, count);
		for (size_t k = 0; k < count; k++) {
			assert_true(k == 0 || tiles[k - 1].from < tiles[k].from);
			assert_true(tile_end(&tiles[k], &t.shape) <= layout_floats(&from));
			assert_int_equal(tiles[k].copy, 3);
			covered += (size_t)tiles[k].rows * tiles[k].columns;
		}
		for (int d = 0; d < t.from.rank; d++)
			elements *= (size_t)t.extent[d];
		assert_int_equal(covered, elements);
		compare_sets(&t, tiles, count, i);
		free(tiles);
	}
}

/* What the library has for weights of the usual convolution: whole squares, turned. */
static void usual_weights_are_squares(void **state)
{
	const int64_t dims[] = {64, 32, 3, 3};
	struct blocked from = make(&in_16o, 4, dims), to = make(&out_16i, 4, dims);
	struct tiling t;

	(void)state;
	assert_true(tiling_make(&t, &from, &to));
	assert_true(t.shape.turned);
	assert_int_equal(t.shape.from_step, 16);
	assert_int_equal(t.shape.to_step, 16);
	assert_int_equal(tiling_count(&t), 4 * 2 * 9);
}

static void other_dimensions_do_not_fit(void **state)
{
	const int64_t dims[] = {64, 32, 3, 3, 1};
	struct blocked from = make(&in_16o, 4, dims), to = make(&grouped, 5, dims);
	struct tiling t;

	(void)state;
	assert_false(tiling_make(&t, &from, &to));
	to = from;
	to.strides[0] = (int64_t)1 << 33; /* beyond what a tile can say */
	assert_false(tiling_make(&t, &from, &to));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_those_of_a_slow_loop),
		cmocka_unit_test(usual_weights_are_squares),
		cmocka_unit_test(other_dimensions_do_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
