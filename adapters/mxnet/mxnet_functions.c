/* Translates element-wise functions and rearrangements of elements into MXNet's operators. */
#include "adapters/mxnet/mxnet_translate_internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* An element-wise function as an MXNet operator: up to two options, from attributes of the node. */
struct function {
	const char *name, *options;
	const char *keys[2];
	size_t numbers[2]; /* in struct attributes */
};

#define NUMBER(member) offsetof(struct attributes, member)

/* clang-format off */
static const struct function functions[OP_COUNT] = {
	[OP_RELU] = {"Activation", "act_type=relu", {NULL, NULL}, {0, 0}},
	[OP_TANH] = {"Activation", "act_type=tanh", {NULL, NULL}, {0, 0}},
	[OP_SIGMOID] = {"Activation", "act_type=sigmoid", {NULL, NULL}, {0, 0}},
	[OP_HARD_SIGMOID] = {"hard_sigmoid", "", {"alpha", "beta"}, {NUMBER(alpha), NUMBER(beta)}},
	[OP_CLIP] = {"clip", "", {"a_min", "a_max"}, {NUMBER(min), NUMBER(max)}},
	[OP_ELU] = {"LeakyReLU", "act_type=elu", {"slope", NULL}, {NUMBER(alpha), 0}},
	[OP_LEAKY_RELU] = {"LeakyReLU", "act_type=leaky", {"slope", NULL}, {NUMBER(alpha), 0}},
	[OP_EXP] = {"exp", "", {NULL, NULL}, {0, 0}},
	[OP_LOG] = {"log", "", {NULL, NULL}, {0, 0}},
	[OP_SQRT] = {"sqrt", "", {NULL, NULL}, {0, 0}},
	[OP_GELU] = {"LeakyReLU", "act_type=gelu", {NULL, NULL}, {0, 0}},
	[OP_ERF] = {"erf", "", {NULL, NULL}, {0, 0}},
	[OP_POW] = {"_power_scalar", "", {"scalar", NULL}, {NUMBER(exponent), 0}},
	[OP_NEG] = {"negative", "", {NULL, NULL}, {0, 0}},
};
/* clang-format on */

static struct mx_symbol *function(struct translation *t, enum op op, const struct attributes *a,
				  const char *suffix, struct mx_symbol *x)
{
	const struct function *f = &functions[op];
	char options[MX_OPTIONS_BYTES];
	size_t used = (size_t)snprintf(options, sizeof(options), "%s", f->options);

	for (int i = 0; i < 2 && f->keys[i]; i++) {
		double number = *(const double *)((const char *)a + f->numbers[i]);
		/* MXNet cannot parse the largest floats. */
		double read = fabs(number) >= (double)FLT_MAX ? copysign(3.4e38, number) : number;

		used += (size_t)snprintf(options + used, sizeof(options) - used, " %s=%.9g",
					 f->keys[i], read);
	}
	return mx_op(t, suffix, f->name, &x, 1, options);
}

/* One step of a decomposition, applied to the symbols of the steps before it; symbols[0] is x. */
static struct mx_symbol *step(struct translation *t, const struct elementwise_step *step,
			      const char *suffix, struct mx_symbol *const *symbols)
{
	const struct attributes attributes = {.alpha = step->constant, .beta = step->beta};
	bool sum = step->op == OP_ADD;
	struct mx_symbol *x = symbols[step->inputs[0]];

	if (operator_row(step->op)->elementwise)
		return function(t, step->op, &attributes, suffix, x);
	if (step->inputs[1] == ELEMENTWISE_CONSTANT)
		return mx_scalar(t, suffix, sum ? "_plus_scalar" : "_mul_scalar", x,
				 step->constant);
	return mx_op(t, suffix, sum ? "elemwise_add" : "elemwise_mul",
		     MX_IN(x, symbols[step->inputs[1]]), NULL);
}

/* The row's decomposition into MXNet's operators; returns the number of steps, 0 without a
 * decomposition. */
