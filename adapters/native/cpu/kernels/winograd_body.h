/* The loops of winograd.c for one instruction set; winograd.c includes this file for each. LANES:
 * floats of a vector; ROWS and ROWS_FEW: tiles of a product in registers; NAME(x): x with the set's
 * name; TARGET: the set's attribute. Without these macros the file is empty, so that every header
 * compiles alone. */

#ifdef LANES

typedef float NAME(vector) __attribute__((vector_size(LANES * 4), may_alias));
typedef int32_t NAME(mask) __attribute__((vector_size(LANES * 4), may_alias));

/* Transforms one dimension of an input tile: four values, `stride` vectors apart. */
#define INPUT_1D(d, at, stride)                                                                    \
	do {                                                                                       \
		NAME(vector) a = d[at], b = d[at + stride];                                        \
		NAME(vector) e = d[at + 2 * stride], f = d[at + 3 * stride];                       \
                                                                                                   \
		d[at] = a - e;                                                                     \
		d[at + stride] = b + e;                                                            \
		d[at + 2 * stride] = e - b;                                                        \
		d[at + 3 * stride] = b - f;                                                        \
	} while (0)

/* v[position * stride] = B' x B of the 4x4 vectors at x, whose rows are `row` floats apart. */
TARGET static inline void NAME(input_tile)(float *v, int64_t stride, const float *x, int64_t row)
{
	NAME(vector) d[16];

	UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) d[i * 4 + j] =
		*(const NAME(vector) *)(x + i * row + j * LANES);
	UNROLL for (int j = 0; j < 4; j++) INPUT_1D(d, j, 4);
	UNROLL for (int i = 0; i < 4; i++) INPUT_1D(d, i * 4, 1);
	UNROLL for (int p = 0; p < 16; p++) * (NAME(vector) *)(v + p * stride) = d[p];
}

/* Copies the part of a border tile that is inside the image, with zeros around it. */
TARGET static void NAME(border)(float patch[16 * LANES], const float *x, int64_t row,
				const int64_t from[2], const int64_t in[2])
{
	for (int64_t i = 0; i < 4; i++) {
		for (int64_t j = 0; j < 4; j++) {
			bool inside = from[0] + i >= 0 && from[0] + i < in[0] && from[1] + j >= 0 &&
				      from[1] + j < in[1];
			NAME(vector) value = {0};

			if (inside)
				value = *(const NAME(vector) *)(x + (from[0] + i) * row +
								(from[1] + j) * LANES);
			*(NAME(vector) *)(patch + (i * 4 + j) * LANES) = value;
		}
	}
}

/* Transforms tile number `t` of a block into v[position][channel block][tile]. */
TARGET static void NAME(input)(const struct winograd *c, const struct block *b, float *v,
			       const float *x, const struct place *tile, int64_t t)
{
	const int64_t from[2] = {tile->at[0] * 2 - c->before[0], tile->at[1] * 2 - c->before[1]};
	int64_t row = c->in[1] * LANES, plane = c->in[0] * row, blocks = c->channels / LANES;
	bool whole =
		from[0] >= 0 && from[0] + 4 <= c->in[0] && from[1] >= 0 && from[1] + 4 <= c->in[1];
	float patch[16 * LANES] __attribute__((aligned(64)));

	x += tile->image * blocks * plane;
	v += t * LANES;
	for (int64_t i = 0; i < blocks; i++, x += plane, v += b->room * LANES) {
		if (whole) {
			NAME(input_tile)(v, b->v_stride, x + from[0] * row + from[1] * LANES, row);
			continue;
		}
		NAME(border)(patch, x, row, from, c->in);
		NAME(input_tile)(v, b->v_stride, patch, 4 * LANES);
	}
}

/* G g of a row or column of a window: three values become four. */
TARGET static inline void NAME(window_1d)(NAME(vector) * to, int to_stride, const NAME(vector) * g,
					  int stride)
{
	NAME(vector) even = (g[0] + g[2 * stride]) * 0.5F, odd = g[stride] * 0.5F;

	to[0] = g[0];
	to[to_stride] = even + odd;
	to[2 * to_stride] = even - odd;
	to[3 * to_stride] = g[2 * stride];
}

/* Transforms the windows of LANES inputs and a vector of outputs: u[position * stride + input * 2 *
 * LANES] = G g G' of w[tap][input][output], or, flipped, of w[tap][output][input] with the taps in
 * reverse order. Zeros if w is NULL. */
