/* Functions of each element, their slopes, and functions of two elements. */
#include <assert.h>
#include <float.h>
#include <math.h>

#include "adapters/xla/emit_internal.h"

typedef struct hlo element_function(struct hlo_text *h, const struct attributes *a, struct hlo x);

static struct hlo add(struct hlo_text *h, struct hlo a, double b)
{
	return hlo_with(h, "add", a, b);
}

static struct hlo times(struct hlo_text *h, struct hlo a, double b)
{
	return hlo_with(h, "multiply", a, b);
}

static struct hlo product(struct hlo_text *h, struct hlo a, struct hlo b)
{
	return hlo_binary(h, "multiply", a, b);
}

static struct hlo one_minus(struct hlo_text *h, struct hlo x)
{
	return hlo_binary(h, "subtract", hlo_number(h, x, 1), x);
}

/* `inside` where low < x < high, else 0. */
static struct hlo between(struct hlo_text *h, struct hlo x, double low, double high,
			  struct hlo inside)
{
	struct hlo above = hlo_compare(h, "GT", x, hlo_number(h, x, low));
	struct hlo below = hlo_compare(h, "LT", x, hlo_number(h, x, high));

	return hlo_select(h, hlo_binary(h, "and", above, below), inside, hlo_number(h, x, 0));
}

static struct hlo where_positive(struct hlo_text *h, struct hlo x, struct hlo yes, struct hlo no)
{
	return hlo_select(h, hlo_compare(h, "GT", x, hlo_number(h, x, 0)), yes, no);
}

static struct hlo relu(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_with(h, "maximum", x, 0);
}

static struct hlo tangent(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_unary(h, "tanh", x);
}

static struct hlo tangent_slope(struct hlo_text *h, const struct attributes *a, struct hlo y)
{
	(void)a;
	return one_minus(h, product(h, y, y));
}

static struct hlo sigmoid(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_unary(h, "logistic", x);
}

static struct hlo sigmoid_slope(struct hlo_text *h, const struct attributes *a, struct hlo y)
{
	(void)a;
	return product(h, y, one_minus(h, y));
}

static struct hlo ramp(struct hlo_text *h, struct hlo x, double alpha, double beta)
{
	x = add(h, times(h, x, alpha), beta);
	return hlo_with(h, "minimum", hlo_with(h, "maximum", x, 0), 1);
}

static struct hlo hard_sigmoid(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return ramp(h, x, a->alpha, a->beta);
}

static struct hlo hard_sigmoid_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	struct hlo line = add(h, times(h, x, a->alpha), a->beta);

	return between(h, line, 0, 1, hlo_number(h, x, a->alpha));
}

static struct hlo hard_swish(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return product(h, x, ramp(h, x, 1.0 / 6, 0.5));
}

static struct hlo hard_swish_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	struct hlo inside = between(h, x, -3, 3, add(h, times(h, x, 1.0 / 3), 0.5));
	struct hlo high = hlo_compare(h, "GE", x, hlo_number(h, x, 3));

	(void)a;
	return hlo_select(h, high, hlo_number(h, x, 1), inside);
}

/* A bound that no number reaches is none; in bf16 it could not even be written. */
static struct hlo clip(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	if (a->min > -(double)FLT_MAX)
		x = hlo_with(h, "maximum", x, a->min);
	return a->max < (double)FLT_MAX ? hlo_with(h, "minimum", x, a->max) : x;
}

static struct hlo clip_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	const double most = 3e38;

	return between(h, x, fmax(a->min, -most), fmin(a->max, most), hlo_number(h, x, 1));
}

static struct hlo elu(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return where_positive(h, x, x,
			      times(h, hlo_unary(h, "exponential_minus_one", x), a->alpha));
}

static struct hlo elu_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return where_positive(h, x, hlo_number(h, x, 1),
			      times(h, hlo_unary(h, "exponential", x), a->alpha));
}

static struct hlo leaky_relu(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return where_positive(h, x, x, times(h, x, a->alpha));
}

static struct hlo leaky_relu_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return where_positive(h, x, hlo_number(h, x, 1), hlo_number(h, x, a->alpha));
}

static struct hlo exponential(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_unary(h, "exponential", x);
}

static struct hlo exponential_slope(struct hlo_text *h, const struct attributes *a, struct hlo y)
{
	(void)h;
	(void)a;
	return y;
}

static struct hlo square_root(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_unary(h, "sqrt", x);
}

static struct hlo square_root_slope(struct hlo_text *h, const struct attributes *a, struct hlo y)
{
	(void)a;
	return hlo_binary(h, "divide", hlo_number(h, y, 0.5), y);
}

