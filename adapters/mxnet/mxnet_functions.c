/* Functions of each element, and other arrangements of the same elements, in MXNet's operators. */
#include "adapters/mxnet/mxnet_translate_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An operator of one input with the given options. */
static enum prony_status emit_unary(struct translation *t, const struct node *node,
				    const char *operator, const struct mx_options * options,
				    struct error *err)
{
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	return status == PRONY_OK ? mx_emit(t, node, operator, options, &inputs, err) : status;
}

/* A function of each element in MXNet's words: up to two options, from numbers of the node. */
struct function {
	const char *name;
	const char *type; /* its act_type, or NULL */
	const char *keys[2];
	size_t numbers[2]; /* in struct attributes */
};

#define NUMBER(member) offsetof(struct attributes, member)

/* clang-format off */
static const struct function functions[OP_COUNT] = {
	[OP_RELU] = {"Activation", "relu", {NULL, NULL}, {0, 0}},
	[OP_TANH] = {"Activation", "tanh", {NULL, NULL}, {0, 0}},
	[OP_SIGMOID] = {"Activation", "sigmoid", {NULL, NULL}, {0, 0}},
	[OP_HARD_SIGMOID] = {"hard_sigmoid", NULL, {"alpha", "beta"}, {NUMBER(alpha), NUMBER(beta)}},
	[OP_CLIP] = {"clip", NULL, {"a_min", "a_max"}, {NUMBER(min), NUMBER(max)}},
	[OP_ELU] = {"LeakyReLU", "elu", {"slope", NULL}, {NUMBER(alpha), 0}},
	[OP_LEAKY_RELU] = {"LeakyReLU", "leaky", {"slope", NULL}, {NUMBER(alpha), 0}},
	[OP_EXP] = {"exp", NULL, {NULL, NULL}, {0, 0}},
	[OP_SQRT] = {"sqrt", NULL, {NULL, NULL}, {0, 0}},
	[OP_GELU] = {"LeakyReLU", "gelu", {NULL, NULL}, {0, 0}},
	[OP_NEG] = {"negative", NULL, {NULL, NULL}, {0, 0}},
};
/* clang-format on */

/* The symbol of a function of `x`. */
static enum prony_status make_function(struct translation *t, enum op op,
				       const struct attributes *a, const char *name,
				       struct mx_symbol *x, struct mx_symbol **out,
				       struct error *err)
{
	const struct function *f = &functions[op];
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};

	if (f->type)
		mx_option(&options, "act_type", "%s", f->type);
	for (int i = 0; i < 2 && f->keys[i]; i++) {
		double number = *(const double *)((const char *)a + f->numbers[i]);

		/* MXNet does not read the largest floats. */
		if (fabs(number) >= (double)FLT_MAX)
			mx_option(&options, f->keys[i], "%s3.4e+38", number < 0 ? "-" : "");
		else
			mx_option(&options, f->keys[i], "%.9g", number);
	}
	mx_input(&inputs, "data", x);
	return mx_make(t, f->name, name, &options, &inputs, out, err);
}

/* A step of a decomposition on the symbols of the steps before it; symbols[0] is x. */
static enum prony_status make_step(struct translation *t, const struct elementwise_step *step,
				   const char *name, struct mx_symbol *const *symbols,
				   struct mx_symbol **out, struct error *err)
{
	const struct attributes attributes = {.alpha = step->constant, .beta = step->beta};
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};

	if (operator_row(step->op)->elementwise)
		return make_function(t, step->op, &attributes, name, symbols[step->inputs[0]], out,
				     err);
	if (step->inputs[1] == ELEMENTWISE_CONSTANT) {
		mx_option(&options, "scalar", "%.17g", step->constant);
		mx_input(&inputs, "data", symbols[step->inputs[0]]);
		return mx_make(t, step->op == OP_ADD ? "_plus_scalar" : "_mul_scalar", name,
			       &options, &inputs, out, err);
	}
	mx_input(&inputs, "lhs", symbols[step->inputs[0]]);
	mx_input(&inputs, "rhs", symbols[step->inputs[1]]);
	return mx_make(t, step->op == OP_ADD ? "elemwise_add" : "elemwise_mul", name, &options,
		       &inputs, out, err);
}

/* The row's steps in MXNet's operators; 0 where it has none. */
static int steps_of(const struct node *node, struct elementwise_step *steps)
{
	const struct elementwise *row = operator_row(node->op)->elementwise;

	return row->decompose ? row->decompose(&node->attributes, steps) : 0;
}

