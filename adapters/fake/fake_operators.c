/* The operators of the fake adapter; shapes have been checked when the graph was read. */
#include <math.h>
#include <string.h>

#include "adapters/fake/fake_math.h"
#include "base/random.h"

static const struct shape *shape_of(const struct fake_network *net, int value)
{
	return &net->graph->values[value].shape;
}

static int64_t elements_of(const struct fake_network *net, int value)
{
	return shape_elements(shape_of(net, value));
}

static bool training(const struct fake_network *net)
{
	return net->recipe.stage != STAGE_FORWARD;
}

/* Round to nearest, ties to even, 10 explicit bits of mantissa: what tensor cores do to TF32. */
static float round_tf32(float x)
{
	uint32_t bits;

	if (!isfinite(x))
		return x;
	memcpy(&bits, &x, sizeof bits);
	bits += 0xfffu + ((bits >> 13) & 1u);
	bits &= ~0x1fffu;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* An operand of a product: rounded into scratch memory where TF32 is on. */
static const float *operand(struct fake_network *net, int value, int which)
{
	const float *x = net->values[value];

	if (!net->mutants.tf32)
		return x;
	for (int64_t i = 0, n = elements_of(net, value); i < n; i++)
		net->scratch[which][i] = round_tf32(x[i]);
	return net->scratch[which];
}

enum conv_pass { CONV_FORWARD, CONV_TO_INPUT, CONV_TO_WEIGHT };

struct conv {
	enum conv_pass pass;
	int64_t batch, in_channels, out_channels, group;
	int64_t in[2], out[2], kernel[2];
	const struct attributes *a;
	float *x, *w, *y; /* one of them is the result, according to the pass */
};

/* Output positions [*first, *last) of one axis whose tap at `offset` lies inside the input. */
static void valid_span(int64_t outputs, int64_t inputs, int64_t stride, int64_t offset,
		       int64_t *first, int64_t *last)
{
	*first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
	*last = offset >= inputs ? 0 : (inputs - 1 - offset) / stride + 1;
	if (*last > outputs)
		*last = outputs;
}

/* One row of outputs against one weight. */
static void conv_row(enum conv_pass pass, int64_t count, int64_t stride, float *restrict x,
		     float *restrict w, float *restrict y)
{
	if (pass == CONV_FORWARD) {
		float weight = *w;

		for (int64_t i = 0; i < count; i++)
			y[i] += weight * x[i * stride];
	} else if (pass == CONV_TO_INPUT) {
		float weight = *w;

		for (int64_t i = 0; i < count; i++)
			x[i * stride] += weight * y[i];
	} else {
		double sum = 0;

		for (int64_t i = 0; i < count; i++)
			sum += (double)x[i * stride] * (double)y[i];
		*w += (float)sum;
	}
}

/* One plane of the input against one plane of the output, all taps of the kernel. */
static void conv_plane(const struct conv *c, float *x, float *w, float *y)
{
	const struct attributes *a = c->a;

	for (int64_t kh = 0; kh < c->kernel[0]; kh++) {
		int64_t offset_h = kh * a->dilations[0] - a->pads[0], row, last_row;

		valid_span(c->out[0], c->in[0], a->strides[0], offset_h, &row, &last_row);
		for (; row < last_row; row++) {
			float *x_row = x + (row * a->strides[0] + offset_h) * c->in[1];
			float *y_row = y + row * c->out[1];

			for (int64_t kw = 0; kw < c->kernel[1]; kw++) {
				int64_t offset_w = kw * a->dilations[1] - a->pads[1], first, last;

				valid_span(c->out[1], c->in[1], a->strides[1], offset_w, &first,
					   &last);
				if (first < last)
					conv_row(c->pass, last - first, a->strides[1],
						 x_row + first * a->strides[1] + offset_w,
						 w + kh * c->kernel[1] + kw, y_row + first);
			}
		}
	}
}

static void conv_run(const struct conv *c)
{
	int64_t group_in = c->in_channels / c->group, group_out = c->out_channels / c->group;
	int64_t x_plane = c->in[0] * c->in[1], y_plane = c->out[0] * c->out[1];
	int64_t taps = c->kernel[0] * c->kernel[1];

	for (int64_t n = 0; n < c->batch; n++)
		for (int64_t o = 0; o < c->out_channels; o++)
			for (int64_t i = 0; i < group_in; i++) {
				int64_t channel = o / group_out * group_in + i;

				conv_plane(c, c->x + (n * c->in_channels + channel) * x_plane,
					   c->w + (o * group_in + i) * taps,
					   c->y + (n * c->out_channels + o) * y_plane);
			}
}

static struct conv conv_of(const struct fake_network *net, const struct node *node,
			   enum conv_pass pass, int x, int w, int y)
{
	const struct shape *xs = shape_of(net, x), *ws = shape_of(net, w), *ys = shape_of(net, y);

	return (struct conv){
		.pass = pass,
		.batch = xs->dims[0],
		.in_channels = xs->dims[1],
		.out_channels = ys->dims[1],
		.group = node->attributes.group,
		.in = {xs->dims[2], xs->dims[3]},
		.out = {ys->dims[2], ys->dims[3]},
		.kernel = {ws->dims[2], ws->dims[3]},
		.a = &node->attributes,
	};
}

/* The result is accumulated: forward starts from the bias, the gradients from zero. */
static void start_from(float *result, int64_t count)
{
	memset(result, 0, (size_t)count * sizeof *result);
}

static void op_conv(struct fake_network *net, const struct node *node)
{
	int y = node->outputs[0];
	struct conv c = conv_of(net, node, CONV_FORWARD, node->inputs[0], node->inputs[1], y);
	int64_t plane = c.out[0] * c.out[1];
	const float *bias = node->input_count > 2 && node->inputs[2] != VALUE_NONE
				    ? net->values[node->inputs[2]]
				    : NULL;

	for (int64_t i = 0, n = elements_of(net, y); i < n; i++)
		net->values[y][i] = bias ? bias[i / plane % c.out_channels] : 0;
	c.x = (float *)operand(net, node->inputs[0], 0);
	c.w = (float *)operand(net, node->inputs[1], 1);
	c.y = net->values[y];
	conv_run(&c);
}

static void op_conv_grad_input(struct fake_network *net, const struct node *node)
{
	int dy = node->inputs[0], w = node->inputs[1], dx = node->outputs[0];
	struct conv c = conv_of(net, node, CONV_TO_INPUT, dx, w, dy);

	c.x = net->values[dx];
	c.w = (float *)operand(net, w, 0);
	c.y = (float *)operand(net, dy, 1);
	start_from(c.x, elements_of(net, dx));
	conv_run(&c);
}

static bool has_output(const struct node *node, int i)
{
	return i < node->output_count && node->outputs[i] != VALUE_NONE;
}

static void op_conv_grad_weight(struct fake_network *net, const struct node *node)
{
	int x = node->inputs[0], dy = node->inputs[1], dw = node->outputs[0];
	struct conv c = conv_of(net, node, CONV_TO_WEIGHT, x, dw, dy);
	int64_t plane = c.out[0] * c.out[1];

	c.x = (float *)operand(net, x, 0);
	c.w = net->values[dw];
	c.y = (float *)operand(net, dy, 1);
	start_from(c.w, elements_of(net, dw));
	conv_run(&c);
	if (!has_output(node, 1))
		return;
	for (int64_t o = 0; o < c.out_channels; o++) {
		double sum = 0;

		for (int64_t n = 0; n < c.batch; n++) {
			const float *rows = net->values[dy] + (n * c.out_channels + o) * plane;

			for (int64_t i = 0; i < plane; i++)
				sum += (double)rows[i];
		}
		net->values[node->outputs[1]][o] = (float)sum;
	}
}

struct matrix {
	float *data;
	int64_t rows, columns, row_stride, column_stride;
};

static struct matrix matrix_of(const float *data, const struct shape *shape, bool transposed)
{
	struct matrix m = {(float *)data, shape->dims[0], shape->dims[1], shape->dims[1], 1};

	if (transposed)
		m = (struct matrix){m.data, m.columns, m.rows, m.column_stride, m.row_stride};
	return m;
}

static struct matrix transpose(struct matrix m)
{
	return (struct matrix){m.data, m.columns, m.rows, m.column_stride, m.row_stride};
}

/* c = alpha * a * b; rows of b in the inner loop where they are contiguous, else dot products. */
static void multiply(struct matrix c, struct matrix a, struct matrix b, double alpha)
{
	for (int64_t i = 0; i < c.rows; i++) {
		float *c_row = c.data + i * c.row_stride;
		const float *a_row = a.data + i * a.row_stride;

		if (b.column_stride == 1 && c.column_stride == 1) {
			memset(c_row, 0, (size_t)c.columns * sizeof *c_row);
			for (int64_t k = 0; k < a.columns; k++) {
				float scale = (float)alpha * a_row[k * a.column_stride];
				const float *b_row = b.data + k * b.row_stride;

				for (int64_t j = 0; j < c.columns; j++)
					c_row[j] += scale * b_row[j];
			}
			continue;
		}
		for (int64_t j = 0; j < c.columns; j++) {
			const float *b_column = b.data + j * b.column_stride;
			double sum = 0;

			for (int64_t k = 0; k < a.columns; k++)
				sum += (double)a_row[k * a.column_stride] *
				       (double)b_column[k * b.row_stride];
			c_row[j * c.column_stride] = (float)(alpha * sum);
		}
	}
}

static void op_gemm(struct fake_network *net, const struct node *node)
{
	const struct attributes *attributes = &node->attributes;
	int y = node->outputs[0];
	struct matrix c = matrix_of(net->values[y], shape_of(net, y), false);

	multiply(c,
		 matrix_of(operand(net, node->inputs[0], 0), shape_of(net, node->inputs[0]),
			   attributes->trans_a),
		 matrix_of(operand(net, node->inputs[1], 1), shape_of(net, node->inputs[1]),
			   attributes->trans_b),
		 attributes->alpha);
	if (node->input_count < 3 || node->inputs[2] == VALUE_NONE)
		return;
	const float *bias = net->values[node->inputs[2]]; /* one per column: graph/gemm.c */

	for (int64_t i = 0; i < c.rows; i++)
		for (int64_t j = 0; j < c.columns; j++)
			c.data[i * c.columns + j] += (float)attributes->beta * bias[j];
}

/* With A' and B' the operands as multiplied: dA' = alpha dY B'^T. */
static void op_gemm_grad_input(struct fake_network *net, const struct node *node)
{
	int dy = node->inputs[0], b = node->inputs[1], da = node->outputs[0];
	const struct attributes *attributes = &node->attributes;

	multiply(matrix_of(net->values[da], shape_of(net, da), attributes->trans_a),
		 matrix_of(operand(net, dy, 0), shape_of(net, dy), false),
		 transpose(matrix_of(operand(net, b, 1), shape_of(net, b), attributes->trans_b)),
		 attributes->alpha);
}

/* dB' = alpha A'^T dY, or its transpose dY^T A', so that the result's rows are contiguous. */
static void op_gemm_grad_weight(struct fake_network *net, const struct node *node)
{
	int a = node->inputs[0], dy = node->inputs[1], db = node->outputs[0];
	const struct attributes *attributes = &node->attributes;
	struct matrix left = matrix_of(operand(net, a, 0), shape_of(net, a), attributes->trans_a);
	struct matrix right = matrix_of(operand(net, dy, 1), shape_of(net, dy), false);
	struct matrix result = matrix_of(net->values[db], shape_of(net, db), false);

	if (attributes->trans_b)
		multiply(result, transpose(right), left, attributes->alpha);
	else
		multiply(result, transpose(left), right, attributes->alpha);
	if (!has_output(node, 1))
		return;
	for (int64_t j = 0; j < right.columns; j++) {
		double sum = 0;

		for (int64_t i = 0; i < right.rows; i++)
			sum += (double)net->values[dy][i * right.columns + j];
		net->values[node->outputs[1]][j] = (float)(attributes->beta * sum);
	}
}

/* Index in its plane of the first maximum of a window, row-major; -1 for an empty window. */
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

/* Forward: y = the maxima of x. Backward (dx given): dx gets y, which is then dy, at their places.
 */
static void pool(const struct fake_network *net, const struct node *node, int x_value, int y_value,
		 float *dx)
{
	const struct shape *x = shape_of(net, x_value), *y = shape_of(net, y_value);
	int64_t planes = x->dims[0] * x->dims[1], x_plane = x->dims[2] * x->dims[3];
	float *out = net->values[y_value];

	for (int64_t p = 0; p < planes; p++) {
		const float *plane = net->values[x_value] + p * x_plane;

		for (int64_t h = 0; h < y->dims[2]; h++)
			for (int64_t w = 0; w < y->dims[3]; w++, out++) {
				int64_t best = pool_argmax(&node->attributes, x, plane, h, w);

				if (dx && best >= 0)
					dx[p * x_plane + best] += *out;
				else if (!dx)
					*out = best >= 0 ? plane[best] : -INFINITY;
			}
	}
}

static void op_max_pool(struct fake_network *net, const struct node *node)
{
	pool(net, node, node->inputs[0], node->outputs[0], NULL);
}

static void op_max_pool_grad(struct fake_network *net, const struct node *node)
{
	float *dx = net->values[node->outputs[0]];

	start_from(dx, elements_of(net, node->outputs[0]));
	pool(net, node, node->inputs[1], node->inputs[0], dx);
}

static void op_relu(struct fake_network *net, const struct node *node)
{
	const float *x = net->values[node->inputs[0]];
	float *y = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		y[i] = x[i] > 0 ? x[i] : 0;
}

static void op_relu_grad(struct fake_network *net, const struct node *node)
{
	const float *dy = net->values[node->inputs[0]], *y = net->values[node->inputs[1]];
	float *dx = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		dx[i] = y[i] > 0 ? dy[i] : 0;
}

/* Whatever the operator's row has a function for. */
static void op_elementwise(struct fake_network *net, const struct node *node)
{
	const struct elementwise *function = operator_row(node->op)->elementwise;
	const float *x = net->values[node->inputs[0]];
	float *y = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		y[i] = (float)function->value(&node->attributes, (double)x[i]);
}

static void op_elementwise_grad(struct fake_network *net, const struct node *node)
{
	enum op forward = net->graph->nodes[node->differentiates].op;
	const struct elementwise *function = operator_row(forward)->elementwise;
	const float *dy = net->values[node->inputs[0]], *x = net->values[node->inputs[1]];
	float *dx = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		dx[i] = (float)((double)dy[i] * function->slope(&node->attributes, (double)x[i]));
}

static void op_copy(struct fake_network *net, const struct node *node)
{
	memcpy(net->values[node->outputs[0]], net->values[node->inputs[0]],
	       (size_t)elements_of(net, node->outputs[0]) * sizeof(float));
}

static void op_add(struct fake_network *net, const struct node *node)
{
	const float *a = net->values[node->inputs[0]], *b = net->values[node->inputs[1]];
	float *y = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		y[i] = a[i] + b[i];
}

static void op_dropout(struct fake_network *net, const struct node *node)
{
	const float *x = net->values[node->inputs[0]];
	float *y = net->values[node->outputs[0]];
	float *mask = has_output(node, 1) ? net->values[node->outputs[1]] : NULL;
	double ratio = training(net) && net->recipe.dropout ? node->attributes.ratio : 0;
	struct random random;

	random_init_named(&random, net->recipe.seed + (uint64_t)net->step, node->name);
	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++) {
		float scale = 1;

		if (ratio > 0)
			scale = random_uniform(&random) < ratio ? 0 : (float)(1 / (1 - ratio));
		y[i] = x[i] * scale;
		if (mask)
			mask[i] = scale;
	}
}

