/* The loops of attention.c for one instruction set; attention.c includes this file for each. LANES:
 * floats of a vector; TILE_ROWS: rows of a product in registers; NAME(x): x with the set's name;
 * TARGET: the set's attribute. Without these macros the file is empty, so that every header
 * compiles alone. */

#ifdef LANES

typedef float NAME(vector) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t NAME(mask) __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

TARGET BODY NAME(vector) NAME(load)(const float *x)
{
	return *(const NAME(vector) *)x;
}

TARGET BODY NAME(vector) NAME(choose)(NAME(mask) which, NAME(vector) a, NAME(vector) b)
{
	return (NAME(vector))(((NAME(mask))a & which) | ((NAME(mask))b & ~which));
}

/* The largest element, and the sum, in every lane: each step adds the lanes `apart` further. */
#define FOLD(x, apart, combine)                                                                    \
	do {                                                                                       \
		NAME(vector) other = ROTATED(x, apart);                                            \
		x = combine;                                                                       \
	} while (0)

TARGET BODY NAME(vector) NAME(fold_largest)(NAME(vector) x)
{
#if LANES > 8
	FOLD(x, 8, NAME(choose)(other > x, other, x));
#endif
#if LANES > 4
	FOLD(x, 4, NAME(choose)(other > x, other, x));
#endif
	FOLD(x, 2, NAME(choose)(other > x, other, x));
	FOLD(x, 1, NAME(choose)(other > x, other, x));
	return x;
}

TARGET BODY float NAME(fold_sum)(NAME(vector) x)
{
#if LANES > 8
	FOLD(x, 8, other + x);
#endif
#if LANES > 4
	FOLD(x, 4, other + x);
#endif
	FOLD(x, 2, other + x);
	FOLD(x, 1, other + x);
	return x[0];
}

/* One tile of c (+)= a b. */
TARGET BODY void NAME(tile)(const struct product *p, int64_t row, int64_t column, const int rows,
			    const int vectors)
{
	const float *a = p->a + row * p->a_row, *b = p->b + column;
	float *c = p->c + row * p->c_row + column;
	NAME(vector) sum[TILE_ROWS][TILE_VECTORS];

	UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
		p->adds ? NAME(load)(c + r * p->c_row + v * LANES) : (NAME(vector)){0};
	for (int64_t k = 0; k < p->depth; k++) {
		NAME(vector) factor[TILE_VECTORS];

		UNROLL for (int v = 0; v < vectors; v++) factor[v] = NAME(load)(b + v * LANES);
		UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
			sum[r][v] += factor[v] * a[r * p->a_row];
		a += p->a_column;
		b += p->b_row;
	}
	UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) *
		(NAME(vector) *)(c + r * p->c_row + v * LANES) = sum[r][v];
}

TARGET BODY void NAME(strip)(const struct product *p, int64_t column, const int vectors)
{
	int64_t row = 0;

	for (; row + TILE_ROWS <= p->rows; row += TILE_ROWS)
		NAME(tile)(p, row, column, TILE_ROWS, vectors);
	for (; row + 2 <= p->rows; row += 2)
		NAME(tile)(p, row, column, 2, vectors);
	if (row < p->rows)
		NAME(tile)(p, row, column, 1, vectors);
}

TARGET static void NAME(product)(const struct product *p)
{
	int64_t width;

	for (int64_t column = 0; column < p->columns; column += width * LANES) {
		int64_t rest = (p->columns - column) / LANES;

		width = rest >= 3 && rest != 4 ? 3 : rest >= 2 ? 2 : 1;
		if (width == 3)
			NAME(strip)(p, column, 3);
		else if (width == 2)
			NAME(strip)(p, column, 2);
		else
			NAME(strip)(p, column, 1);
	}
}

/* As exp_negative in loops.c. */
TARGET BODY NAME(vector) NAME(exponential)(NAME(vector) x)
{
	const NAME(vector) least = (NAME(vector)){0} - 87.0f;
	const float to_integer = 12582912.0f;
	NAME(vector) y = NAME(choose)(x < least, least, x);
	NAME(vector) shifted = y * 1.44269504088896341f + to_integer;
	NAME(vector) n = shifted - to_integer;
	NAME(vector) r = y - n * 0.693359375f + n * 2.12194440e-4f;
	NAME(vector) p = r * 1.9875691500e-4f + 1.3981999507e-3f;

	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	return p * (NAME(vector))(((NAME(mask))shifted + 127) << 23);
}