TARGET static void NAME(windows)(float *u, int64_t stride, const float *w, bool flipped)
{
	float block[9 * LANES * LANES] __attribute__((aligned(64)));

	if (!w)
		memset(block, 0, sizeof(block));
	for (int t = 0; w && t < 9; t++) {
		const float *tap = w + (flipped ? 8 - t : t) * LANES * LANES;
		float *to = block + t * LANES * LANES;

		if (!flipped)
			memcpy(to, tap, LANES * LANES * sizeof(float));
		for (int i = 0; flipped && i < LANES; i++)
			for (int o = 0; o < LANES; o++)
				to[i * LANES + o] = tap[o * LANES + i];
	}
	for (int i = 0; i < LANES; i++) {
		NAME(vector) g[9], half[12], whole[16];

		UNROLL for (int t = 0; t < 9; t++) g[t] =
			*(const NAME(vector) *)(block + (t * LANES + i) * LANES);
		UNROLL for (int j = 0; j < 3; j++) NAME(window_1d)(half + j, 3, g + j, 3);
		UNROLL for (int j = 0; j < 4; j++)
			NAME(window_1d)(whole + j * 4, 1, half + j * 3, 1);
		UNROLL for (int p = 0; p < 16; p++) *
			(NAME(vector) *)(u + p * stride + i * 2 * LANES) = whole[p];
	}
}

/* Multiplies `rows` tiles by a panel of two vectors of outputs, over all channels: x[channel
 * block][tile], u[channel][output], m[output block][tile]. */
TARGET static inline __attribute__((always_inline)) void
NAME(product)(float *m, const float *x, const float *u, int64_t blocks, int64_t stride, int rows)
{
	NAME(vector) sum[ROWS][2];

	UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (NAME(vector)){0};
	for (int64_t b = 0; b < blocks; b++, x += stride) {
		for (int i = 0; i < LANES; i++, u += 2 * LANES) {
			NAME(vector) w0 = *(const NAME(vector) *)u;
			NAME(vector) w1 = *(const NAME(vector) *)(u + LANES);

			UNROLL for (int r = 0; r < rows; r++)
			{
				sum[r][0] += w0 * x[r * LANES + i];
				sum[r][1] += w1 * x[r * LANES + i];
			}
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
	{
		*(NAME(vector) *)(m + r * LANES) = sum[r][0];
		*(NAME(vector) *)(m + stride + r * LANES) = sum[r][1];
	}
}

TARGET static void NAME(product_many)(float *m, const float *x, const float *u, int64_t blocks,
				      int64_t stride)
{
	NAME(product)(m, x, u, blocks, stride, ROWS);
}

TARGET static void NAME(product_few)(float *m, const float *x, const float *u, int64_t blocks,
				     int64_t stride)
{
	NAME(product)(m, x, u, blocks, stride, ROWS_FEW);
}

/* y = A' m A of one tile: 2x2 vectors of outputs, of which `rows` x `columns` are in the image. */
TARGET static inline void NAME(output_tile)(const struct winograd *c, float *y, const float *m,
					    int64_t stride, NAME(vector) bias, int64_t rows,
					    int64_t columns)
{
	NAME(vector) half[8], out[4];

	UNROLL for (int j = 0; j < 4; j++)
	{
		NAME(vector) d[4];

		UNROLL for (int i = 0; i < 4; i++) d[i] =
			*(const NAME(vector) *)(m + (i * 4 + j) * stride);
		half[j] = d[0] + d[1] + d[2];
		half[4 + j] = d[1] - d[2] - d[3];
	}
	UNROLL for (int i = 0; i < 2; i++)
	{
		out[i * 2] = half[i * 4] + half[i * 4 + 1] + half[i * 4 + 2] + bias;
		out[i * 2 + 1] = half[i * 4 + 1] - half[i * 4 + 2] - half[i * 4 + 3] + bias;
	}
	for (int64_t i = 0; i < rows; i++) {
		for (int64_t j = 0; j < columns; j++) {
			NAME(vector) *to = (NAME(vector) *)(y + i * c->out[1] * LANES + j * LANES);
			NAME(vector) value = out[i * 2 + j];

			if (c->sum)
				value += *to;
			if (c->relu)
				value = (NAME(vector))((NAME(mask))value & ~(value <= 0));
			*to = value;
		}
	}
}

/* Transforms tile number `t` of a block back from m[position][output block][tile]. */
TARGET static void NAME(output)(const struct winograd *c, const struct block *b, float *y,
				const float *m, const float *bias, const struct place *tile,
				int64_t t)
{
	int64_t at[2] = {tile->at[0] * 2, tile->at[1] * 2};
	int64_t plane = c->out[0] * c->out[1] * LANES, blocks = c->outputs / LANES;
	int64_t rows = c->out[0] - at[0] > 1 ? 2 : 1, columns = c->out[1] - at[1] > 1 ? 2 : 1;

	y += tile->image * blocks * plane + (at[0] * c->out[1] + at[1]) * LANES;
	for (int64_t i = 0; i < blocks; i++, y += plane) {
		NAME(vector) shift = {0};

		if (bias)
			memcpy(&shift, bias + i * LANES, sizeof(shift));
		NAME(output_tile)
		(c, y, m + (i * b->room + t) * LANES, b->m_stride, shift, rows, columns);
	}
}

static const struct winograd_loops NAME(loops) = {
	.lanes = LANES,
	.rows = {ROWS, ROWS_FEW},
	.windows = NAME(windows),
	.input = NAME(input),
	.product = {NAME(product_many), NAME(product_few)},
	.output = NAME(output),
};

#undef INPUT_1D

#endif