static int steps_of(const struct node *node, struct elementwise_step *steps)
{
	const struct elementwise *row = operator_row(node->op)->elementwise;

	return row->decompose ? row->decompose(&node->attributes, steps) : 0;
}

/* The row's decomposition if it has one, otherwise MXNet's own operator. */
struct mx_symbol *mx_function(struct translation *t, const struct node *node)
{
	struct elementwise_step steps[ELEMENTWISE_MAX_STEPS];
	struct mx_symbol *symbols[ELEMENTWISE_MAX_STEPS + 1] = {mx_in(t, 0)};
	int count = steps_of(node, steps);

	if (count == 0)
		return function(t, node->op, &node->attributes, "", symbols[0]);
	for (int i = 0; i < count; i++) {
		char suffix[16] = "";

		if (i + 1 < count)
			snprintf(suffix, sizeof(suffix), "%d", i);
		symbols[i + 1] = step(t, &steps[i], suffix, symbols);
	}
	return symbols[count];
}

void mx_refuse_function(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	struct elementwise_step steps[ELEMENTWISE_MAX_STEPS];

	(void)graph;
	if (functions[node->op].name == NULL && steps_of(node, steps) == 0)
		mx_refuse(reasons, node, "MXNet 1.9 has no such operator");
}

struct mx_symbol *mx_softmax(struct translation *t, const struct node *node)
{
	return mx_unary(t, "softmax", mx_text(t, "axis=%lld", (long long)node->attributes.axis));
}

/* In MXNet 1.9 a shape without dimensions means an unknown shape. */
void mx_refuse_scalar(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	if (mx_shape(graph, node->outputs[0])->rank == 0)
		mx_refuse(reasons, node, "the result is a scalar, which MXNet 1.9 does not have");
}

struct mx_symbol *mx_reshape(struct translation *t, const struct node *node)
{
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);

	return mx_unary(t, "Reshape", mx_text(t, "shape=%s", mx_list(y->dims, y->rank).text));
}

struct mx_symbol *mx_flatten(struct translation *t, const struct node *node)
{
	return node->attributes.axis == 1 ? mx_unary(t, "Flatten", NULL) : mx_reshape(t, node);
}

struct mx_symbol *mx_identity(struct translation *t, const struct node *node)
{
	(void)node;
	return mx_in(t, 0);
}

struct mx_symbol *mx_dropout(struct translation *t, const struct node *node)
{
	if (!t->dropout)
		return mx_in(t, 0);
	return mx_unary(t, "Dropout", mx_text(t, "p=%.9g", node->attributes.ratio));
}

struct mx_symbol *mx_transpose(struct translation *t, const struct node *node)
{
	const struct int_list *axes = &node->attributes.ints;

	return mx_unary(t, "transpose",
			mx_text(t, "axes=%s", mx_list(axes->items, axes->count).text));
}

struct mx_symbol *mx_expand(struct translation *t, const struct node *node)
{
	return mx_broadcast(t, "aligned", "", mx_in(t, 0), mx_shape(t->graph, node->inputs[0]),
			    mx_shape(t->graph, node->outputs[0]));
}

/* Whether all parts consist of whole blocks of the channels that oneDNN groups. */
static bool whole_blocks(const struct translation *t, const struct node *node)
{
	for (int i = 0; i < node->input_count; i++)
		if (mx_shape(t->graph, node->inputs[i])->dims[node->attributes.axis] % 16 != 0)
			return false;
	return true;
}

/* MXNet 1.9 splits the gradient in its memory layout, and fails with "could not construct a
 * sub-memory" if the layout has blocks that two parts share. The gradient of slice_axis, which here
 * takes the whole tensor, has a plain layout. Operators that may overwrite their input (Reshape, a
 * product) would keep the blocks. */
