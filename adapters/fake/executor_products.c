/* Convolutions and matrix products. */
#include <math.h>
#include <string.h>

#include "adapters/fake/executor_internal.h"
#include "base/random.h"

static float rounded(float x, int bits)
{
	int exponent;

	if (bits >= 24 || x == 0 || !isfinite(x))
		return x;
	float mantissa = frexpf(x, &exponent);
	return ldexpf(rintf(ldexpf(mantissa, bits)), exponent - bits);
}

/* A matrix in memory: element (i, j) is data[i * row + j * column]. */
struct matrix {
	float *data;
	int64_t row, column;
};

static struct matrix rows_of(float *data, int64_t columns)
{
	return (struct matrix){data, columns, 1};
}

static struct matrix transposed(struct matrix m)
{
	return (struct matrix){m.data, m.column, m.row};
}

/* Returns the matrix with contiguous rows and rounded elements. */
static struct matrix pack(const struct executor *ex, struct matrix m, int64_t rows, int64_t columns)
{
	if (m.column == 1 && ex->settings.operand_bits >= 24)
		return m;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			ex->packed[i * columns + j] = rounded(m.data[i * m.row + j * m.column],
							      ex->settings.operand_bits);
	return rows_of(ex->packed, columns);
}

static void draw_order(const struct executor *ex, int64_t count)
{
	struct random random;

	for (int64_t i = 0; i < count; i++)
		ex->order[i] = (size_t)i;
	random_init(&random, ex->settings.order_seed);
	if (ex->settings.order_seed)
		random_shuffle(&random, ex->order, (size_t)count);
}

/* c(m x n) += alpha a(m x k) b(k x n), in the executor's order and precision. */
static void multiply(const struct executor *ex, int64_t m, int64_t n, int64_t k, float alpha,
		     struct matrix a, struct matrix b, struct matrix c)
{
	int64_t chunk = ex->settings.chunk > 0 ? ex->settings.chunk : k + 1;
	float *partial = ex->partial;

	b = pack(ex, b, k, n);
	draw_order(ex, k);
	memset(partial, 0, (size_t)n * sizeof(*partial));
	for (int64_t i = 0; i < m; i++) {
		for (int64_t p = 0; p < k; p++) {
			int64_t at = (int64_t)ex->order[p];
			const float *row = b.data + at * b.row;
			float factor = rounded(a.data[i * a.row + at * a.column],
					       ex->settings.operand_bits);

			for (int64_t j = 0; j < n; j++)
				partial[j] += factor * row[j];
			if (p + 1 < k && (p + 1) % chunk != 0)
				continue;
			for (int64_t j = 0; j < n; j++) {
				c.data[i * c.row + j * c.column] += alpha * partial[j];
				partial[j] = 0;
			}
		}
	}
}

/* One group of a convolution: images of `in` channels, `out` rows of weights. */
struct layer {
	const struct attributes *a;
	const int64_t *x, *y; /* dimensions */
	int64_t in, out, depth, plane;
};

static struct layer layer_of(const struct call *c, const int64_t *x, const int64_t *k,
			     const int64_t *y)
{
	return (struct layer){
		c->a,	    x, y, x[1] / c->a->group, k[0] / c->a->group, k[1] * k[2] * k[3],
		y[2] * y[3]};
}

/* Returns the position in the image of row `row` and column `column` of the unfolded matrix; -1:
 * padding. */
static int64_t unfold_index(const struct layer *l, int64_t row, int64_t column)
{
	const struct attributes *a = l->a;
	int64_t channel = row / (a->kernel[0] * a->kernel[1]);
	int64_t tap = row % (a->kernel[0] * a->kernel[1]);
	int64_t h = column / l->y[3] * a->strides[0] + tap / a->kernel[1] * a->dilations[0] -
		    a->pads[0];
	int64_t w = column % l->y[3] * a->strides[1] + tap % a->kernel[1] * a->dilations[1] -
		    a->pads[1];

	if (h < 0 || h >= l->x[2] || w < 0 || w >= l->x[3])
		return -1;
	return (channel * l->x[2] + h) * l->x[3] + w;
}

