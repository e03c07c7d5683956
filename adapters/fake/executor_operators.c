/* The operators other than products, and the table of all operators. */
#include <math.h>
#include <string.h>

#include "adapters/fake/executor_internal.h"
#include "base/random.h"

/* Returns the index in the plane of the first maximum of a window, row-major; -1 for an empty
 * window. */
static int64_t pool_argmax(const struct attributes *a, const struct shape *x, const float *plane,
			   int64_t row, int64_t column)
{
	int64_t best = -1;

	for (int64_t kh = 0; kh < a->kernel[0]; kh++) {
		int64_t h = row * a->strides[0] - a->pads[0] + kh * a->dilations[0];

		if (h < 0 || h >= x->dims[2])
			continue;
		for (int64_t kw = 0; kw < a->kernel[1]; kw++) {
			int64_t w = column * a->strides[1] - a->pads[1] + kw * a->dilations[1];
			int64_t i = h * x->dims[3] + w;

			if (w >= 0 && w < x->dims[3] && (best < 0 || plane[i] > plane[best]))
				best = i;
		}
	}
	return best;
}

/* Adds dy to dx at every element of the window that equals the one at `best`. */
static void give_to_equals(const struct attributes *a, const struct shape *x, const float *plane,
			   int64_t row, int64_t column, int64_t best, float dy, float *dx)
{
	for (int64_t k = 0; k < a->kernel[0] * a->kernel[1]; k++) {
		int64_t h = row * a->strides[0] - a->pads[0] + k / a->kernel[1] * a->dilations[0];
		int64_t w =
			column * a->strides[1] - a->pads[1] + k % a->kernel[1] * a->dilations[1];

		if (h >= 0 && h < x->dims[2] && w >= 0 && w < x->dims[3] &&
		    plane[h * x->dims[3] + w] == plane[best])
			dx[h * x->dims[3] + w] += dy;
	}
}

/* Forward: y = the maxima of x. Backward (dx given): y holds dy, which is added to dx at the places
 * of the maxima. */
static void pool(const struct call *c, int x_value, int y_value, float *dx)
{
	const struct shape *x = &c->ex->graph->values[x_value].shape;
	const struct shape *y = &c->ex->graph->values[y_value].shape;
	int64_t planes = x->dims[0] * x->dims[1], x_plane = x->dims[2] * x->dims[3];
	float *out = c->ex->values[y_value];

	for (int64_t p = 0; p < planes; p++) {
		const float *plane = c->ex->values[x_value] + p * x_plane;

		for (int64_t h = 0; h < y->dims[2]; h++)
			for (int64_t w = 0; w < y->dims[3]; w++, out++) {
				int64_t best = pool_argmax(c->a, x, plane, h, w);

				if (dx && best >= 0 && c->ex->settings.each_maximum)
					give_to_equals(c->a, x, plane, h, w, best, *out,
						       dx + p * x_plane);
				else if (dx && best >= 0)
					dx[p * x_plane + best] += *out;
				else if (!dx)
					*out = best >= 0 ? plane[best] : -INFINITY;
			}
	}
}

static void max_pool(const struct call *c)
{
	pool(c, c->node->inputs[0], c->node->outputs[0], NULL);
}

static void max_pool_grad(const struct call *c)
{
	memset(call_output(c, 0), 0, (size_t)call_count(c) * sizeof(float));
	pool(c, c->node->inputs[1], c->node->inputs[0], call_output(c, 0));
}

static void relu(const struct call *c)
{
	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = fmaxf(call_input(c, 0)[i], 0);
}

static void relu_grad(const struct call *c)
{
	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = call_input(c, 1)[i] > 0 ? call_input(c, 0)[i] : 0;
}

/* Applies the function in the operator's row. */
static void elementwise(const struct call *c)
{
	const struct elementwise *function = operator_row(c->node->op)->elementwise;

	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = (float)function->value(c->a, (double)call_input(c, 0)[i]);
}

static void elementwise_grad(const struct call *c)
{
	enum op forward = c->ex->graph->nodes[c->node->differentiates].op;
	const struct elementwise *function = operator_row(forward)->elementwise;

	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = (float)((double)call_input(c, 0)[i] *
					       function->slope(c->a, (double)call_input(c, 1)[i]));
}

static void copy(const struct call *c)
{
	memcpy(call_output(c, 0), call_input(c, 0), (size_t)call_count(c) * sizeof(float));
}

static void add(const struct call *c)
{
	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = call_input(c, 0)[i] + call_input(c, 1)[i];
}

/* Output 1, if present, is the factor of the gradient. */
static void dropout(const struct call *c)
{
	double ratio = c->training && c->ex->recipe->dropout ? c->a->ratio : 0;
	float *mask = call_output(c, 1);
	struct random random;

	random_init_named(&random, c->ex->recipe->seed + (uint64_t)c->ex->step, c->node->name);
	for (int64_t i = 0; i < call_count(c); i++) {
		float scale = 1;

		if (ratio > 0)
			scale = random_uniform(&random) < ratio ? 0 : (float)(1 / (1 - ratio));
		call_output(c, 0)[i] = call_input(c, 0)[i] * scale;
		if (mask)
			mask[i] = scale;
	}
}

static void dropout_grad(const struct call *c)
{
	for (int64_t i = 0; i < call_count(c); i++)
		call_output(c, 0)[i] = call_input(c, 0)[i] * call_input(c, 1)[i];
}

/* Returns the sum over channel `channel` of (x - shift) * y, a plane at a time; y NULL: of x -
 * shift. */
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
	return (float)(c->ex->settings.norm_epsilon > 0 ? c->ex->settings.norm_epsilon
							: c->a->epsilon);
}

