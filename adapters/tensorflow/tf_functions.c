/*
 * Translates elementwise functions and their gradients, as TensorFlow's Python code defines them.
 */
#include "adapters/tensorflow/tf_translate_internal.h"

#include <math.h>

/* TensorFlow's operation for an operator, if there is one. Its gradient reads y or x. */
static const struct {
	const char *type, *gradient; /* dy is the second input if of_y, else the first */
	bool of_y;
} named[OP_COUNT] = {
	[OP_TANH] = {"Tanh", "TanhGrad", true},	 [OP_SIGMOID] = {"Sigmoid", "SigmoidGrad", true},
	[OP_SQRT] = {"Sqrt", "SqrtGrad", true},	 [OP_EXP] = {"Exp", "Mul", true},
	[OP_RELU] = {"Relu", "ReluGrad", false}, [OP_NEG] = {"Neg", NULL, false},
	[OP_LOG] = {"Log", "RealDiv", false},
};

static struct tf_output binary(struct tf_translation *t, const char *type, struct tf_output a,
			       struct tf_output b)
{
	return tf_binary(&t->e, type, a, b);
}

static struct tf_output number(struct tf_translation *t, struct tf_output like, double value)
{
	return tf_number(&t->e, like, value);
}

/* 1 where low < x < high, else 0. */
static struct tf_output between(struct tf_translation *t, struct tf_output x, double low,
				double high)
{
	struct tf_output inside =
		binary(t, "LogicalAnd", binary(t, "Greater", x, number(t, x, low)),
		       binary(t, "Less", x, number(t, x, high)));

	return tf_cast(&t->e, inside, tf_type_of(&t->e, x));
}

static struct tf_output clip(struct tf_translation *t, struct tf_output x, double low, double high)
{
	return binary(t, "Maximum", binary(t, "Minimum", x, number(t, x, high)), number(t, x, low));
}

/* alpha x + beta */
static struct tf_output line(struct tf_translation *t, struct tf_output x, double alpha,
			     double beta)
{
	return binary(t, "AddV2", tf_scale(&t->e, x, alpha), number(t, x, beta));
}

/* Returns a where x is positive, else alpha * b. */
static struct tf_output choose(struct tf_translation *t, struct tf_output x, struct tf_output a,
			       struct tf_output b, double alpha)
{
	struct tf_output positive = binary(t, "Greater", x, number(t, x, 0));

	return tf_op(&t->e, "Select", TF_IN(positive, a, tf_scale(&t->e, b, alpha)), NULL);
}

static bool is_relu6(const struct node *node)
{
	return node->op == OP_CLIP && node->attributes.min == 0 && node->attributes.max == 6;
}

/* The factor of x in Gelu: 0.5 (1 + erf(x / sqrt 2)), or its tanh form. */
#define ROOT_HALF 0.70710678118654752440
#define ROOT_2_PI 0.79788456080286535588
#define GELU_CUBE 0.044715

static struct tf_output gelu_inner(struct tf_translation *t, const struct node *node,
				   struct tf_output x)
{
	if (node->attributes.approximate == 0)
		return tf_unary(&t->e, "Erf", tf_scale(&t->e, x, ROOT_HALF));
	struct tf_output cube = binary(t, "Mul", tf_unary(&t->e, "Square", x), x);
	struct tf_output sum = binary(t, "AddV2", x, tf_scale(&t->e, cube, GELU_CUBE));

	return tf_unary(&t->e, "Tanh", tf_scale(&t->e, sum, ROOT_2_PI));
}

static struct tf_output gelu(struct tf_translation *t, const struct node *node, struct tf_output x)
{
	return binary(t, "Mul", x, line(t, gelu_inner(t, node, x), 0.5, 0.5));
}

/* 0.5 (1 + inner) + 0.5 x inner' */
static struct tf_output gelu_slope(struct tf_translation *t, const struct node *node,
				   struct tf_output x)
{
	struct tf_output inner = gelu_inner(t, node, x), square = tf_unary(&t->e, "Square", x);
	struct tf_output slope;

	if (node->attributes.approximate == 0)
		slope = tf_scale(&t->e, tf_unary(&t->e, "Exp", tf_scale(&t->e, square, -0.5)),
				 ROOT_2_PI);
	else /* (1 - tanh^2) times the derivative of tanh's argument */
		slope = binary(t, "Mul", line(t, tf_unary(&t->e, "Square", inner), -1, 1),
			       line(t, square, 3 * GELU_CUBE * ROOT_2_PI, ROOT_2_PI));
	return binary(t, "AddV2", line(t, inner, 0.5, 0.5),
		      tf_scale(&t->e, binary(t, "Mul", x, slope), 0.5));
}

/* s = sigmoid(alpha x); Swish is x s, its slope s (1 + alpha x (1 - s)). */
static struct tf_output swish_gate(struct tf_translation *t, const struct node *node,
				   struct tf_output x)
{
	return tf_unary(&t->e, "Sigmoid", tf_scale(&t->e, x, node->attributes.alpha));
}

static struct tf_output swish_slope(struct tf_translation *t, const struct node *node,
				    struct tf_output x)
{
	struct tf_output s = swish_gate(t, node, x);
	struct tf_output rest =
		binary(t, "Mul", tf_scale(&t->e, x, node->attributes.alpha), line(t, s, -1, 1));