/* Unfolds an image: each column (each row if `turned`) holds the inputs of one output. */
static struct matrix unfold(const struct executor *ex, const struct layer *l, const float *image,
			    bool turned)
{
	for (int64_t r = 0; r < l->depth; r++) {
		for (int64_t c = 0; c < l->plane; c++) {
			int64_t at = unfold_index(l, r, c);

			ex->unfolded[turned ? c * l->depth + r : r * l->plane + c] =
				at < 0 ? 0 : image[at];
		}
	}
	return rows_of(ex->unfolded, turned ? l->depth : l->plane);
}

/* The image, output and weights of group `i`, counted over all images. */
static float *image_of(const struct layer *l, float *x, int64_t i)
{
	return x + i * l->in * l->x[2] * l->x[3];
}

static struct matrix output_of(const struct layer *l, float *y, int64_t i)
{
	return rows_of(y + i * l->out * l->plane, l->plane);
}

static struct matrix weights_of(const struct layer *l, float *w, int64_t i)
{
	return rows_of(w + i % l->a->group * l->out * l->depth, l->depth);
}

static void clear(const struct call *c)
{
	memset(call_output(c, 0), 0, (size_t)call_count(c) * sizeof(float));
}

/* Computes the gradient of a bias: one sum for each of `channels`; `plane` consecutive elements
 * belong to one channel. */
static void sum_bias(const struct call *c, int64_t count, int64_t plane, int64_t channels)
{
	const float *dy = call_input(c, 1);
	float *db = call_output(c, 1);

	if (!db)
		return;
	memset(db, 0, (size_t)channels * sizeof(float));
	for (int64_t i = 0; i < count; i++)
		db[i / plane % channels] += dy[i];
}

void executor_conv(const struct call *c)
{
	const int64_t *x = call_input_dims(c, 0), *k = call_input_dims(c, 1);
	struct layer l = layer_of(c, x, k, call_output_dims(c, 0));
	const float *bias = call_input(c, 2);
	float *out = call_output(c, 0);

	clear(c);
	for (int64_t i = 0; i < x[0] * c->a->group; i++)
		multiply(c->ex, l.out, l.plane, l.depth, 1, weights_of(&l, call_input(c, 1), i),
			 unfold(c->ex, &l, image_of(&l, call_input(c, 0), i), false),
			 output_of(&l, out, i));
	for (int64_t i = 0; bias && i < call_count(c); i++)
		out[i] += bias[i / l.plane % k[0]];
}

void executor_conv_grad_input(const struct call *c)
{
	const int64_t *x = call_output_dims(c, 0);
	struct layer l = layer_of(c, x, call_input_dims(c, 1), call_input_dims(c, 0));

	clear(c);
	for (int64_t i = 0; i < x[0] * c->a->group; i++) {
		float *dx = image_of(&l, call_output(c, 0), i), *matrix = c->ex->unfolded;

		memset(matrix, 0, (size_t)(l.depth * l.plane) * sizeof(float));
		multiply(c->ex, l.depth, l.plane, l.out, 1,
			 transposed(weights_of(&l, call_input(c, 1), i)),
			 output_of(&l, call_input(c, 0), i), rows_of(matrix, l.plane));
		for (int64_t j = 0; j < l.depth * l.plane; j++) {
			int64_t at = unfold_index(&l, j / l.plane, j % l.plane);

			if (at >= 0)
				dx[at] += matrix[j];
		}
	}
}

void executor_conv_grad_weight(const struct call *c)
{
	const int64_t *x = call_input_dims(c, 0), *y = call_input_dims(c, 1);
	struct layer l = layer_of(c, x, call_output_dims(c, 0), y);

	clear(c);
	for (int64_t i = 0; i < x[0] * c->a->group; i++)
		multiply(c->ex, l.out, l.depth, l.plane, 1, output_of(&l, call_input(c, 1), i),
			 unfold(c->ex, &l, image_of(&l, call_input(c, 0), i), true),
			 weights_of(&l, call_output(c, 0), i));
	sum_bias(c, y[0] * y[1] * l.plane, l.plane, y[1]);
}

