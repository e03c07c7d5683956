/*
 * Functions of each element: everything that is known of one is its row at the end, with its
 * attributes and its functions before it. Definitions are ONNX's.
 */
#include "graph/operator_rows_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct attribute_row hard_sigmoid_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 0.2, 0, NULL},
	{"beta", ATTRIBUTE_REAL, offsetof(struct attributes, beta), 0.5, 0, NULL},
	{.name = NULL},
};

static const struct attribute_row clip_attributes[] = {
	{"min", ATTRIBUTE_REAL, offsetof(struct attributes, min), -(double)FLT_MAX, 1, NULL},
	{"max", ATTRIBUTE_REAL, offsetof(struct attributes, max), (double)FLT_MAX, 2, NULL},
	{.name = NULL},
};

static enum prony_status clip_infer(struct graph *graph, struct node *node, struct error *err)
{
	if (!(node->attributes.min <= node->attributes.max))
		return node_error(node, err, "min is %g, max is %g", node->attributes.min,
				  node->attributes.max);
	return node_copy_shape(graph, node, err);
}

/* Not fmin and fmax: a NaN must stay visible. */
static double clamp(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

static double identity(const struct attributes *a, double x)
{
	(void)a;
	return x;
}

static double one(const struct attributes *a, double x)
{
	(void)a;
	(void)x;
	return 1;
}

static double relu(const struct attributes *a, double x)
{
	(void)a;
	return x < 0 ? 0 : x;
}

static double relu_slope(const struct attributes *a, double y)
{
	(void)a;
	return y != 0;
}

static double negative(const struct attributes *a, double x)
{
	(void)a;
	return -x;
}

static double minus_one(const struct attributes *a, double x)
{
	(void)a;
	(void)x;
	return -1;
}

static double tangent(const struct attributes *a, double x)
{
	(void)a;
	return tanh(x);
}

static double tangent_slope(const struct attributes *a, double y)
{
	(void)a;
	return 1 - y * y;
}

static double sigmoid(const struct attributes *a, double x)
{
	(void)a;
	return 1 / (1 + exp(-x));
}

static double sigmoid_slope(const struct attributes *a, double y)
{
	(void)a;
	return y * (1 - y);
}

/* Of a function of three pieces the slope at an end is the outer piece's. */
static double clip(const struct attributes *a, double x)
{
	return clamp(x, a->min, a->max);
}

static double clip_slope(const struct attributes *a, double x)
{
	return !(x <= a->min || x >= a->max);
}

static int clip_kinks(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS])
{
	at[0] = a->min;
	at[1] = a->max;
	return 2;
}

static double hard_sigmoid(const struct attributes *a, double x)
{
	return clamp(a->alpha * x + a->beta, 0, 1);
}

static int hard_sigmoid_kinks(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS])
{
	if (a->alpha == 0) /* constant */
		return 0;
	at[a->alpha < 0] = -a->beta / a->alpha;
	at[a->alpha > 0] = (1 - a->beta) / a->alpha;
	return 2;
}

static double hard_sigmoid_slope(const struct attributes *a, double x)
{
	double ends[ELEMENTWISE_MAX_KINKS];

	return hard_sigmoid_kinks(a, ends) == 0 || x <= ends[0] || x >= ends[1] ? 0 : a->alpha;
}

static double hard_swish(const struct attributes *a, double x)
{
	(void)a;
	return x * clamp(x / 6 + 0.5, 0, 1);
}

static double hard_swish_slope(const struct attributes *a, double x)
{
	(void)a;
	return x <= -3 ? 0 : x >= 3 ? 1 : 0.5 + x / 3;
}

static int hard_swish_kinks(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS])
{
	(void)a;
	at[0] = -3;
	at[1] = 3;
	return 2;
}

static int hard_swish_steps(const struct attributes *a,
			    struct elementwise_step steps[ELEMENTWISE_MAX_STEPS])
{
	(void)a;
	steps[0] =
		(struct elementwise_step){.op = OP_HARD_SIGMOID, .constant = 1.0 / 6, .beta = 0.5};
	steps[1] = (struct elementwise_step){.op = OP_MUL, .inputs = {0, 1}};
	return 2;
}

static const struct attribute_row elu_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 1, 0, NULL},
	{.name = NULL},
};

static double elu(const struct attributes *a, double x)
{
	return x > 0 ? x : a->alpha * expm1(x);
}

static double elu_slope(const struct attributes *a, double x)
{
	return x > 0 ? 1 : a->alpha * exp(x);
}

static int elu_kinks(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS])
{
	at[0] = 0;
	return a->alpha != 1;
}

static const struct attribute_row leaky_relu_attributes[] = {
	{"alpha", ATTRIBUTE_REAL, offsetof(struct attributes, alpha), 0.01, 0, NULL},
	{.name = NULL},
};

static double leaky_relu(const struct attributes *a, double x)
{
	return x > 0 ? x : a->alpha * x;
}

static double leaky_relu_slope(const struct attributes *a, double x)
{
	return x > 0 ? 1 : a->alpha;
}

static int leaky_relu_kinks(const struct attributes *a, double at[ELEMENTWISE_MAX_KINKS])
{
	at[0] = 0;
	return a->alpha != 1;
}

static double exponential(const struct attributes *a, double x)
{
	(void)a;
	return exp(x);
}

