#include "adapters/native/strided.h"

#include <stdbool.h>

/* Whether dimension i + 1 is run through in every array just as if it were part of dimension i. */
static bool joins(const int64_t *const *strides, int count, const int64_t *dims, int i)
{
	for (int k = 0; k < count; k++) {
		if (strides[k][i] != strides[k][i + 1] * dims[i + 1])
			return false;
	}
	return true;
}

/* Takes dimension i out of arrays of `rank`. */
static void remove_dimension(int64_t *dims, int64_t *const *strides, int count, int i, int rank)
{
	for (int k = i; k + 1 < rank; k++) {
		dims[k] = dims[k + 1];
		for (int s = 0; s < count; s++)
			strides[s][k] = strides[s][k + 1];
	}
}

/* Simplifies dimensions [from, end); returns how many are gone. */
static int simplify(int64_t *dims, int64_t *const *strides, int count, int from, int end, int rank)
{
	int gone = 0;

	for (int i = from; i < end - gone;) {
		bool last = i + 1 == end - gone, drop = dims[i] == 1;

		if (!drop && (last || !joins((const int64_t *const *)strides, count, dims, i))) {
			i++;
			continue;
		}
		/* Merged into the next, whose strides are the finer ones. */
		if (!drop)
			dims[i + 1] *= dims[i];
		remove_dimension(dims, strides, count, i, rank - gone);
		gone++;
	}
	return gone;
}

void strided_walk_simplify(struct strided_walk *walk)
{
	int64_t *strides[] = {walk->out, walk->a, walk->b};

	walk->rank -= simplify(walk->dims, strides, 3, 0, walk->rank, walk->rank);
	if (walk->rank == 0) {
		walk->rank = 1;
		walk->dims[0] = 1;
		walk->out[0] = walk->a[0] = walk->b[0] = 1;
	}
}

void strided_sum_simplify(struct strided_sum *sum)
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

int64_t strided_walk_rows(const struct strided_walk *walk)
{
	return product(walk->dims, 0, walk->rank - 1);
}

int64_t strided_sum_rows(const struct strided_sum *sum)
{
	return product(sum->dims, 0, sum->kept);
}

/* Where row `row` of dimensions [0, rank) stands in an array. */
static int64_t place(int64_t row, const int64_t *dims, const int64_t *strides, int rank)
{
	int64_t at = 0;

	for (int i = rank - 1; i >= 0; i--) {
		at += row % dims[i] * strides[i];
		row /= dims[i];
	}
	return at;
}

#define ROW(expression)                                                                            \
	for (int64_t i = 0; i < n; i++)                                                            \
		out[i * so] = (expression);                                                        \
	break

/* One row, for strides that the compiler knows where the caller gives constants. */
static inline __attribute__((always_inline)) void walk_row(enum strided_op op, float factor,
							   int64_t n, float *out, int64_t so,
							   const float *a, int64_t sa,
							   const float *b, int64_t sb)
{
	switch (op) {
	case STRIDED_ADD:
		ROW(a[i * sa] + b[i * sb]);
	case STRIDED_SUB:
		ROW(a[i * sa] - b[i * sb]);
	case STRIDED_MUL:
		ROW(a[i * sa] * b[i * sb]);
	case STRIDED_DIV:
		ROW(a[i * sa] / b[i * sb]);
	case STRIDED_SCALE:
		ROW(a[i * sa] * factor);
	}
}

void strided_walk_run(const struct strided_walk *walk, float *out, const float *a, const float *b,
		      int64_t first, int64_t end)
{
	int inner = walk->rank - 1;
	int64_t n = walk->dims[inner];
	int64_t so = walk->out[inner], sa = walk->a[inner], sb = walk->b[inner];

	for (int64_t row = first; row < end; row++) {
		float *to = out + walk->out_start + place(row, walk->dims, walk->out, inner);
		const float *x = a + walk->a_start + place(row, walk->dims, walk->a, inner);
		const float *y = b ? b + place(row, walk->dims, walk->b, inner) : NULL;

		if (so == 1 && sa == 1 && sb == 1)
			walk_row(walk->op, walk->factor, n, to, 1, x, 1, y, 1);
		else if (so == 1 && sa == 1 && sb == 0)
			walk_row(walk->op, walk->factor, n, to, 1, x, 1, y, 0);
		else if (so == 1 && sa == 0 && sb == 1)
			walk_row(walk->op, walk->factor, n, to, 1, x, 0, y, 1);
		else
			walk_row(walk->op, walk->factor, n, to, so, x, sa, y, sb);
	}
}

/* Sums of 16 in parallel: vectorises, and rounds less than one long chain. */
static float row_sum(const float *a, int64_t n, int64_t stride)
{
	enum { LANES = 16 };
	float lanes[LANES] = {0};
	float all = 0;
	int64_t i = 0;

	if (stride == 1) {
		for (; i + LANES <= n; i += LANES) {
			for (int k = 0; k < LANES; k++)
				lanes[k] += a[i + k];
		}
	}
	for (; i < n; i++)
		lanes[i % LANES] += a[i * stride];
	for (int k = 0; k < LANES; k++)
		all += lanes[k];
	return all;
}

void strided_sum_run(const struct strided_sum *sum, float *out, const float *a, int64_t first,
		     int64_t end)
{
	int outer = sum->rank - sum->kept - 1; /* reduced dimensions around the innermost */
	const int64_t *dims = sum->dims + sum->kept, *strides = sum->a + sum->kept;
	int64_t rows = outer > 0 ? product(dims, 0, outer) : 1;

	for (int64_t i = first; i < end; i++) {
		const float *from = a + place(i, sum->dims, sum->a, sum->kept);
		double all = 0;

		if (outer < 0)
			all = (double)from[0];
		for (int64_t row = 0; outer >= 0 && row < rows; row++)
			all += (double)row_sum(from + place(row, dims, strides, outer), dims[outer],
					       strides[outer]);
		out[place(i, sum->dims, sum->out, sum->kept)] = (float)(all * (double)sum->factor);
	}
}