static void op_dropout_grad(struct fake_network *net, const struct node *node)
{
	const float *dy = net->values[node->inputs[0]], *mask = net->values[node->inputs[1]];
	float *dx = net->values[node->outputs[0]];

	for (int64_t i = 0, n = elements_of(net, node->outputs[0]); i < n; i++)
		dx[i] = dy[i] * mask[i];
}

/* Maximum of one row and the sum of exp(x - maximum). */
static double softmax_sum(const float *row, int64_t classes, double *maximum)
{
	double sum = 0;

	*maximum = (double)row[0];
	for (int64_t j = 1; j < classes; j++)
		if ((double)row[j] > *maximum)
			*maximum = (double)row[j];
	for (int64_t j = 0; j < classes; j++)
		sum += exp((double)row[j] - *maximum);
	return sum;
}

static void op_cross_entropy(struct fake_network *net, const struct node *node)
{
	const struct shape *shape = shape_of(net, node->inputs[0]);
	int64_t batch = shape->dims[0], classes = shape->dims[1];
	double total = 0;

	if (!net->labels)
		return;
	for (int64_t i = 0; i < batch; i++) {
		const float *row = net->values[node->inputs[0]] + i * classes;
		double maximum, sum = softmax_sum(row, classes, &maximum);

		total += log(sum) + maximum - (double)row[net->labels[i]];
	}
	net->loss = total / (double)batch;
	net->values[node->outputs[0]][0] = (float)net->loss;
}