/* Which of the lanes from element i on are below `count`. */
TARGET BODY NAME(mask) NAME(below)(int64_t i, int64_t count)
{
	NAME(mask) place;

	UNROLL for (int lane = 0; lane < LANES; lane++) place[lane] = lane;
	return place < (NAME(mask)){0} + (int32_t)(count - i);
}

/* Several rows at once, because each is a long chain of operations that wait for each other. */
TARGET BODY void NAME(some_weights)(const struct scores *s, int64_t row, const int rows)
{
	const NAME(vector) zero = {0}, least = zero - FLT_MAX;
	float *x = s->x + row * s->apart;
	NAME(vector) most[WEIGHT_ROWS], total[WEIGHT_ROWS];

	UNROLL for (int r = 0; r < rows; r++) most[r] = least, total[r] = zero;
	for (int64_t i = 0; i < s->width; i += LANES) {
		UNROLL for (int r = 0; r < rows; r++)
		{
			NAME(vector)
			next = NAME(choose)(NAME(below)(i, s->seen + (row + r) * s->more),
					    NAME(load)(x + r * s->apart + i), least);

			most[r] = NAME(choose)(next > most[r], next, most[r]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++) most[r] = NAME(fold_largest)(most[r]);
	for (int64_t i = 0; i < s->width; i += LANES) {
		UNROLL for (int r = 0; r < rows; r++)
		{
			float *at = x + r * s->apart + i;
			NAME(vector)
			y = NAME(choose)(NAME(below)(i, s->seen + (row + r) * s->more),
					 NAME(exponential)(NAME(load)(at) - most[r]), zero);

			*(NAME(vector) *)at = y;
			total[r] += y;
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
	{
		s->sums[row + r] = NAME(fold_sum)(total[r]);
		s->largest[row + r] = most[r][0];
	}
}

TARGET static void NAME(weights)(const struct scores *s)
{
	int64_t row = 0;

	for (; row + WEIGHT_ROWS <= s->rows; row += WEIGHT_ROWS)
		NAME(some_weights)(s, row, WEIGHT_ROWS);
	for (; row < s->rows; row++)
		NAME(some_weights)(s, row, 1);
}

/* p = exp(p - log_sum); d = p (d - delta), and with keep (NULL: all) p and d before it are
 * multiplied by keep. */
TARGET static void NAME(slopes)(float *p, float *d, const float *keep, float log_sum, float delta,
				int64_t width)
{
	for (int64_t i = 0; i < width; i += LANES) {
		NAME(vector) y = NAME(exponential)(NAME(load)(p + i) - log_sum);
		NAME(vector) dy = NAME(load)(d + i), kept = y;

		if (keep) {
			kept *= NAME(load)(keep + i);
			dy *= NAME(load)(keep + i);
		}
		*(NAME(vector) *)(p + i) = kept;
		*(NAME(vector) *)(d + i) = y * (dy - delta);
	}
}

/* Multiplies each element that is kept by the draw's scale, and the others by 0. */
TARGET static void NAME(keeps)(float *keep, const struct dropout_draw *draw, uint64_t first,
			       int64_t count)
{
	uint32_t key[2] = {draw->key[0], draw->key[1] ^ (uint32_t)(first >> 32)};
	uint32_t base = (uint32_t)first, threshold = draw->threshold;
	float scale = draw->scale;

	INDEPENDENT
	for (int64_t i = 0; i < count; i++)
		keep[i] = dropout_hash(base + (uint32_t)i, key) >= threshold ? scale : 0;
}

TARGET static void NAME(scale)(float *y, const float *x, float factor, int64_t count)
{
	INDEPENDENT
	for (int64_t i = 0; i < count; i++)
		y[i] = x[i] * factor;
}

TARGET static void NAME(from_bf16)(float *y, const uint16_t *x, float factor, int64_t count)
{
	INDEPENDENT
	for (int64_t i = 0; i < count; i++)
		y[i] = bf16_to_float(x[i]) * factor;
}

TARGET static void NAME(to_bf16)(uint16_t *y, const float *x, float factor, int64_t count)
{
	INDEPENDENT
	for (int64_t i = 0; i < count; i++)
		y[i] = bf16_from_float(x[i] * factor);
}

static const struct attention_loops NAME(loops) = {
	.lanes = LANES,
	.product = NAME(product),
	.weights = NAME(weights),
	.slopes = NAME(slopes),
	.keeps = NAME(keeps),
	.scale = NAME(scale),
	.from_bf16 = NAME(from_bf16),
	.to_bf16 = NAME(to_bf16),
};

#undef NAME
#undef TARGET
#undef LANES
#undef ROTATED
#undef FOLD
#undef TILE_ROWS
#endif