/* What the row says it is made of, else MXNet's own operator. */
static enum prony_status emit_function(struct translation *t, const struct node *node,
				       struct error *err)
{
	struct elementwise_step steps[ELEMENTWISE_MAX_STEPS];
	struct mx_symbol *symbols[ELEMENTWISE_MAX_STEPS + 1];
	struct mx_inputs inputs = {0};
	int count = steps_of(node, steps);
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	if (status != PRONY_OK)
		return status;
	symbols[0] = inputs.symbols[0];
	if (count == 0)
		return make_function(t, node->op, &node->attributes, node->name, symbols[0],
				     &t->values[node->outputs[0]], err);
	for (int i = 0; status == PRONY_OK && i < count; i++) {
		char name[MX_OPTION_BYTES * 3];

		if (i + 1 < count)
			snprintf(name, sizeof(name), "%s.%d", node->name, i);
		else
			snprintf(name, sizeof(name), "%s", node->name);
		status = make_step(t, &steps[i], name, symbols, &symbols[i + 1], err);
	}
	if (status == PRONY_OK)
		t->values[node->outputs[0]] = symbols[count];
	return status;
}

static void refuse_function(const struct graph *graph, const struct node *node,
			    struct strbuf *reasons)
{
	struct elementwise_step steps[ELEMENTWISE_MAX_STEPS];

	(void)graph;
	if (functions[node->op].name == NULL && steps_of(node, steps) == 0)
		mx_refuse(reasons, node, "MXNet 1.9 has no such function");
}

static enum prony_status emit_softmax(struct translation *t, const struct node *node,
				      struct error *err)
{
	struct mx_options options = {0};

	mx_option(&options, "axis", "%lld", (long long)node->attributes.axis);
	return emit_unary(t, node, "softmax", &options, err);
}

/* MXNet 1.9 knows no shape without dimensions: it stands for an unknown one. */
static void refuse_scalar(const struct graph *graph, const struct node *node,
			  struct strbuf *reasons)
{
	if (mx_shape(graph, node->outputs[0])->rank == 0)
		mx_refuse(reasons, node, "makes a scalar, which MXNet 1.9 has not");
}

static enum prony_status emit_reshape(struct translation *t, const struct node *node,
				      struct error *err)
{
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	struct mx_options options = {0};

	mx_option_list(&options, "shape", y->dims, y->rank);
	return emit_unary(t, node, "Reshape", &options, err);
}

static enum prony_status emit_flatten(struct translation *t, const struct node *node,
				      struct error *err)
{
	const struct mx_options none = {0};

	if (node->attributes.axis != 1)
		return emit_reshape(t, node, err);
	return emit_unary(t, node, "Flatten", &none, err);
}

static enum prony_status emit_identity(struct translation *t, const struct node *node,
				       struct error *err)
{
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	if (status == PRONY_OK)
		t->values[node->outputs[0]] = inputs.symbols[0];
	return status;
}

static enum prony_status emit_dropout(struct translation *t, const struct node *node,
				      struct error *err)
{
	struct mx_options options = {0};

	if (!t->dropout)
		return emit_identity(t, node, err);
	mx_option(&options, "p", "%.9g", node->attributes.ratio);
	return emit_unary(t, node, "Dropout", &options, err);
}

static enum prony_status emit_transpose(struct translation *t, const struct node *node,
					struct error *err)
{
	struct mx_options options = {0};

	mx_option_list(&options, "axes", node->attributes.ints.items, node->attributes.ints.count);
	return emit_unary(t, node, "transpose", &options, err);
}

static enum prony_status emit_concat(struct translation *t, const struct node *node,
				     struct error *err)
{
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};
	const char *keys[NODE_MAX_INPUTS];
	char text[NODE_MAX_INPUTS][8];
	enum prony_status status;

	for (int i = 0; i < node->input_count; i++) {
		snprintf(text[i], sizeof(text[i]), "arg%d", i);
		keys[i] = text[i];
	}
	status = mx_get_inputs(t, node, keys, &inputs, err);
	if (status != PRONY_OK)
		return status;
	mx_option(&options, "num_args", "%d", node->input_count);
	mx_option(&options, "dim", "%lld", (long long)node->attributes.axis);
	return mx_emit(t, node, "Concat", &options, &inputs, err);
}

/* Axes without a bound are left whole: "(None,2,)". */
static void slice_bound(struct mx_options *options, const char *key, int64_t axis, int64_t bound)
{
	char text[MX_OPTION_BYTES] = "";
	size_t used = 0;

	for (int64_t i = 0; i < axis; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "None,");
	snprintf(text + used, sizeof(text) - used, "%lld,", (long long)bound);
	mx_option(options, key, "(%s)", text);
}