static void op_cross_entropy_grad(struct fake_network *net, const struct node *node)
{
	const struct shape *shape = shape_of(net, node->inputs[0]);
	int64_t batch = shape->dims[0], classes = shape->dims[1];

	for (int64_t i = 0; i < batch; i++) {
		const float *row = net->values[node->inputs[0]] + i * classes;
		float *gradient = net->values[node->outputs[0]] + i * classes;
		double maximum, sum = softmax_sum(row, classes, &maximum);

		for (int64_t j = 0; j < classes; j++) {
			double share = exp((double)row[j] - maximum) / sum;

			share -= net->labels && net->labels[i] == j ? 1 : 0;
			gradient[j] = (float)(share / (double)batch);
		}
	}
}

static fake_operator *const operators[OP_COUNT] = {
	[OP_CONV] = op_conv,
	[OP_CONV_GRAD_INPUT] = op_conv_grad_input,
	[OP_CONV_GRAD_WEIGHT] = op_conv_grad_weight,
	[OP_GEMM] = op_gemm,
	[OP_GEMM_GRAD_INPUT] = op_gemm_grad_input,
	[OP_GEMM_GRAD_WEIGHT] = op_gemm_grad_weight,
	[OP_MAX_POOL] = op_max_pool,
	[OP_MAX_POOL_GRAD] = op_max_pool_grad,
	[OP_RELU] = op_relu,
	[OP_RELU_GRAD] = op_relu_grad,
	[OP_ELEMENTWISE_GRAD] = op_elementwise_grad,
	[OP_FLATTEN] = op_copy,
	[OP_FLATTEN_GRAD] = op_copy,
	[OP_ADD] = op_add,
	[OP_DROPOUT] = op_dropout,
	[OP_DROPOUT_GRAD] = op_dropout_grad,
	[OP_SOFTMAX_CROSS_ENTROPY] = op_cross_entropy,
	[OP_SOFTMAX_CROSS_ENTROPY_GRAD] = op_cross_entropy_grad,
};

fake_operator *fake_operator_find(enum op op)
{
	if ((unsigned)op >= OP_COUNT)
		return NULL;
	if (operators[op])
		return operators[op];
	return operator_row(op)->elementwise ? op_elementwise : NULL;
}
