/* Loops that broadcast or reduce, over arrays of any strides. */
#include "adapters/native/cpu/kernels/broadcast_reduce.h"

#include "adapters/bf16.h"

/* Whether dimensions i and i + 1 can be walked as one in every array. */
static bool joins(const int64_t *const *strides, int count, const int64_t *dims, int i)
{
	for (int k = 0; k < count; k++) {
		if (strides[k][i] != strides[k][i + 1] * dims[i + 1])
			return false;
	}
	return true;
}

/* Removes dimension i from arrays of `rank`. */
static void remove_dimension(int64_t *dims, int64_t *const *strides, int count, int i, int rank)
{
	for (int k = i; k + 1 < rank; k++) {
		dims[k] = dims[k + 1];
		for (int s = 0; s < count; s++)
			strides[s][k] = strides[s][k + 1];
	}
}

/* Simplifies dimensions [from, end); returns the number of removed dimensions. */
static int simplify(int64_t *dims, int64_t *const *strides, int count, int from, int end, int rank)
{
	int gone = 0;

	for (int i = from; i < end - gone;) {
		bool last = i + 1 == end - gone, drop = dims[i] == 1;

		if (!drop && (last || !joins((const int64_t *const *)strides, count, dims, i))) {
			i++;
			continue;
		}
		/* Merged into the next dimension, which has the smaller strides. */
		if (!drop)
			dims[i + 1] *= dims[i];
		remove_dimension(dims, strides, count, i, rank - gone);
		gone++;
	}
	return gone;
}

void broadcast_walk_simplify(struct broadcast_walk *walk)
{
	int64_t *strides[] = {walk->out, walk->a, walk->b};

	walk->rank -= simplify(walk->dims, strides, 3, 0, walk->rank, walk->rank);
	if (walk->rank == 0) {
		walk->rank = 1;
		walk->dims[0] = 1;
		walk->out[0] = walk->a[0] = walk->b[0] = 1;
	}
}

void reduce_sum_simplify(struct reduce_sum *sum)
{
	int64_t *strides[] = {sum->out, sum->a};
	int gone;

	sum->rank -= simplify(sum->dims, strides, 2, sum->kept, sum->rank, sum->rank);
	gone = simplify(sum->dims, strides, 2, 0, sum->kept, sum->rank);
	sum->kept -= gone;
	sum->rank -= gone;
}

static int64_t product(const int64_t *dims, int first, int end)
{
	int64_t all = 1;

	for (int i = first; i < end; i++)
		all *= dims[i];
	return all;
}

int64_t broadcast_walk_rows(const struct broadcast_walk *walk)
{
	return product(walk->dims, 0, walk->rank - 1);
}

int64_t reduce_sum_rows(const struct reduce_sum *sum)
{
	return product(sum->dims, 0, sum->kept);
}

/* The position of row `row` of dimensions [0, rank) in an array. */
static int64_t place(int64_t row, const int64_t *dims, const int64_t *strides, int rank)
{
	int64_t at = 0;

	for (int i = rank - 1; i >= 0; i--) {
		at += row % dims[i] * strides[i];
		row /= dims[i];
	}
	return at;
}

#define INLINE static inline __attribute__((always_inline))

/*
 * Element i of an array of either type, which is a compile-time constant if the caller passes one.
 */
