#include "executor_f32.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"

static float *allocate(int64_t count)
{
	float *data = memory_alloc((size_t)(count > 0 ? count : 1) * sizeof(float));

	memset(data, 0, (size_t)count * sizeof(float));
	return data;
}

static float rounded(float x, int bits)
{
	int exponent;

	if (bits >= 24 || x == 0 || !isfinite(x))
		return x;
	float mantissa = frexpf(x, &exponent);
	return ldexpf(rintf(ldexpf(mantissa, bits)), exponent - bits);
}

static float *rounded_copy(const float *x, int64_t count, int bits)
{
	float *copy = allocate(count);

	for (int64_t i = 0; i < count; i++)
		copy[i] = rounded(x[i], bits);
	return copy;
}

static size_t *summation_order(const struct executor_f32 *ex, int64_t count)
{
	size_t *order = memory_alloc((size_t)(count + 1) * sizeof(*order));
	struct random random;

	for (int64_t i = 0; i < count; i++)
		order[i] = (size_t)i;
	random_init(&random, ex->order_seed);
	if (ex->order_seed)
		random_shuffle(&random, order, (size_t)count);
	return order;
}

/* c(m x n) += a(m x k) b(k x n), all row-major, in the executor's order and precision. */
static void gemm(const struct executor_f32 *ex, int64_t m, int64_t n, int64_t k, const float *a_in,
		 const float *b_in, float *c)
{
	float *a = rounded_copy(a_in, m * k, ex->operand_bits);
	float *b = rounded_copy(b_in, k * n, ex->operand_bits);
	float *partial = allocate(n);
	size_t *order = summation_order(ex, k);
	int64_t chunk = ex->chunk > 0 ? ex->chunk : k + 1;

	for (int64_t i = 0; i < m; i++) {
		for (int64_t p = 0; p < k; p++) {
			int64_t index = (int64_t)order[p];
			const float *row = b + index * n;
			float factor = a[i * k + index];

			for (int64_t j = 0; j < n; j++)
				partial[j] += factor * row[j];
			if (p + 1 < k && (p + 1) % chunk != 0)
				continue;
			for (int64_t j = 0; j < n; j++) {
				c[i * n + j] += partial[j];
				partial[j] = 0;
			}
		}
	}
	free(order);
	free(partial);
	free(b);
	free(a);
}

static float *transposed(const float *x, int64_t rows, int64_t columns)
{
	float *copy = allocate(rows * columns);

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			copy[j * rows + i] = x[i * columns + j];
	return copy;
}

struct call {
	const struct executor_f32 *ex;
	const struct node *node;
	const struct attributes *a;
	bool training;
};

static float *input(const struct call *c, int i)
{
	bool there = i < c->node->input_count && c->node->inputs[i] != VALUE_NONE;

	return there ? c->ex->values[c->node->inputs[i]] : NULL;
}

static float *output(const struct call *c, int i)
{
	bool there = i < c->node->output_count && c->node->outputs[i] != VALUE_NONE;

	return there ? c->ex->values[c->node->outputs[i]] : NULL;
}

static const int64_t *input_dims(const struct call *c, int i)
{
	return c->ex->graph->values[c->node->inputs[i]].shape.dims;
}

static const int64_t *output_dims(const struct call *c, int i)
{
	return c->ex->graph->values[c->node->outputs[i]].shape.dims;
}

static int64_t output_count(const struct call *c)
{
	return shape_elements(&c->ex->graph->values[c->node->outputs[0]].shape);
}

/* Position in the image of row `row` and column `column` of the unfolded matrix; -1: padding. */
static int64_t unfold_index(const struct attributes *a, const int64_t *x, const int64_t *y,
			    int64_t row, int64_t column)
{
	int64_t channel = row / (a->kernel[0] * a->kernel[1]);
	int64_t tap = row % (a->kernel[0] * a->kernel[1]);
	int64_t h =
		column / y[3] * a->strides[0] + tap / a->kernel[1] * a->dilations[0] - a->pads[0];
	int64_t w =
		column % y[3] * a->strides[1] + tap % a->kernel[1] * a->dilations[1] - a->pads[1];

	if (h < 0 || h >= x[2] || w < 0 || w >= x[3])
		return -1;
	return (channel * x[2] + h) * x[3] + w;
}