static enum prony_status emit_slice(struct translation *t, const struct node *node,
				    struct error *err)
{
	const struct attributes *a = &node->attributes;
	struct mx_options options = {0};

	if (a->step == 1) {
		mx_option(&options, "axis", "%lld", (long long)a->axis);
		mx_option(&options, "begin", "%lld", (long long)a->start);
		mx_option(&options, "end", "%lld", (long long)a->end);
		return emit_unary(t, node, "slice_axis", &options, err);
	}
	slice_bound(&options, "begin", a->axis, a->start);
	slice_bound(&options, "end", a->axis, a->end);
	slice_bound(&options, "step", a->axis, a->step);
	return emit_unary(t, node, "slice", &options, err);
}

static void refuse_pad(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const struct int_list *pads = &node->attributes.ints;

	(void)graph;
	if (pads->count != 8 || pads->items[0] || pads->items[1] || pads->items[4] ||
	    pads->items[5])
		mx_refuse(reasons, node, "MXNet pads height and width of four dimensions only");
}

static enum prony_status emit_pad(struct translation *t, const struct node *node, struct error *err)
{
	struct mx_inputs inputs = {0};
	enum prony_status status = mx_get_data(t, node, &inputs, err);

	if (status == PRONY_OK)
		status = mx_pad(t, node, node->attributes.ints.items, node->attributes.value,
				&inputs, err);
	if (status == PRONY_OK)
		t->values[node->outputs[0]] = inputs.symbols[0];
	return status;
}

static enum prony_status emit_reduce_mean(struct translation *t, const struct node *node,
					  struct error *err)
{
	struct mx_options options = {0};

	mx_option_list(&options, "axis", node->attributes.ints.items, node->attributes.ints.count);
	mx_option(&options, "keepdims", "%s", node->attributes.keep_dims ? "True" : "False");
	return emit_unary(t, node, "mean", &options, err);
}

static enum prony_status emit_double(struct translation *t, const struct node *node,
				     struct mx_symbol *x, struct error *err)
{
	struct mx_options options = {0};
	struct mx_inputs inputs = {0};

	mx_option(&options, "scalar", "2");
	mx_input(&inputs, "data", x);
	return mx_emit(t, node, "_mul_scalar", &options, &inputs, err);
}

static enum prony_status emit_binary(struct translation *t, const struct node *node,
				     struct error *err)
{
	static const char *const keys[] = {"lhs", "rhs"};
	const struct mx_options none = {0};
	struct mx_inputs inputs = {0};
	bool same = shape_equal(mx_shape(t->graph, node->inputs[0]),
				mx_shape(t->graph, node->inputs[1])) != 0;
	const char *operator= NULL;
	enum prony_status status = mx_get_inputs(t, node, keys, &inputs, err);

	if (status != PRONY_OK)
		return status;
	/* The fusion of a sum into the convolution in front expects another value on its other
	 * side, and fails where both are the convolution's. */
	if (node->op == OP_ADD && inputs.symbols[0] == inputs.symbols[1])
		return emit_double(t, node, inputs.symbols[0], err);
	switch (node->op) {
	case OP_ADD:
		operator= same ? "elemwise_add" : "broadcast_add";
		break;
	case OP_SUB:
		operator= same ? "elemwise_sub" : "broadcast_sub";
		break;
	case OP_MUL:
		operator= same ? "elemwise_mul" : "broadcast_mul";
		break;
	default:
		operator= same ? "elemwise_div" : "broadcast_div";
		break;
	}
	return mx_emit(t, node, operator, & none, &inputs, err);
}

const struct mx_row mx_function = {refuse_function, emit_function};
const struct mx_row mx_softmax = {NULL, emit_softmax};
const struct mx_row mx_flatten = {NULL, emit_flatten};
const struct mx_row mx_reshape = {refuse_scalar, emit_reshape};
const struct mx_row mx_identity = {NULL, emit_identity};
const struct mx_row mx_transpose = {NULL, emit_transpose};
const struct mx_row mx_concat = {NULL, emit_concat};
const struct mx_row mx_slice = {NULL, emit_slice};
const struct mx_row mx_pad_row = {refuse_pad, emit_pad};
const struct mx_row mx_reduce_mean = {refuse_scalar, emit_reduce_mean};
const struct mx_row mx_dropout = {NULL, emit_dropout};
const struct mx_row mx_add = {refuse_scalar, emit_binary};
const struct mx_row mx_sub = {refuse_scalar, emit_binary};
const struct mx_row mx_mul = {refuse_scalar, emit_binary};
const struct mx_row mx_div = {refuse_scalar, emit_binary};