INLINE float get(const void *array, int64_t i, bool bf16)
{
	return bf16 ? bf16_to_float(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

INLINE void put(void *array, int64_t i, bool bf16, float x)
{
	if (bf16)
		((uint16_t *)array)[i] = bf16_from_float(x);
	else
		((float *)array)[i] = x;
}

INLINE const void *at(const void *array, int64_t i, bool bf16)
{
	return bf16 ? (const void *)((const uint16_t *)array + i)
		    : (const void *)((const float *)array + i);
}

INLINE void *at_out(void *array, int64_t i, bool bf16)
{
	return bf16 ? (void *)((uint16_t *)array + i) : (void *)((float *)array + i);
}

#define ROW(expression)                                                                            \
	for (int64_t i = 0; i < n; i++)                                                            \
		put(out, i *so, bf16, (expression));                                               \
	break
#define A get(a, i *sa, bf16)
#define B get(b, i *sb, bf16)

/* One row. Types and strides are compile-time constants if the caller passes constants. */
INLINE void walk_row(enum broadcast_op op, bool bf16, float factor, int64_t n, void *out,
		     int64_t so, const void *a, int64_t sa, const void *b, int64_t sb)
{
	switch (op) {
	case BROADCAST_ADD:
		ROW(A + B);
	case BROADCAST_SUB:
		ROW(A - B);
	case BROADCAST_MUL:
		ROW(A * B);
	case BROADCAST_DIV:
		ROW(A / B);
	case BROADCAST_SCALE:
		ROW(A * factor);
	}
}

INLINE void walk_rows(const struct broadcast_walk *walk, bool bf16, void *out, const void *a,
		      const void *b, int64_t first, int64_t end)
{
	int inner = walk->rank - 1;
	int64_t n = walk->dims[inner];
	int64_t so = walk->out[inner], sa = walk->a[inner], sb = walk->b[inner];

	for (int64_t row = first; row < end; row++) {
		void *to = at_out(out, walk->out_start + place(row, walk->dims, walk->out, inner),
				  bf16);
		const void *x = at(a, walk->a_start + place(row, walk->dims, walk->a, inner), bf16);
		const void *y = b ? at(b, place(row, walk->dims, walk->b, inner), bf16) : NULL;

		if (so == 1 && sa == 1 && sb == 1)
			walk_row(walk->op, bf16, walk->factor, n, to, 1, x, 1, y, 1);
		else if (so == 1 && sa == 1 && sb == 0)
			walk_row(walk->op, bf16, walk->factor, n, to, 1, x, 1, y, 0);
		else if (so == 1 && sa == 0 && sb == 1)
			walk_row(walk->op, bf16, walk->factor, n, to, 1, x, 0, y, 1);
		else
			walk_row(walk->op, bf16, walk->factor, n, to, so, x, sa, y, sb);
	}
}

void broadcast_walk_run(const struct broadcast_walk *walk, void *out, const void *a, const void *b,
			int64_t first, int64_t end)
{
	if (walk->bf16)
		walk_rows(walk, true, out, a, b, first, end);
	else
		walk_rows(walk, false, out, a, b, first, end);
}

/* 16 sums in parallel: this vectorises, and rounds less than one long chain. */
INLINE float row_sum(const void *a, int64_t n, int64_t stride, bool bf16)
{
	enum { LANES = 16 };
	float lanes[LANES] = {0};
	float all = 0;
	int64_t i = 0;

	if (stride == 1) {
		for (; i + LANES <= n; i += LANES) {
			for (int k = 0; k < LANES; k++)
				lanes[k] += get(a, i + k, bf16);
		}
	}
	for (; i < n; i++)
		lanes[i % LANES] += get(a, i * stride, bf16);
	for (int k = 0; k < LANES; k++)
		all += lanes[k];
	return all;
}

INLINE void sum_rows(const struct reduce_sum *sum, bool bf16, float *out, const void *a,
		     int64_t first, int64_t end)
{
	int outer = sum->rank - sum->kept - 1; /* reduced dimensions around the innermost */
	const int64_t *dims = sum->dims + sum->kept, *strides = sum->a + sum->kept;
	int64_t rows = outer > 0 ? product(dims, 0, outer) : 1;

	for (int64_t i = first; i < end; i++) {
		const void *from = at(a, place(i, sum->dims, sum->a, sum->kept), bf16);
		double all = 0;

		if (outer < 0)
			all = (double)get(from, 0, bf16);
		for (int64_t row = 0; outer >= 0 && row < rows; row++)
			all += (double)row_sum(at(from, place(row, dims, strides, outer), bf16),
					       dims[outer], strides[outer], bf16);
		out[place(i, sum->dims, sum->out, sum->kept)] = (float)(all * (double)sum->factor);
	}
}

void reduce_sum_run(const struct reduce_sum *sum, float *out, const void *a, int64_t first,
		    int64_t end)
{
	if (sum->bf16)
		sum_rows(sum, true, out, a, first, end);
	else
		sum_rows(sum, false, out, a, first, end);
}