/* Constants and forms of graph/elementwise.c. */
#define GELU_CUBE 0.044715
static const double root_2_pi = 0.79788456080286535588, root_half = 0.70710678118654752440;

/* tanh(sqrt(2 / pi) (x + 0.044715 x^3)), or erf(x / sqrt(2)): in both y = x (1 + it) / 2. */
static struct hlo gelu_bend(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	struct hlo cube;

	if (!a->approximate)
		return hlo_erf(h, times(h, x, root_half));
	cube = product(h, product(h, x, x), x);
	cube = hlo_binary(h, "add", x, times(h, cube, GELU_CUBE));
	return hlo_unary(h, "tanh", times(h, cube, root_2_pi));
}

static struct hlo gelu(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	return product(h, times(h, x, 0.5), add(h, gelu_bend(h, a, x), 1));
}

static struct hlo gelu_slope(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	struct hlo bend = gelu_bend(h, a, x), square = product(h, x, x), steep;

	if (a->approximate) {
		steep = one_minus(h, product(h, bend, bend));
		steep = product(h, steep, add(h, times(h, square, 3 * GELU_CUBE), 1));
	} else {
		steep = hlo_unary(h, "exponential", times(h, square, -0.5));
	}
	steep = product(h, steep, times(h, x, 0.5 * root_2_pi));
	return hlo_binary(h, "add", times(h, add(h, bend, 1), 0.5), steep);
}

static struct hlo negative(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)a;
	return hlo_unary(h, "negate", x);
}

static struct hlo identity(struct hlo_text *h, const struct attributes *a, struct hlo x)
{
	(void)h;
	(void)a;
	return x;
}

/* The slope is of the result where operator_row says so. */
static const struct {
	element_function *value, *slope;
} functions[OP_COUNT] = {
	[OP_RELU] = {relu, NULL},
	[OP_TANH] = {tangent, tangent_slope},
	[OP_SIGMOID] = {sigmoid, sigmoid_slope},
	[OP_HARD_SIGMOID] = {hard_sigmoid, hard_sigmoid_slope},
	[OP_HARD_SWISH] = {hard_swish, hard_swish_slope},
	[OP_CLIP] = {clip, clip_slope},
	[OP_ELU] = {elu, elu_slope},
	[OP_LEAKY_RELU] = {leaky_relu, leaky_relu_slope},
	[OP_EXP] = {exponential, exponential_slope},
	[OP_SQRT] = {square_root, square_root_slope},
	[OP_GELU] = {gelu, gelu_slope},
	[OP_NEG] = {negative, NULL},
	[OP_IDENTITY] = {identity, NULL},
};

bool emit_knows_element(enum op op)
{
	return functions[op].value != NULL;
}

void emit_elementwise(struct emitter *l, const struct node *node)
{
	struct hlo x = emit_input(l, node, 0);

	emit_output(l, node, 0, functions[node->op].value(&l->h, &node->attributes, x));
}

void emit_relu_grad(struct emitter *l, const struct node *node)
{
	struct hlo dy = emit_input(l, node, 0), y = emit_input(l, node, 1);

	emit_output(l, node, 0, where_positive(&l->h, y, dy, hlo_number(&l->h, dy, 0)));
}

void emit_elementwise_grad(struct emitter *l, const struct node *node)
{
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct hlo dy = emit_input(l, node, 0), at = emit_input(l, node, 1);
	struct hlo slope = functions[forward->op].slope(&l->h, &forward->attributes, at);

	emit_output(l, node, 0, product(&l->h, dy, slope));
}

/* Input i repeated to the shape of the output: the last order correspond. */
static struct hlo repeated(struct emitter *l, const struct node *node, int i)
{
	const struct shape *shape = emit_shape(l, node->outputs[0]);
	struct hlo x = emit_input(l, node, i);
	const int *order = layout_axes(emit_layout(x.shape.rank));
	int from[TENSOR_MAX_RANK];

	for (int k = 0; k < x.shape.rank; k++)
		from[k] = order[k] + shape->rank - x.shape.rank;
	return emit_spread(l, x, from, shape);
}

void emit_binary(struct emitter *l, const struct node *node)
{
	static const char *const words[OP_COUNT] = {[OP_ADD] = "add",
						    [OP_SUB] = "subtract",
						    [OP_MUL] = "multiply",
						    [OP_DIV] = "divide"};
	struct hlo a = repeated(l, node, 0);

	emit_output(l, node, 0, hlo_binary(&l->h, words[node->op], a, repeated(l, node, 1)));
}
