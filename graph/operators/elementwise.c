/* Functions of each element. Everything about a function is in its row at the end of the file, and
 * in its attributes and functions before it. The definitions are ONNX's. */
#include "graph/operators/operator.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* fmin and fmax are not used, because a NaN must stay visible. */
static double clamp(double x, double min, double max)
{
	return x < min ? min : x > max ? max : x;
}

static const struct attribute_row hard_sigmoid_attributes[] = {
	{ATTRIBUTE("alpha", REAL, alpha, 0.2)},
	{ATTRIBUTE("beta", REAL, beta, 0.5)},
	{.name = NULL},
};

static const struct attribute_row clip_attributes[] = {
	{ATTRIBUTE("min", REAL, min, -(double)FLT_MAX), .input = 1},
	{ATTRIBUTE("max", REAL, max, (double)FLT_MAX), .input = 2},
	{.name = NULL},
};

static enum prony_status clip_infer(struct graph *graph, struct node *node, struct error *err)
{
	if (!(node->attributes.min <= node->attributes.max))
		return node_error(node, err, "min (%g) is greater than max (%g)",
				  node->attributes.min, node->attributes.max);
	return node_copy_shape(graph, node, err);
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

/* For a function of three pieces, the slope at an end of the middle piece is that of the outer
 * piece. */
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
	{ATTRIBUTE("alpha", REAL, alpha, 1)},
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
	{ATTRIBUTE("alpha", REAL, alpha, 0.01)},
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

static double logarithm(const struct attributes *a, double x)
{
	(void)a;
	return log(x);
}

static double logarithm_slope(const struct attributes *a, double x)
{
	(void)a;
	return 1 / x;
}

enum { GELU_ERF, GELU_TANH };

static const char *const gelu_words[] = {[GELU_ERF] = "none", [GELU_TANH] = "tanh", NULL};

static const struct attribute_row gelu_attributes[] = {
	{ATTRIBUTE("approximate", WORD, approximate, GELU_ERF), .words = gelu_words},
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

/* Steps for the tanh form only: MXNet has the erf form. */
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

static double error_function(const struct attributes *a, double x)
{
	(void)a;
	return erf(x);
}

static double error_function_slope(const struct attributes *a, double x)
{
	(void)a;
	return 1.12837916709551257390 * exp(-x * x); /* 2 / sqrt(pi) */
}

/* ONNX has no exponent that is left out. */
static const struct attribute_row power_attributes[] = {
	{ATTRIBUTE("exponent", REAL, exponent, 1), .input = 1},
	{.name = NULL},
};

static double power(const struct attributes *a, double x)
{
	return pow(x, a->exponent);
}

static double power_slope(const struct attributes *a, double x)
{
	return a->exponent * pow(x, a->exponent - 1);
}

static const struct attribute_row swish_attributes[] = {
	{ATTRIBUTE("alpha", REAL, alpha, 1)},
	{.name = NULL},
};

/* Ramachandran et al. 2017, arXiv 1710.05941; SiLU with alpha = 1. */
static double swish(const struct attributes *a, double x)
{
	return x / (1 + exp(-a->alpha * x));
}

static double swish_slope(const struct attributes *a, double x)
{
	double s = 1 / (1 + exp(-a->alpha * x));

	return s * (1 + a->alpha * x * (1 - s));
}

static int swish_steps(const struct attributes *a,
		       struct elementwise_step steps[ELEMENTWISE_MAX_STEPS])
{
	int count = 0;

	if (a->alpha != 1)
		steps[count++] = (struct elementwise_step){
			.op = OP_MUL, .inputs = {0, ELEMENTWISE_CONSTANT}, .constant = a->alpha};
	steps[count] = (struct elementwise_step){.op = OP_SIGMOID, .inputs = {count}};
	steps[count + 1] = (struct elementwise_step){.op = OP_MUL, .inputs = {0, count + 1}};
	return count + 2;
}

static enum prony_status neg_backward(struct graph *graph, const struct node *node,
				      struct error *err)
{
	int dy = backward_gradient(graph, node), dx;
	enum prony_status status;

	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	status = backward_apply(graph, node, 0, OP_NEG, &dy, 1, NULL, &dx, err);
	return status == PRONY_OK ? backward_contribute(graph, node->inputs[0], dx, err) : status;
}

static enum prony_status identity_backward(struct graph *graph, const struct node *node,
					   struct error *err)
{
	if (!backward_wants(graph, node, 0))
		return PRONY_OK;
	return backward_contribute(graph, node->inputs[0], backward_gradient(graph, node), err);
}

static enum prony_status slope_backward(struct graph *graph, const struct node *node,
					struct error *err)
{
	bool of_output = operator_row(node->op)->elementwise->slope_of_output;

	return backward_unary(graph, node, OP_ELEMENTWISE_GRAD,
			      of_output ? node->outputs[0] : node->inputs[0], err);
}

/* Elements that are too close to a kink are decided by one thread, in the order of the elements.
 * First all parts are computed as if none were too close, and parts with such elements are noted.
 */
struct watched {
	const struct kernel_call *call;
	double close;
	bool *noted; /* by part */
};

static int64_t watched_end(const struct watched *w, int64_t part)
{
	int64_t count = kernel_output_count(w->call, 0), end = (part + 1) * KERNEL_PART;

	return end < count ? end : count;
}

/* Computes all parts, then decides the noted parts. */
static void observe(const struct kernel_call *call, const double *x,
		    void (*work)(void *watched, int64_t part),
		    void (*decide)(struct watched *watched, int64_t part))
{
	int64_t count = kernel_output_count(call, 0);
	int64_t parts = (count + KERNEL_PART - 1) / KERNEL_PART;
	struct watched watched = {.call = call, .noted = memory_alloc((size_t)parts)};

	if (call->hooks)
		watched.close = call->close * kernel_rms(x, count);
	kernel_parts(parts, count, work, &watched);
	for (int64_t part = 0; call->hooks && part < parts; part++)
		if (watched.noted[part])
			decide(&watched, part);
	free(watched.noted);
}

/* fmax is not used, because a NaN must stay visible. */
static void relu_part(void *context, int64_t part)
{
	const struct watched *w = context;
	const double *x = kernel_input(w->call, 0);
	double *y = kernel_output(w->call, 0);
	bool noted = false;

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		y[i] = x[i] < 0 ? 0 : x[i];
		noted |= fabs(x[i]) < w->close && x[i] != 0;
	}
	w->noted[part] = noted;
}

/* The gradient tests whether y is 0; the value itself is too small to matter. */
static void relu_decide(struct watched *w, int64_t part)
{
	const double *x = kernel_input(w->call, 0);
	double *y = kernel_output(w->call, 0);

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		if (x[i] == 0 || fabs(x[i]) >= w->close)
			continue;
		bool positive = w->call->hooks->decide(w->call, i, x[i] > 0, x[i] <= 0);
		if (positive != (x[i] > 0))
			y[i] = positive ? DBL_MIN : 0;
	}
}