static float *unfold(const struct attributes *a, const float *image, const int64_t *x,
		     const int64_t *y)
{
	int64_t rows = x[1] * a->kernel[0] * a->kernel[1], columns = y[2] * y[3];
	float *matrix = allocate(rows * columns);

	for (int64_t r = 0; r < rows; r++) {
		for (int64_t c = 0; c < columns; c++) {
			int64_t at = unfold_index(a, x, y, r, c);

			matrix[r * columns + c] = at < 0 ? 0 : image[at];
		}
	}
	return matrix;
}

static void conv(const struct call *c)
{
	const int64_t *x = input_dims(c, 0), *k = input_dims(c, 1), *y = output_dims(c, 0);
	int64_t depth = k[1] * k[2] * k[3], plane = y[2] * y[3];
	const float *bias = input(c, 2);
	float *out = output(c, 0);

	assert_int_equal(c->a->group, 1);
	memset(out, 0, (size_t)output_count(c) * sizeof(float));
	for (int64_t n = 0; n < x[0]; n++) {
		float *matrix = unfold(c->a, input(c, 0) + n * x[1] * x[2] * x[3], x, y);

		gemm(c->ex, k[0], plane, depth, input(c, 1), matrix, out + n * k[0] * plane);
		free(matrix);
	}
	for (int64_t i = 0; bias && i < output_count(c); i++)
		out[i] += bias[i / plane % k[0]];
}

static void conv_grad_input(const struct call *c)
{
	const int64_t *y = input_dims(c, 0), *k = input_dims(c, 1), *x = output_dims(c, 0);
	int64_t depth = k[1] * k[2] * k[3], plane = y[2] * y[3];
	float *turned = transposed(input(c, 1), k[0], depth), *dx = output(c, 0);

	memset(dx, 0, (size_t)output_count(c) * sizeof(float));
	for (int64_t n = 0; n < x[0]; n++) {
		float *matrix = allocate(depth * plane);

		gemm(c->ex, depth, plane, k[0], turned, input(c, 0) + n * k[0] * plane, matrix);
		for (int64_t i = 0; i < depth * plane; i++) {
			int64_t at = unfold_index(c->a, x, y, i / plane, i % plane);

			if (at >= 0)
				dx[n * x[1] * x[2] * x[3] + at] += matrix[i];
		}
		free(matrix);
	}
	free(turned);
}

static void conv_grad_weight(const struct call *c)
{
	const int64_t *x = input_dims(c, 0), *y = input_dims(c, 1), *k = output_dims(c, 0);
	int64_t depth = k[1] * k[2] * k[3], plane = y[2] * y[3];
	const float *dy = input(c, 1);
	float *dw = output(c, 0), *db = output(c, 1);

	memset(dw, 0, (size_t)output_count(c) * sizeof(float));
	for (int64_t n = 0; n < x[0]; n++) {
		float *matrix = unfold(c->a, input(c, 0) + n * x[1] * x[2] * x[3], x, y);
		float *turned = transposed(matrix, depth, plane);

		gemm(c->ex, k[0], depth, plane, dy + n * k[0] * plane, turned, dw);
		free(turned);
		free(matrix);
	}
	if (!db)
		return;
	memset(db, 0, (size_t)k[0] * sizeof(float));
	for (int64_t i = 0; i < x[0] * k[0] * plane; i++)
		db[i / plane % k[0]] += dy[i];
}

/* The networks under test multiply by transposed weights and nothing else. */
static void check_gemm(const struct call *c)
{
	assert_true(c->a->alpha == 1 && c->a->beta == 1 && !c->a->trans_a && c->a->trans_b);
}

static void matrix_product(const struct call *c)
{
	const int64_t *a = input_dims(c, 0), *y = output_dims(c, 0);
	float *turned = transposed(input(c, 1), y[1], a[1]), *out = output(c, 0);
	const float *bias = input(c, 2);

	check_gemm(c);
	memset(out, 0, (size_t)output_count(c) * sizeof(float));
	gemm(c->ex, y[0], y[1], a[1], input(c, 0), turned, out);
	for (int64_t i = 0; bias && i < output_count(c); i++)
		out[i] += bias[i % y[1]];
	free(turned);
}

static void matrix_grad_input(const struct call *c)
{
	const int64_t *dy = input_dims(c, 0), *b = input_dims(c, 1);

	check_gemm(c);
	memset(output(c, 0), 0, (size_t)output_count(c) * sizeof(float));
	gemm(c->ex, dy[0], b[1], dy[1], input(c, 0), input(c, 1), output(c, 0));
}