struct mx_symbol *mx_concat(struct translation *t, const struct node *node)
{
	const struct shape *y = mx_shape(t->graph, node->outputs[0]);
	bool plain = t->loss && y->rank == 4 && !whole_blocks(t, node);
	struct mx_symbol *parts[NODE_MAX_INPUTS];
	int count = mx_all_in(t, parts);
	struct mx_symbol *joined =
		mx_op(t, plain ? "joined" : "", "Concat", parts, count,
		      mx_text(t, "num_args=%d dim=%lld", count, (long long)node->attributes.axis));

	if (!plain)
		return joined;
	return mx_op(t, "", "slice_axis", &joined, 1, "axis=0 begin=0 end=None");
}

struct mx_symbol *mx_slice(struct translation *t, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	/* Axes without a bound are kept whole. */
	static const char whole[] = "None,None,None,None,None,None,None,None,";
	int before = (int)(a->axis * 5);

	if (a->step == 1)
		return mx_unary(t, "slice_axis",
				mx_text(t, "axis=%lld begin=%lld end=%lld", (long long)a->axis,
					(long long)a->start, (long long)a->end));
	return mx_unary(t, "slice",
			mx_text(t, "begin=(%.*s%lld,) end=(%.*s%lld,) step=(%.*s%lld,)", before,
				whole, (long long)a->start, before, whole, (long long)a->end,
				before, whole, (long long)a->step));
}

void mx_refuse_pad(const struct graph *graph, const struct node *node, struct strbuf *reasons)
{
	const struct int_list *pads = &node->attributes.ints;

	(void)graph;
	if (pads->count != 8 || pads->items[0] || pads->items[1] || pads->items[4] ||
	    pads->items[5])
		mx_refuse(reasons, node,
			  "MXNet can only pad height and width of four-dimensional values");
}

struct mx_symbol *mx_pad(struct translation *t, const struct node *node)
{
	const int64_t *pads = node->attributes.ints.items;

	return mx_pad_image(t, mx_in(t, 0), &pads[2], &pads[6], node->attributes.value);
}

struct mx_symbol *mx_reduce_mean(struct translation *t, const struct node *node)
{
	const struct int_list *axes = &node->attributes.ints;

	return mx_unary(t, "mean",
			mx_text(t, "axis=%s keepdims=%s", mx_list(axes->items, axes->count).text,
				mx_bool(node->attributes.keep_dims)));
}

/* Whether an operand is a convolution's output with other readers. MXNet 1.9 fuses a sum into the
 * convolution before it, although the other operand may come from the same output; then the result
 * is wrong. It does not fuse broadcast_add. */
static bool must_not_fuse(const struct translation *t, const struct node *node)
{
	for (int i = 0; i < 2; i++) {
		int producer = t->graph->values[node->inputs[i]].producer;

		if (producer >= 0 && t->graph->nodes[producer].op == OP_CONV &&
		    graph_forward_readers(t->graph, node->inputs[i]) > 1)
			return true;
	}
	return false;
}

struct mx_symbol *mx_arithmetic(struct translation *t, const struct node *node)
{
	static const char *const types[OP_COUNT][2] = {
		[OP_ADD] = {"broadcast_add", "elemwise_add"},
		[OP_SUB] = {"broadcast_sub", "elemwise_sub"},
		[OP_MUL] = {"broadcast_mul", "elemwise_mul"},
		[OP_DIV] = {"broadcast_div", "elemwise_div"},
	};
	bool same = shape_equal(mx_shape(t->graph, node->inputs[0]),
				mx_shape(t->graph, node->inputs[1])) != 0;
	struct mx_symbol *a = mx_in(t, 0), *b = mx_in(t, 1);

	/* The fusion of a sum into the preceding convolution expects another value as the other
	 * operand. It fails if both operands are the convolution's output. */
	if (node->op == OP_ADD && a == b)
		return mx_scalar(t, "", "_mul_scalar", a, 2);
	if (node->op == OP_ADD && must_not_fuse(t, node))
		same = false;
	return mx_op(t, "", types[node->op][same], MX_IN(a, b), NULL);
}