/* Returns operand or result `data` as the product uses it, transposed or not. */
static struct matrix operand(float *data, const int64_t *dims, bool transpose)
{
	struct matrix m = rows_of(data, dims[1]);

	return transpose ? transposed(m) : m;
}

void executor_gemm(const struct call *c)
{
	const int64_t *a = call_input_dims(c, 0), *y = call_output_dims(c, 0);
	const float *bias = call_input(c, 2);
	float *out = call_output(c, 0);

	clear(c);
	multiply(c->ex, y[0], y[1], a[c->a->trans_a ? 0 : 1], (float)c->a->alpha,
		 operand(call_input(c, 0), a, c->a->trans_a),
		 operand(call_input(c, 1), call_input_dims(c, 1), c->a->trans_b),
		 rows_of(out, y[1]));
	for (int64_t i = 0; bias && i < call_count(c); i++)
		out[i] += (float)c->a->beta * bias[i % y[1]];
}

/* dA' = alpha dY B'^T, with A' and B' the operands after transposition. */
void executor_gemm_grad_input(const struct call *c)
{
	const int64_t *dy = call_input_dims(c, 0), *a = call_output_dims(c, 0);

	clear(c);
	multiply(c->ex, dy[0], a[c->a->trans_a ? 0 : 1], dy[1], (float)c->a->alpha,
		 rows_of(call_input(c, 0), dy[1]),
		 operand(call_input(c, 1), call_input_dims(c, 1), !c->a->trans_b),
		 operand(call_output(c, 0), a, c->a->trans_a));
}

/* dB' = alpha A'^T dY, or its transpose dY^T A'. */
void executor_gemm_grad_weight(const struct call *c)
{
	const int64_t *a = call_input_dims(c, 0), *dy = call_input_dims(c, 1);
	struct matrix left = operand(call_input(c, 0), a, c->a->trans_a);
	struct matrix right = rows_of(call_input(c, 1), dy[1]);
	int64_t depth = a[c->a->trans_a ? 0 : 1];

	clear(c);
	if (c->a->trans_b)
		multiply(c->ex, dy[1], depth, dy[0], (float)c->a->alpha, transposed(right), left,
			 rows_of(call_output(c, 0), depth));
	else
		multiply(c->ex, depth, dy[1], dy[0], (float)c->a->alpha, transposed(left), right,
			 rows_of(call_output(c, 0), dy[1]));
	sum_bias(c, dy[0] * dy[1], 1, dy[1]);
	for (int64_t i = 0; call_output(c, 1) && i < dy[1]; i++)
		call_output(c, 1)[i] *= (float)c->a->beta;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

enum prony_status executor_make_scratch(struct executor *ex, struct error *err)
{
	const struct graph *graph = ex->graph;
	int64_t unfolded = 1, packed = 1, line = 1;

	for (int n = 0; n < graph->forward_count; n++) {
		const struct node *node = &graph->nodes[n];
		const int64_t *dims[3]; /* of both operands and the result */

		if (node->op != OP_CONV && node->op != OP_GEMM)
			continue;
		for (int i = 0; i < 3; i++) {
			int value = i < 2 ? node->inputs[i] : node->outputs[0];

			dims[i] = graph->values[value].shape.dims;
			packed = larger(packed, shape_elements(&graph->values[value].shape));
			line = larger(line, larger(dims[i][0], dims[i][1]));
		}
		if (node->op == OP_GEMM)
			continue;
		int64_t depth = dims[1][1] * dims[1][2] * dims[1][3];
		int64_t plane = dims[2][2] * dims[2][3];

		unfolded = larger(unfolded, depth * plane);
		line = larger(line, larger(depth, plane));
	}
	ex->unfolded = arena_try_array(&ex->arena, (size_t)unfolded, sizeof(float), err);
	ex->packed =
		arena_try_array(&ex->arena, (size_t)larger(packed, unfolded), sizeof(float), err);
	ex->partial = arena_try_array(&ex->arena, (size_t)line, sizeof(float), err);
	ex->order = arena_try_array(&ex->arena, (size_t)line, sizeof(size_t), err);
	return ex->unfolded && ex->packed && ex->partial && ex->order ? PRONY_OK : PRONY_NOMEM;
}