static double exponential_slope(const struct attributes *a, double y)
{
	(void)a;
	return y;
}

static double square_root(const struct attributes *a, double x)
{
	(void)a;
	return sqrt(x);
}

static double square_root_slope(const struct attributes *a, double y)
{
	(void)a;
	return 0.5 / y;
}

enum { GELU_ERF, GELU_TANH };

static const char *const gelu_words[] = {[GELU_ERF] = "none", [GELU_TANH] = "tanh", NULL};

static const struct attribute_row gelu_attributes[] = {
	{"approximate", ATTRIBUTE_WORD, offsetof(struct attributes, approximate), GELU_ERF, 0,
	 gelu_words},
	{.name = NULL},
};

/* Hendrycks and Gimpel 2016, arXiv 1606.08415. */
#define GELU_CUBE 0.044715
static const double root_2_pi = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double root_half = 0.70710678118654752440;

static double gelu(const struct attributes *a, double x)
{
	if (a->approximate == GELU_TANH)
		return 0.5 * x * (1 + tanh(root_2_pi * (x + GELU_CUBE * x * x * x)));
	return 0.5 * x * erfc(-x * root_half);
}

static double gelu_slope(const struct attributes *a, double x)
{
	double t = tanh(root_2_pi * (x + GELU_CUBE * x * x * x));

	if (a->approximate == GELU_TANH)
		return 0.5 * (1 + t) +
		       0.5 * x * (1 - t * t) * root_2_pi * (1 + 3 * GELU_CUBE * x * x);
	return 0.5 * erfc(-x * root_half) + 0.5 * x * root_2_pi * exp(-x * x / 2);
}

/* Of the one with tanh: MXNet has the other only. */
static int gelu_steps(const struct attributes *a,
		      struct elementwise_step steps[ELEMENTWISE_MAX_STEPS])
{
	const struct elementwise_step tanh_steps[] = {
		{.op = OP_MUL, .inputs = {0, 0}},
		{.op = OP_MUL, .inputs = {1, 0}},
		{.op = OP_MUL, .inputs = {2, ELEMENTWISE_CONSTANT}, .constant = GELU_CUBE},
		{.op = OP_ADD, .inputs = {0, 3}},
		{.op = OP_MUL, .inputs = {4, ELEMENTWISE_CONSTANT}, .constant = root_2_pi},
		{.op = OP_TANH, .inputs = {5}},
		{.op = OP_ADD, .inputs = {6, ELEMENTWISE_CONSTANT}, .constant = 1},
		{.op = OP_MUL, .inputs = {0, 7}},
		{.op = OP_MUL, .inputs = {8, ELEMENTWISE_CONSTANT}, .constant = 0.5},
	};

	if (a->approximate != GELU_TANH)
		return 0;
	memcpy(steps, tanh_steps, sizeof(tanh_steps));
	return (int)(sizeof(tanh_steps) / sizeof(tanh_steps[0]));
}

#define FUNCTION .min_inputs = 1, .max_inputs = 1, .max_outputs = 1

/* clang-format off */
static const struct operator_row rows[OP_COUNT] = {
	[OP_RELU] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = relu, .slope = relu_slope, .slope_of_output = true, .exact = true,
		},
	},
	[OP_TANH] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = tangent, .slope = tangent_slope, .slope_of_output = true,
		},
	},
	[OP_SIGMOID] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = sigmoid, .slope = sigmoid_slope, .slope_of_output = true,
		},
	},
	[OP_HARD_SIGMOID] = {
		FUNCTION, .attributes = hard_sigmoid_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = hard_sigmoid, .slope = hard_sigmoid_slope,
			.kinks = hard_sigmoid_kinks,
		},
	},
	[OP_HARD_SWISH] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = hard_swish, .slope = hard_swish_slope,
			.kinks = hard_swish_kinks, .decompose = hard_swish_steps,
		},
	},
	[OP_CLIP] = {
		FUNCTION, .attributes = clip_attributes,
		.infer = clip_infer,
		.elementwise = &(const struct elementwise){
			.value = clip, .slope = clip_slope, .kinks = clip_kinks, .exact = true,
		},
	},
	[OP_ELU] = {
		FUNCTION, .attributes = elu_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = elu, .slope = elu_slope, .kinks = elu_kinks,
		},
	},
	[OP_LEAKY_RELU] = {
		FUNCTION, .attributes = leaky_relu_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = leaky_relu, .slope = leaky_relu_slope, .kinks = leaky_relu_kinks,
		},
	},
	[OP_EXP] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = exponential, .slope = exponential_slope, .slope_of_output = true,
		},
	},
	[OP_SQRT] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = square_root, .slope = square_root_slope, .slope_of_output = true,
			.positive = true,
		},
	},
	[OP_GELU] = {
		FUNCTION, .attributes = gelu_attributes, .opset = 20,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = gelu, .slope = gelu_slope, .decompose = gelu_steps,
		},
	},
	[OP_NEG] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = negative, .slope = minus_one, .exact = true,
		},
	},
	[OP_IDENTITY] = {
		FUNCTION, .attributes = no_attributes,
		.infer = node_copy_shape,
		.elementwise = &(const struct elementwise){
			.value = identity, .slope = one, .exact = true,
		},
	},
};
/* clang-format on */

const struct operator_row *elementwise_row(enum op op)
{
	return rows[op].elementwise ? &rows[op] : NULL;
}
