/* Translates normalisations over groups of channels, and resizing. */
#include "adapters/tensorflow/tf_translate_internal.h"
#include "graph/resize.h"

/* Groups of channels of a value: its shape in memory with the channels as groups x members. */
struct groups {
	struct shape lies, wide, along;	 /* along: that of one number for each channel */
	bool reduced[TENSOR_MAX_RANK];	 /* axes of `wide` */
	bool elsewhere[TENSOR_MAX_RANK]; /* all but the channels, of `lies` */
};

static struct groups groups_of(const struct tf_translation *t, const struct node *node, int value)
{
	bool each = node->op == OP_INSTANCE_NORM || node->op == OP_INSTANCE_NORM_GRAD;
	struct groups g = {.lies = tf_lying_shape(t, value)};
	int channel = layouts_axis(&t->layouts, value, 1);
	int64_t count = each ? g.lies.dims[channel] : node->attributes.group;

	g.along.rank = g.lies.rank;
	for (int i = 0; i < g.lies.rank; i++) {
		int64_t size = g.lies.dims[i];

		g.along.dims[i] = i == channel ? size : 1;
		g.elsewhere[i] = i != channel;
		if (i == channel)
			g.wide.dims[g.wide.rank++] = count;
		g.reduced[g.wide.rank] = i > 0;
		g.wide.dims[g.wide.rank++] = i == channel ? size / count : size;
	}
	return g;
}

static struct tf_output mean(struct tf_translation *t, const struct groups *g, struct tf_output x)
{
	return tf_reduce(t, "Mean", x, g->reduced, g->wide.rank);
}

/* Input i in fp32. */
static struct tf_output wide(struct tf_translation *t, const struct node *node, int i)
{
	return tf_cast(&t->e, tf_take(t, node, i), TF_TYPE_FLOAT);
}

/* Sets output i in the type of activations. */
static void give(struct tf_translation *t, const struct node *node, int i, struct tf_output y)
{
	tf_give(t, node, i, tf_cast(&t->e, y, t->type));
}

/* Returns input i normalised, with the groups apart; *inverse gets 1 / deviation. */
static struct tf_output normalised(struct tf_translation *t, const struct groups *g,
				   const struct node *node, int i, struct tf_output *inverse)
{
	struct tf_output x = wide(t, node, i), variance;

	x = tf_reshape(&t->e, x, &g->wide);
	x = tf_binary(&t->e, "Sub", x, mean(t, g, x));
	variance = mean(t, g, tf_unary(&t->e, "Square", x));
	*inverse = tf_unary(&t->e, "Rsqrt",
			    tf_binary(&t->e, "AddV2", variance,
				      tf_number(&t->e, variance, node->attributes.epsilon)));
	return tf_binary(&t->e, "Mul", x, *inverse);
}

void tf_group_norm(struct tf_translation *t, const struct node *node)
{
	struct groups g = groups_of(t, node, node->inputs[0]);
	struct tf_output inverse, y = normalised(t, &g, node, 0, &inverse);

	y = tf_reshape(&t->e, y, &g.lies);
	y = tf_binary(&t->e, "Mul", y, tf_reshape(&t->e, wide(t, node, 1), &g.along));
	y = tf_binary(&t->e, "AddV2", y, tf_reshape(&t->e, wide(t, node, 2), &g.along));
	give(t, node, 0, y);
}

static void give_channel_sum(struct tf_translation *t, const struct node *node, int i,
			     const struct groups *g, struct tf_output x)
{
	if (node->outputs[i] == VALUE_NONE)
		return;
	x = tf_reduce(t, "Sum", x, g->elsewhere, g->lies.rank);
	give(t, node, i, tf_reshape(&t->e, x, tf_graph_shape(t, node->outputs[i])));
}

/* (e - mean(e) - z mean(e z)) / deviation, where e = dy scale and z = x normalised */
void tf_group_norm_grad(struct tf_translation *t, const struct node *node)
{
	struct groups g = groups_of(t, node, node->inputs[1]);
	struct tf_output dy = wide(t, node, 0), e, dx, inverse;
	struct tf_output z = normalised(t, &g, node, 1, &inverse);

	if (node->outputs[0] != VALUE_NONE) {
		e = tf_binary(&t->e, "Mul", dy, tf_reshape(&t->e, wide(t, node, 2), &g.along));
		e = tf_reshape(&t->e, e, &g.wide);
		dx = tf_binary(&t->e, "Mul", z, mean(t, &g, tf_binary(&t->e, "Mul", e, z)));
		dx = tf_binary(&t->e, "Sub", tf_binary(&t->e, "Sub", e, mean(t, &g, e)), dx);
		dx = tf_binary(&t->e, "Mul", dx, inverse);
		give(t, node, 0, tf_reshape(&t->e, dx, &g.lies));
	}
	z = tf_reshape(&t->e, z, &g.lies);
	give_channel_sum(t, node, 1, &g, tf_binary(&t->e, "Mul", dy, z));
	give_channel_sum(t, node, 2, &g, dy);
}

/* An operation of tf.image, whose kernels support channels last only; inputs[0] is an image. */
static void give_image(struct tf_translation *t, const struct node *node, const char *const types[],
		       struct tf_output second)
{
	const struct attributes *a = &node->attributes;
	bool linear = a->mode == RESIZE_LINEAR;
	struct tf_output x = wide(t, node, 0), y;

	if (!t->last)
		x = tf_transpose(&t->e, x, (const int64_t[]){0, 2, 3, 1}, 4);
	y = tf_op(&t->e, types[linear], TF_IN(x, second),
		  TF_WITH(TF_BOOL("align_corners", a->coordinates == RESIZE_ALIGN_CORNERS),
			  TF_BOOL("half_pixel_centers",
				  linear && a->coordinates == RESIZE_HALF_PIXEL)));
	give(t, node, 0, t->last ? y : tf_transpose(&t->e, y, (const int64_t[]){0, 3, 1, 2}, 4));
}

static struct tf_output sides(struct tf_translation *t, int value)
{
	const struct shape *shape = tf_graph_shape(t, value);

	return tf_dims(&t->e, &(struct shape){.rank = 2, .dims = {shape->dims[2], shape->dims[3]}});
}

void tf_resize(struct tf_translation *t, const struct node *node)
{
	static const char *const types[] = {"ResizeNearestNeighbor", "ResizeBilinear"};

	give_image(t, node, types, sides(t, node->outputs[0]));
}

/* The gradient of the linear one reads the shape of the image. */
void tf_resize_grad(struct tf_translation *t, const struct node *node)
{
	static const char *const types[] = {"ResizeNearestNeighborGrad", "ResizeBilinearGrad"};
	struct tf_output second;

	if (node->attributes.mode == RESIZE_NEAREST) {
		second = sides(t, node->outputs[0]);
	} else {
		second = wide(t, tf_forward(t, node), 0);
		if (!t->last)
			second = tf_transpose(&t->e, second, (const int64_t[]){0, 2, 3, 1}, 4);
	}
	give_image(t, node, types, second);
}
