/* Writes elementwise functions, their derivatives, and functions of two operands. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/xla/emit_internal.h"

/* The definitions of graph/elementwise.c in postfix notation. x: the element, or in a slope the
 * value that operator_row gives for the gradient. a, b: alpha and beta. exponent: of Pow. low,
 * high: the bounds of Clip. "c p q ?" is p if c holds, else q. An operator with its own gradient
 * code has no slope. */
struct function {
	const char *value, *slope;
};

static const struct function functions[OP_COUNT] = {
	[OP_RELU] = {"x 0 max", NULL},
	[OP_TANH] = {"x tanh", "1 x x * -"},
	[OP_SIGMOID] = {"x logistic", "x 1 x - *"},
	[OP_HARD_SIGMOID] = {"x a * b + 0 max 1 min", "x a * b + 0 > x a * b + 1 < and a 0 ?"},
	[OP_HARD_SWISH] = {"x 6 / 0.5 + 0 max 1 min x *", "x 3 < x -3 > x 3 / 0.5 + 0 ? 1 ?"},
	[OP_CLIP] = {"x low max high min", "x low > x high < and 1 0 ?"},
	[OP_ELU] = {"x 0 > x x expm1 a * ?", "x 0 > 1 x exp a * ?"},
	[OP_LEAKY_RELU] = {"x 0 > x x a * ?", "x 0 > 1 a ?"},
	[OP_EXP] = {"x exp", "x"},
	[OP_LOG] = {"x log", "1 x /"},
	[OP_SQRT] = {"x sqrt", "0.5 x /"},
	[OP_GELU] = {"x 0.5 * x 0.70710678118654752 * erf 1 + *",
		     "x 0.70710678118654752 * erf 1 + 0.5 * "
		     "x x * -0.5 * exp x * 0.39894228040143268 * +"},
	[OP_ERF] = {"x erf", "x x * neg exp 1.1283791670955126 *"},
	[OP_POW] = {"x exponent pow", "x exponent 1 - pow exponent *"},
	[OP_SWISH] = {"x a * logistic x *", "x a * logistic 1 1 x a * logistic - x a * * + *"},
	[OP_NEG] = {"x neg", NULL},
	[OP_IDENTITY] = {"x", NULL},
};

/* T = tanh(sqrt(2 / pi) (x + 0.044715 x^3)); y = x (1 + T) / 2 */
#define GELU_T "x x * x * 0.044715 * x + 0.79788456080286536 * tanh "
static const struct function gelu_tanh = {
	GELU_T "1 + x * 0.5 *",
	GELU_T "1 + 0.5 * 1 " GELU_T GELU_T "* - x * 0.39894228040143268 * "
	       "x x * 0.134145 * 1 + * +",
};

static const struct {
	const char *word, *op;
	int operands;
} operators[] = {
	{"+", "add", 2},      {"-", "subtract", 2},	 {"*", "multiply", 2},
	{"/", "divide", 2},   {"max", "maximum", 2},	 {"min", "minimum", 2},
	{"and", "and", 2},    {"tanh", "tanh", 1},	 {"logistic", "logistic", 1},
	{"sqrt", "sqrt", 1},  {"exp", "exponential", 1}, {"expm1", "exponential_minus_one", 1},
	{"neg", "negate", 1}, {"log", "log", 1},	 {"pow", "power", 2},
};

#define STACK 8

static struct hlo *apply(struct hlo_text *h, const char *word, struct hlo *top)
{
	if (word[0] == '?') {
		top[-3] = hlo_select(h, top[-3], top[-2], top[-1]);
		return top - 2;
	}
	if (word[0] == '>' || word[0] == '<') {
		top[-2] = hlo_compare(h, word[0] == '>' ? "GT" : "LT", top[-2], top[-1]);
		return top - 1;
	}
	if (strcmp(word, "erf") == 0) {
		top[-1] = hlo_erf(h, top[-1]);
		return top;
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (strcmp(word, operators[i].word) != 0)
			continue;
		if (operators[i].operands == 1) {
			top[-1] = hlo_unary(h, operators[i].op, top[-1]);
			return top;
		}
		top[-2] = hlo_binary(h, operators[i].op, top[-2], top[-1]);
		return top - 1;
	}
	assert(false);
	return top;
}

/* Reads an operand. Bounds are limited to +-3e38, below the largest number of bf16. */
static bool operand(const struct attributes *a, const char *word, double *number)
{
	const double most = 3e38;
	char *end;

	*number = strtod(word, &end);
	if (strcmp(word, "a") == 0)
		*number = a->alpha;
	else if (strcmp(word, "b") == 0)
		*number = a->beta;
	else if (strcmp(word, "exponent") == 0)
		*number = a->exponent;
	else if (strcmp(word, "low") == 0)
		*number = fmax(a->min, -most);
	else if (strcmp(word, "high") == 0)
		*number = fmin(a->max, most);
	else
		return end != word && *end == '\0';
	return true;
}

static struct hlo evaluate(struct hlo_text *h, const char *text, const struct attributes *a,
			   struct hlo x)
{
	struct hlo stack[STACK], *top = stack;
	double number;

	for (const char *at = text; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		char word[24] = "";

		memcpy(word, at, strcspn(at, " "));
		assert(top < stack + STACK);
		if (strcmp(word, "x") == 0)
			*top++ = x;
		else if (operand(a, word, &number))
			*top++ = hlo_number(h, x, number);
		else
			top = apply(h, word, top);
	}
	assert(top == stack + 1);
	return stack[0];
}

static const struct function *function_of(const struct node *node)
{
	bool curved = node->op == OP_GELU && node->attributes.approximate;

	return curved ? &gelu_tanh : &functions[node->op];
}

bool emit_knows_element(enum op op)
{
	return functions[op].value != NULL;
}

void emit_elementwise(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0,
		    evaluate(&l->h, function_of(node)->value, &node->attributes,
			     emit_input(l, node, 0)));
}

/* Selects instead of multiplying, because dy may be infinite where the slope is 0. */
static struct hlo relu_grad(struct emitter *l, const struct node *node)
{
	struct hlo dy = emit_input(l, node, 0), y = emit_input(l, node, 1);
	struct hlo zero = hlo_number(&l->h, y, 0);

	return hlo_select(&l->h, hlo_compare(&l->h, "GT", y, zero), dy, zero);
}

static struct hlo slope_grad(struct emitter *l, const struct node *node)
{
	const struct node *forward = &l->graph->nodes[node->differentiates];
	struct hlo slope = evaluate(&l->h, function_of(forward)->slope, &forward->attributes,
				    emit_input(l, node, 1));

	return hlo_binary(&l->h, "multiply", emit_input(l, node, 0), slope);
}

void emit_elementwise_grad(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0,
		    node->op == OP_RELU_GRAD ? relu_grad(l, node) : slope_grad(l, node));
}

/* Returns input i broadcast to the shape of the output; the last axes correspond. */
static struct hlo repeated(struct emitter *l, const struct node *node, int i)
{
	struct reduction r = reduction_of_broadcast(emit_shape(l, node->outputs[0]),
						    emit_shape(l, node->inputs[i]));
	int from[TENSOR_MAX_RANK];

	emit_part_axes(l, &r, node->inputs[i], from);
	return emit_spread(l, emit_input(l, node, i), from, node->outputs[0]);
}

void emit_expand(struct emitter *l, const struct node *node)
{
	emit_output(l, node, 0, repeated(l, node, 0));
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