static void matrix_grad_weight(const struct call *c)
{
	const int64_t *a = input_dims(c, 0), *dy = input_dims(c, 1);
	float *turned = transposed(input(c, 1), dy[0], dy[1]), *db = output(c, 1);

	check_gemm(c);
	memset(output(c, 0), 0, (size_t)output_count(c) * sizeof(float));
	gemm(c->ex, dy[1], a[1], a[0], turned, input(c, 0), output(c, 0));
	free(turned);
	if (!db)
		return;
	memset(db, 0, (size_t)dy[1] * sizeof(float));
	for (int64_t i = 0; i < dy[0] * dy[1]; i++)
		db[i % dy[1]] += input(c, 1)[i];
}

/* `y` is NULL in the backward pass. */
static void pool(const struct call *c, const float *x, const int64_t *xd, const int64_t *yd,
		 float *y, const float *dy, float *dx)
{
	for (int64_t i = 0; i < yd[0] * yd[1] * yd[2] * yd[3]; i++) {
		int64_t plane = i / (yd[2] * yd[3]) * xd[2] * xd[3], best = -1;
		int64_t h = i / yd[3] % yd[2] * c->a->strides[0] - c->a->pads[0];
		int64_t w = i % yd[3] * c->a->strides[1] - c->a->pads[1];

		for (int64_t tap = 0; tap < c->a->kernel[0] * c->a->kernel[1]; tap++) {
			int64_t row = h + tap / c->a->kernel[1], column = w + tap % c->a->kernel[1];
			int64_t at = plane + row * xd[3] + column;

			if (row < 0 || column < 0 || row >= xd[2] || column >= xd[3])
				continue;
			if (best < 0 || x[at] > x[best])
				best = at;
		}
		if (y)
			y[i] = x[best];
		else
			dx[best] += dy[i];
	}
}

static void max_pool(const struct call *c)
{
	pool(c, input(c, 0), input_dims(c, 0), output_dims(c, 0), output(c, 0), NULL, NULL);
}

static void max_pool_grad(const struct call *c)
{
	memset(output(c, 0), 0, (size_t)output_count(c) * sizeof(float));
	pool(c, input(c, 1), input_dims(c, 1), input_dims(c, 0), NULL, input(c, 0), output(c, 0));
}

static void relu(const struct call *c)
{
	for (int64_t i = 0; i < output_count(c); i++)
		output(c, 0)[i] = fmaxf(input(c, 0)[i], 0);
}

static void relu_grad(const struct call *c)
{
	for (int64_t i = 0; i < output_count(c); i++)
		output(c, 0)[i] = input(c, 1)[i] > 0 ? input(c, 0)[i] : 0;
}

static void copy(const struct call *c)
{
	memcpy(output(c, 0), input(c, 0), (size_t)output_count(c) * sizeof(float));
}

static void add(const struct call *c)
{
	for (int64_t i = 0; i < output_count(c); i++)
		output(c, 0)[i] = input(c, 0)[i] + input(c, 1)[i];
}

/* Sum over channel `channel` of (x - shift) * y, a plane at a time; y NULL: of x - shift. */
static float channel_sum(const int64_t *dims, int64_t channel, const float *x, float shift,
			 const float *y)
{
	int64_t plane = dims[2] * dims[3];
	float sum = 0;

	for (int64_t n = 0; n < dims[0]; n++) {
		int64_t at = (n * dims[1] + channel) * plane;
		float partial = 0;

		for (int64_t i = at; i < at + plane; i++)
			partial += (x[i] - shift) * (y ? y[i] - shift : 1);
		sum += partial;
	}
	return sum;
}

static float norm_epsilon(const struct call *c)
{
	return (float)(c->ex->norm_epsilon > 0 ? c->ex->norm_epsilon : c->a->epsilon);
}

static void batch_norm(const struct call *c)
{
	const int64_t *dims = input_dims(c, 0);
	int64_t plane = dims[2] * dims[3];
	float count = (float)(dims[0] * plane), *y = output(c, 0);
	const float *x = input(c, 0);

	for (int64_t k = 0; k < dims[1]; k++) {
		float mean = input(c, 3)[k], variance = input(c, 4)[k];

		if (c->training) {
			mean = channel_sum(dims, k, x, 0, NULL) / count;
			variance = channel_sum(dims, k, x, mean, x) / count;
			output(c, 1)[k] = mean;
			output(c, 2)[k] = variance;
		}
		float factor = input(c, 1)[k] / sqrtf(variance + norm_epsilon(c));
		float shift = input(c, 2)[k] - mean * factor;
		for (int64_t i = 0; i < dims[0] * plane; i++) {
			int64_t at = (i / plane * dims[1] + k) * plane + i % plane;

			y[at] = x[at] * factor + shift;
		}
	}
}