	return binary(t, "Mul", s, line(t, rest, 1, 1));
}

static struct tf_output power(struct tf_translation *t, struct tf_output x, double exponent)
{
	return binary(t, "Pow", x, number(t, x, exponent));
}

/* 2 / sqrt(pi) exp(-x^2) */
static struct tf_output erf_slope(struct tf_translation *t, struct tf_output x)
{
	struct tf_output square = tf_unary(&t->e, "Square", x);

	return tf_scale(&t->e, tf_unary(&t->e, "Exp", tf_scale(&t->e, square, -1)),
			1.12837916709551257390);
}

void tf_function(struct tf_translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	struct tf_output x = tf_take(t, node, 0), y = x;

	if (named[node->op].type) {
		y = tf_unary(&t->e, named[node->op].type, x);
	} else if (is_relu6(node)) {
		y = tf_unary(&t->e, "Relu6", x);
	} else if (node->op == OP_CLIP) {
		y = clip(t, x, a->min, a->max);
	} else if (node->op == OP_HARD_SIGMOID) {
		y = clip(t, line(t, x, a->alpha, a->beta), 0, 1);
	} else if (node->op == OP_HARD_SWISH) {
		y = tf_unary(&t->e, "Relu6", binary(t, "AddV2", x, number(t, x, 3)));
		y = binary(t, "Mul", x, tf_scale(&t->e, y, 1.0 / 6));
	} else if (node->op == OP_LEAKY_RELU) {
		y = tf_op(&t->e, "LeakyRelu", TF_IN(x), TF_WITH(TF_FLOAT("alpha", a->alpha)));
	} else if (node->op == OP_ELU) {
		y = *tf_kept(t, node) = tf_unary(&t->e, "Elu", x);
		y = a->alpha == 1 ? y : choose(t, x, y, y, a->alpha);
	} else if (node->op == OP_GELU) {
		y = gelu(t, node, x);
	} else if (node->op == OP_ERF) {
		y = tf_unary(&t->e, "Erf", x);
	} else if (node->op == OP_POW) {
		y = power(t, x, a->exponent);
	} else if (node->op == OP_SWISH) {
		y = binary(t, "Mul", x, swish_gate(t, node, x));
	} else if (node->op != OP_IDENTITY) {
		error_set(&t->e.error, PRONY_UNSUPPORTED, "operator %s (%s) is not supported",
			  operator_name(node->op), node->name);
	}
	tf_give(t, node, 0, y);
}

/* The derivative of x (clip(x + 3, 0, 6) / 6), Keras's form of HardSwish. */
static struct tf_output hard_swish_grad(struct tf_translation *t, struct tf_output x,
					struct tf_output dy)
{
	struct tf_output sum = binary(t, "AddV2", x, number(t, x, 3));
	struct tf_output inner = tf_scale(&t->e, tf_unary(&t->e, "Relu6", sum), 1.0 / 6);
	struct tf_output through =
		binary(t, "Relu6Grad", tf_scale(&t->e, binary(t, "Mul", dy, x), 1.0 / 6), sum);

	return binary(t, "AddV2", binary(t, "Mul", dy, inner), through);
}

void tf_function_grad(struct tf_translation *t, const struct node *node)
{
	const struct node *f = tf_forward(t, node);
	const struct attributes *a = &f->attributes;
	struct tf_output dy = tf_take(t, node, 0), x = tf_take(t, f, 0), dx = dy;

	if (named[f->op].gradient) {
		x = tf_take(t, node, 1);
		dx = named[f->op].of_y ? binary(t, named[f->op].gradient, x, dy)
				       : binary(t, named[f->op].gradient, dy, x);
	} else if (is_relu6(f)) {
		dx = binary(t, "Relu6Grad", dy, x);
	} else if (f->op == OP_CLIP) {
		dx = binary(t, "Mul", dy, between(t, x, a->min, a->max));
	} else if (f->op == OP_HARD_SIGMOID) {
		dx = between(t, line(t, x, a->alpha, a->beta), 0, 1);
		dx = binary(t, "Mul", dy, tf_scale(&t->e, dx, a->alpha));
	} else if (f->op == OP_HARD_SWISH) {
		dx = hard_swish_grad(t, x, dy);
	} else if (f->op == OP_LEAKY_RELU) {
		dx = tf_op(&t->e, "LeakyReluGrad", TF_IN(dy, x),
			   TF_WITH(TF_FLOAT("alpha", a->alpha)));
	} else if (f->op == OP_ELU) {
		dy = a->alpha == 1 ? dy : choose(t, x, dy, dy, a->alpha);
		dx = binary(t, "EluGrad", dy, *tf_kept(t, f));
	} else if (f->op == OP_GELU) {
		dx = binary(t, "Mul", dy, gelu_slope(t, f, x));
	} else if (f->op == OP_ERF) {
		dx = binary(t, "Mul", dy, erf_slope(t, x));
	} else if (f->op == OP_POW) {
		dx = tf_scale(&t->e, power(t, x, a->exponent - 1), a->exponent);
		dx = binary(t, "Mul", dy, dx);
	} else if (f->op == OP_SWISH) {
		dx = binary(t, "Mul", dy, swish_slope(t, f, x));
	}
	tf_give(t, node, 0, dx);
}