static void relu_compute(const struct kernel_call *call)
{
	observe(call, kernel_input(call, 0), relu_part, relu_decide);
}

static void relu_grad(const struct kernel_call *call, int64_t first, int64_t end)
{
	const double *dy = kernel_input(call, 0), *y = kernel_input(call, 1);
	double *dx = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		dx[i] = y[i] == 0 ? 0 : dy[i];
}

static void relu_grad_compute(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), relu_grad);
}

static void elementwise(const struct kernel_call *call, int64_t first, int64_t end)
{
	const struct elementwise *function = operator_row(call->node->op)->elementwise;
	const struct attributes *a = &call->node->attributes;
	const double *x = kernel_input(call, 0);
	double *y = kernel_output(call, 0);

	for (int64_t i = first; i < end; i++)
		y[i] = function->value(a, x[i]);
}

static void elementwise_compute(const struct kernel_call *call)
{
	kernel_each(call, kernel_output_count(call, 0), elementwise);
}

/* The slope of the forward function, with the gradient node's attributes. */
struct slope {
	double (*slope)(const struct attributes *a, double x);
	const struct attributes *a;
	double kinks[ELEMENTWISE_MAX_KINKS];
	int kink_count;
};

static struct slope slope_of(const struct kernel_call *call)
{
	const struct node *forward = &call->graph->nodes[call->node->differentiates];
	const struct elementwise *function = operator_row(forward->op)->elementwise;
	struct slope s = {.slope = function->slope, .a = &call->node->attributes};

	if (function->kinks)
		s.kink_count = function->kinks(s.a, s.kinks);
	return s;
}

/* An x exactly at a kink is not too close: its result is defined. */
static bool too_close(double x, double kink, double close)
{
	return x != kink && fabs(x - kink) < close;
}

static void slope_part(void *context, int64_t part)
{
	const struct watched *w = context;
	const struct slope s = slope_of(w->call);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);
	bool noted = false;

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		dx[i] = dy[i] * s.slope(s.a, x[i]);
		for (int k = 0; k < s.kink_count; k++)
			noted |= too_close(x[i], s.kinks[k], w->close);
	}
	w->noted[part] = noted;
}

/* If x is too close to a kink, it may count as just beyond the kink. */
static void slope_decide(struct watched *w, int64_t part)
{
	const struct slope s = slope_of(w->call);
	const double *dy = kernel_input(w->call, 0), *x = kernel_input(w->call, 1);
	double *dx = kernel_output(w->call, 0);

	for (int64_t i = part * KERNEL_PART; i < watched_end(w, part); i++) {
		double taken = x[i];

		for (int k = 0; k < s.kink_count; k++) {
			bool above = x[i] > s.kinks[k];

			if (too_close(x[i], s.kinks[k], w->close) &&
			    w->call->hooks->decide(w->call, ELEMENTWISE_MAX_KINKS * i + k, above,
						   !above) != above)
				taken = nextafter(s.kinks[k], above ? -INFINITY : INFINITY);
		}
		dx[i] = dy[i] * s.slope(s.a, taken);
	}
}