static void batch_norm_grad(const struct call *c)
{
	const int64_t *dims = input_dims(c, 1);
	int64_t plane = dims[2] * dims[3];
	float count = (float)(dims[0] * plane), *dx = output(c, 0);
	const float *dy = input(c, 0), *x = input(c, 1);

	for (int64_t k = 0; k < dims[1]; k++) {
		float mean = input(c, 3)[k], inverse = 1 / sqrtf(input(c, 4)[k] + norm_epsilon(c));
		float dbias = channel_sum(dims, k, dy, 0, NULL), products = 0;

		for (int64_t n = 0; n < dims[0]; n++) {
			int64_t at = (n * dims[1] + k) * plane;
			float partial = 0;

			for (int64_t i = at; i < at + plane; i++)
				partial += dy[i] * (x[i] - mean);
			products += partial;
		}
		float dscale = products * inverse, factor = input(c, 2)[k] * inverse;
		for (int64_t i = 0; dx && i < dims[0] * plane; i++) {
			int64_t at = (i / plane * dims[1] + k) * plane + i % plane;

			dx[at] = factor * (dy[at] - dbias / count -
					   (x[at] - mean) * inverse * (dscale / count));
		}
		if (output(c, 1))
			output(c, 1)[k] = dscale;
		if (output(c, 2))
			output(c, 2)[k] = dbias;
	}
}

static void global_average(const struct call *c)
{
	const int64_t *dims = input_dims(c, 0);
	int64_t plane = dims[2] * dims[3];

	for (int64_t p = 0; p < dims[0] * dims[1]; p++) {
		float sum = 0;

		for (int64_t i = 0; i < plane; i++)
			sum += input(c, 0)[p * plane + i];
		output(c, 0)[p] = sum / (float)plane;
	}
}

static void global_average_grad(const struct call *c)
{
	const int64_t *dims = output_dims(c, 0);
	int64_t plane = dims[2] * dims[3];

	for (int64_t i = 0; i < dims[0] * dims[1] * plane; i++)
		output(c, 0)[i] = input(c, 0)[i / plane] / (float)plane;
}

/* What the running statistics of a normalisation become. */
static void follow(const struct executor_f32 *ex, const struct node *node)
{
	const struct shape *x = &ex->graph->values[node->inputs[0]].shape;
	float momentum =
		(float)(ex->norm_momentum > 0 ? ex->norm_momentum : node->attributes.momentum);
	float count = (float)(shape_elements(x) / x->dims[1]);

	for (int i = 0; i < 2; i++) {
		float *running = ex->values[node->inputs[3 + i]];
		float factor = i == 1 && ex->unbiased ? count / (count - 1) : 1;

		for (int64_t k = 0; k < x->dims[1]; k++)
			running[k] = momentum * running[k] +
				     (1 - momentum) * factor * ex->values[node->outputs[1 + i]][k];
	}
}

static void cross_entropy(const struct call *c)
{
	const int64_t *dims = input_dims(c, 0);
	const float *logits = input(c, 0), *labels = input(c, 1);
	bool gradient = c->node->op == OP_SOFTMAX_CROSS_ENTROPY_GRAD;
	float loss = 0, batch = (float)dims[0];

	for (int64_t n = 0; n < dims[0]; n++) {
		const float *row = logits + n * dims[1];
		float largest = -INFINITY, sum = 0;
		int64_t label = (int64_t)labels[n];

		for (int64_t k = 0; k < dims[1]; k++)
			largest = fmaxf(largest, row[k]);
		for (int64_t k = 0; k < dims[1]; k++)
			sum += expf(row[k] - largest);
		loss += logf(sum) + largest - row[label];
		for (int64_t k = 0; gradient && k < dims[1]; k++)
			output(c, 0)[n * dims[1] + k] =
				(expf(row[k] - largest) / sum - (k == label ? 1.0f : 0.0f)) / batch;
	}
	if (!gradient)
		output(c, 0)[0] = loss / batch;
}

static void (*const kernels[OP_COUNT])(const struct call *c) = {
	[OP_CONV] = conv,
	[OP_MAX_POOL] = max_pool,
	[OP_GEMM] = matrix_product,
	[OP_RELU] = relu,
	[OP_FLATTEN] = copy,
	[OP_DROPOUT] = copy,
	[OP_ADD] = add,
	[OP_BATCH_NORM] = batch_norm,
	[OP_BATCH_NORM_GRAD] = batch_norm_grad,
	[OP_GLOBAL_AVERAGE_POOL] = global_average,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = global_average_grad,
	[OP_IDENTITY] = copy,
	[OP_SOFTMAX_CROSS_ENTROPY] = cross_entropy,
	[OP_CONV_GRAD_INPUT] = conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = conv_grad_weight,
	[OP_MAX_POOL_GRAD] = max_pool_grad,
	[OP_GEMM_GRAD_INPUT] = matrix_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = matrix_grad_weight,
	[OP_RELU_GRAD] = relu_grad,
	[OP_FLATTEN_GRAD] = copy,
	[OP_DROPOUT_GRAD] = copy,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = cross_entropy,
};