static void batch_norm(const struct call *c)
{
	const int64_t *dims = call_input_dims(c, 0);
	int64_t plane = dims[2] * dims[3];
	float count = (float)(dims[0] * plane), *y = call_output(c, 0);
	const float *x = call_input(c, 0);

	for (int64_t k = 0; k < dims[1]; k++) {
		float mean = call_input(c, 3)[k], variance = call_input(c, 4)[k];

		if (c->training) {
			mean = channel_sum(dims, k, x, 0, NULL) / count;
			variance = channel_sum(dims, k, x, mean, x) / count;
			call_output(c, 1)[k] = mean;
			call_output(c, 2)[k] = variance;
		}
		float factor = call_input(c, 1)[k] / sqrtf(variance + norm_epsilon(c));
		float shift = call_input(c, 2)[k] - mean * factor;
		for (int64_t i = 0; i < dims[0] * plane; i++) {
			int64_t at = (i / plane * dims[1] + k) * plane + i % plane;

			y[at] = x[at] * factor + shift;
		}
	}
}

static void batch_norm_grad(const struct call *c)
{
	const int64_t *dims = call_input_dims(c, 1);
	int64_t plane = dims[2] * dims[3];
	float count = (float)(dims[0] * plane), *dx = call_output(c, 0);
	const float *dy = call_input(c, 0), *x = call_input(c, 1);

	for (int64_t k = 0; k < dims[1]; k++) {
		float mean = call_input(c, 3)[k],
		      inverse = 1 / sqrtf(call_input(c, 4)[k] + norm_epsilon(c));
		float dbias = channel_sum(dims, k, dy, 0, NULL), products = 0;

		for (int64_t n = 0; n < dims[0]; n++) {
			int64_t at = (n * dims[1] + k) * plane;
			float partial = 0;

			for (int64_t i = at; i < at + plane; i++)
				partial += dy[i] * (x[i] - mean);
			products += partial;
		}
		float dscale = products * inverse, factor = call_input(c, 2)[k] * inverse;
		for (int64_t i = 0; dx && i < dims[0] * plane; i++) {
			int64_t at = (i / plane * dims[1] + k) * plane + i % plane;

			dx[at] = factor * (dy[at] - dbias / count -
					   (x[at] - mean) * inverse * (dscale / count));
		}
		if (call_output(c, 1))
			call_output(c, 1)[k] = dscale;
		if (call_output(c, 2))
			call_output(c, 2)[k] = dbias;
	}
}

static void global_average(const struct call *c)
{
	const int64_t *dims = call_input_dims(c, 0);
	int64_t plane = dims[2] * dims[3];

	for (int64_t p = 0; p < dims[0] * dims[1]; p++) {
		float sum = 0;

		for (int64_t i = 0; i < plane; i++)
			sum += call_input(c, 0)[p * plane + i];
		call_output(c, 0)[p] = sum / (float)plane;
	}
}

static void global_average_grad(const struct call *c)
{
	const int64_t *dims = call_output_dims(c, 0);
	int64_t plane = dims[2] * dims[3];

	for (int64_t i = 0; i < dims[0] * dims[1] * plane; i++)
		call_output(c, 0)[i] = call_input(c, 0)[i / plane] / (float)plane;
}

static void cross_entropy(const struct call *c)
{
	const int64_t *dims = call_input_dims(c, 0);
	const float *logits = call_input(c, 0);
	bool gradient = c->node->op == OP_SOFTMAX_CROSS_ENTROPY_GRAD;
	float loss = 0, batch = (float)dims[0];

	for (int64_t n = 0; c->ex->labels && n < dims[0]; n++) {
		const float *row = logits + n * dims[1];
		float largest = -INFINITY, sum = 0;
		int64_t label = c->ex->labels[n];

		for (int64_t k = 0; k < dims[1]; k++)
			largest = fmaxf(largest, row[k]);
		for (int64_t k = 0; k < dims[1]; k++)
			sum += expf(row[k] - largest);
		loss += logf(sum) + largest - row[label];
		for (int64_t k = 0; gradient && k < dims[1]; k++)
			call_output(c, 0)[n * dims[1] + k] =
				(expf(row[k] - largest) / sum - (k == label ? 1.0f : 0.0f)) / batch;
	}
	if (!gradient && c->ex->labels)
		call_output(c, 0)[0] = loss / batch;
}

static executor_operator *const operators[OP_COUNT] = {
	[OP_CONV] = executor_conv,
	[OP_CONV_GRAD_INPUT] = executor_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = executor_conv_grad_weight,
	[OP_GEMM] = executor_gemm,
	[OP_GEMM_GRAD_INPUT] = executor_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = executor_gemm_grad_weight,
	[OP_MAX_POOL] = max_pool,
	[OP_MAX_POOL_GRAD] = max_pool_grad,
	[OP_GLOBAL_AVERAGE_POOL] = global_average,
	[OP_GLOBAL_AVERAGE_POOL_GRAD] = global_average_grad,
	[OP_BATCH_NORM] = batch_norm,
	[OP_BATCH_NORM_GRAD] = batch_norm_grad,
	[OP_RELU] = relu,
	[OP_RELU_GRAD] = relu_grad,
	[OP_ELEMENTWISE_GRAD] = elementwise_grad,
	[OP_FLATTEN] = copy,
	[OP_FLATTEN_GRAD] = copy,
	[OP_IDENTITY] = copy,
	[OP_ADD] = add,
	[OP_DROPOUT] = dropout,
	[OP_DROPOUT_GRAD] = dropout_grad,
	[OP_SOFTMAX_CROSS_ENTROPY] = cross_entropy,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = cross_entropy,
};

executor_operator *executor_find(enum op op)
{
	if (operators[op])
		return operators[op];
	return operator_row(op)->elementwise ? elementwise : NULL;
}