static void elementwise_grad_compute(const struct kernel_call *call)
{
	observe(call, kernel_input(call, 1), slope_part, slope_decide);
}

static int64_t elementwise_terms(const struct graph *graph, const struct node *node, int output)
{
	(void)graph;
	(void)output;
	return !operator_row(node->op)->elementwise->exact;
}

/* The gradient sums as many terms as the forward function. */
static int64_t slope_terms(const struct graph *graph, const struct node *node, int output)
{
	return elementwise_terms(graph, &graph->nodes[node->differentiates], output);
}

/* The row of a function: its attributes, and the members of its struct elementwise. */
#define FUNCTION(table, ...)                                                                       \
	ARITY(1, 1, 1),                                                                            \
		.attributes = (table), .elementwise = &(const struct elementwise){__VA_ARGS__},    \
		.terms = elementwise_terms, .samples = samples_stay, .layout = LAYOUT_SAME_PLACES, \
		.joins_box = true, .onnx_inputs = "x"
/* The same, with the members that most functions have. */
#define PLAIN(table, ...)                                                                          \
	FUNCTION(table, __VA_ARGS__), .infer = node_copy_shape, .backward = slope_backward,        \
				      .compute = elementwise_compute

/* clang-format off */
const struct operator_row row_RELU = {
	FUNCTION(no_attributes, .value = relu, .slope = relu_slope,
	      .slope_of_output = true, .exact = true),
	.infer = node_copy_shape, .gradient = OP_RELU_GRAD, .gradient_reads = "y",
	.compute = relu_compute, .compares = 1,
};

const struct operator_row row_TANH = {
	PLAIN(no_attributes, .value = tangent, .slope = tangent_slope, .slope_of_output = true),
};

const struct operator_row row_SIGMOID = {
	PLAIN(no_attributes, .value = sigmoid, .slope = sigmoid_slope, .slope_of_output = true),
};

const struct operator_row row_HARD_SIGMOID = {
	PLAIN(hard_sigmoid_attributes, .value = hard_sigmoid, .slope = hard_sigmoid_slope,
	      .kinks = hard_sigmoid_kinks),
};

const struct operator_row row_HARD_SWISH = {
	PLAIN(no_attributes, .value = hard_swish, .slope = hard_swish_slope,
	      .kinks = hard_swish_kinks, .decompose = hard_swish_steps),
};

const struct operator_row row_CLIP = {
	FUNCTION(clip_attributes, .value = clip, .slope = clip_slope,
	      .kinks = clip_kinks, .exact = true),
	.infer = clip_infer, .backward = slope_backward, .compute = elementwise_compute,
};

const struct operator_row row_ELU = {
	PLAIN(elu_attributes, .value = elu, .slope = elu_slope, .kinks = elu_kinks),
};

const struct operator_row row_LEAKY_RELU = {
	PLAIN(leaky_relu_attributes, .value = leaky_relu, .slope = leaky_relu_slope,
	      .kinks = leaky_relu_kinks),
};

const struct operator_row row_EXP = {
	PLAIN(no_attributes, .value = exponential, .slope = exponential_slope,
	      .slope_of_output = true),
};

const struct operator_row row_SQRT = {
	PLAIN(no_attributes, .value = square_root, .slope = square_root_slope,
	      .slope_of_output = true, .positive = true),
};

const struct operator_row row_LOG = {
	PLAIN(no_attributes, .value = logarithm, .slope = logarithm_slope, .positive = true),
};

const struct operator_row row_GELU = {
	PLAIN(gelu_attributes, .value = gelu, .slope = gelu_slope, .decompose = gelu_steps),
	.opset = 20,
};

const struct operator_row row_ERF = {
	PLAIN(no_attributes, .value = error_function, .slope = error_function_slope),
};

const struct operator_row row_POW = {
	PLAIN(power_attributes, .value = power, .slope = power_slope, .positive = true),
};

const struct operator_row row_SWISH = {
	PLAIN(swish_attributes, .value = swish, .slope = swish_slope, .decompose = swish_steps),
	.opset = 24,
};

const struct operator_row row_NEG = {
	FUNCTION(no_attributes, .value = negative, .slope = minus_one, .exact = true),
	.infer = node_copy_shape, .backward = neg_backward, .compute = elementwise_compute,
};

const struct operator_row row_IDENTITY = {
	FUNCTION(no_attributes, .value = identity, .slope = one, .exact = true),
	.infer = node_copy_shape, .backward = identity_backward, .compute = compute_copy,
};

const struct operator_row row_RELU_GRAD = {
	GRADIENT(2, 1, no_attributes), .compute = relu_grad_compute, .terms = terms_none,
};

const struct operator_row row_ELEMENTWISE_GRAD = {
	GRADIENT(2, 1, no_attributes), .compute = elementwise_grad_compute,
	.terms = slope_terms, .compares = 2,
};
/* clang-format on */