void executor_init(struct executor_f32 *ex, const struct graph *graph,
		   const struct tensor_set *weights)
{
	*ex = (struct executor_f32){.graph = graph, .operand_bits = 24};
	arena_init(&ex->arena, 0);
	ex->values = arena_array(&ex->arena, (size_t)graph->value_count, sizeof(float *));
	ex->moments = arena_array(&ex->arena, (size_t)graph->value_count, sizeof(float *));
	for (int i = 0; i < graph->value_count; i++) {
		size_t count = (size_t)shape_elements(&graph->values[i].shape);
		const struct tensor *tensor = tensor_find(weights, graph->values[i].name);

		ex->values[i] = arena_array(&ex->arena, count, sizeof(float));
		ex->moments[i] = arena_array(&ex->arena, count, sizeof(float));
		if (tensor)
			memcpy(ex->values[i], tensor->data, count * sizeof(float));
	}
}

void executor_release(struct executor_f32 *ex)
{
	arena_release(&ex->arena);
}

static void update(struct executor_f32 *ex, const struct recipe *recipe, int index)
{
	const struct value *value = &ex->graph->values[index];
	float *w = ex->values[index], *moment = ex->moments[index];
	float lr = (float)recipe->learning_rate, eps = (float)recipe->epsilon;
	float rho = (float)recipe->rho, mu = (float)recipe->momentum;
	bool spared = ex->rate_spares &&
		      strncmp(value->name, ex->rate_spares, strlen(ex->rate_spares)) == 0;

	if (ex->rate_factor > 0 && !spared)
		lr = (float)(recipe->learning_rate * ex->rate_factor);

	for (int64_t i = 0; i < shape_elements(&value->shape); i++) {
		float g = ex->values[value->gradient][i] + (float)recipe->weight_decay * w[i];

		if (recipe->optimiser == OPTIMISER_SGD) {
			w[i] -= lr * g;
		} else if (recipe->optimiser == OPTIMISER_MOMENTUM) {
			moment[i] = mu * moment[i] + g;
			w[i] -= lr * moment[i];
		} else {
			moment[i] = rho * moment[i] + (1 - rho) * g * g;
			w[i] -= lr * g /
				(ex->epsilon_inside ? sqrtf(moment[i] + eps)
						    : sqrtf(moment[i]) + eps);
		}
	}
}

void executor_step(struct executor_f32 *ex, const struct recipe *recipe, const struct tensor *x,
		   const struct tensor *y)
{
	const struct graph *graph = ex->graph;
	bool training = recipe->stage != STAGE_FORWARD;
	int end = training ? graph->node_count : graph->forward_count - 1;

	memcpy(ex->values[graph->input], x->data, (size_t)tensor_bytes(x));
	for (int64_t i = 0; y && i < y->shape.dims[0]; i++)
		ex->values[graph->label][i] = (float)((const int64_t *)y->data)[i];
	for (int i = 0; i < end; i++) {
		struct call call = {ex, &graph->nodes[i], &graph->nodes[i].attributes, training};

		assert_non_null(kernels[call.node->op]);
		kernels[call.node->op](&call);
	}
	for (int i = 0; training && i < graph->forward_count; i++)
		if (graph->nodes[i].op == OP_BATCH_NORM)
			follow(ex, &graph->nodes[i]);
	for (int i = 0; training && i < graph->value_count; i++) {
		const struct value *value = &graph->values[i];

		if (value->kind != VALUE_PARAMETER)
			continue;
		if (ex->frozen && strncmp(value->name, ex->frozen, strlen(ex->frozen)) == 0)
			memset(ex->values[value->gradient], 0,
			       (size_t)shape_elements(&value->shape) * sizeof(float));
		if (recipe->stage == STAGE_TRAIN)
			update(ex, recipe, i);
	}
}

struct tensor executor_tensor(const struct executor_f32 *ex, int value)
{
	const struct value *v = &ex->graph->values[value];

	return (struct tensor){v->name, DTYPE_F32, v->shape, ex->values[value]};
}
