/* Writes normalisations over groups of channels, and resizing. */
#include "adapters/xla/emit_internal.h"
#include "graph/resize.h"

/* Groups of channels of a value: its shape in memory with the channels as groups x members. */
struct groups {
	struct emitter *l;
	struct shape lies, wide;
	int axes[TENSOR_MAX_RANK], count, kept[2]; /* of `wide` */
	double share;				   /* 1 / elements of a group */
};

static struct groups groups_of(struct emitter *l, const struct node *node, int value)
{
	bool each = node->op == OP_INSTANCE_NORM || node->op == OP_INSTANCE_NORM_GRAD;
	struct groups g = {.l = l, .lies = emit_lying(l, value)};
	int channel = emit_channel(g.lies.rank);
	int64_t count = each ? g.lies.dims[channel] : node->attributes.group;

	g.kept[1] = channel;
	for (int i = 0; i < g.lies.rank; i++) {
		if (i == channel)
			g.wide.dims[g.wide.rank++] = count;
		else if (i > 0)
			g.axes[g.count++] = g.wide.rank;
		if (i == channel)
			g.axes[g.count++] = g.wide.rank;
		g.wide.dims[g.wide.rank++] = i == channel ? g.lies.dims[i] / count : g.lies.dims[i];
	}
	g.share = (double)(g.lies.dims[0] * count) / (double)shape_elements(&g.lies);
	return g;
}

static struct hlo group_mean(const struct groups *g, struct hlo x)
{
	struct hlo_text *h = &g->l->h;

	x = hlo_with(h, "multiply", hlo_reduce(h, "add", x, g->axes, g->count), g->share);
	return hlo_broadcast(h, x, g->kept, &g->wide);
}

/* Returns x (in its shape in memory) normalised, with the groups apart; *inverse gets 1 /
 * deviation. */
static struct hlo normalised(const struct groups *g, const struct node *node, struct hlo x,
			     struct hlo *inverse)
{
	struct hlo_text *h = &g->l->h;
	struct hlo variance;

	x = hlo_reshape(h, x, &g->wide);
	x = hlo_binary(h, "subtract", x, group_mean(g, x));
	variance = group_mean(g, hlo_binary(h, "multiply", x, x));
	*inverse = hlo_unary(h, "rsqrt", hlo_with(h, "add", variance, node->attributes.epsilon));
	return hlo_binary(h, "multiply", x, *inverse);
}

void emit_group_norm(struct emitter *l, const struct node *node)
{
	struct groups g = groups_of(l, node, node->inputs[0]);
	struct hlo_text *h = &l->h;
	struct hlo inverse, y = normalised(&g, node, emit_input_f32(l, node, 0), &inverse);

	y = hlo_reshape(h, y, &g.lies);
	y = hlo_binary(h, "multiply", y, emit_channels(l, emit_input_f32(l, node, 1), &g.lies));
	y = hlo_binary(h, "add", y, emit_channels(l, emit_input_f32(l, node, 2), &g.lies));
	emit_output(l, node, 0, y);
}

/* dx = (e - mean of e - z * mean of e z) / deviation, where e = scale dy and z is x normalised. */
void emit_group_norm_grad(struct emitter *l, const struct node *node)
{
	struct groups g = groups_of(l, node, node->inputs[1]);
	struct hlo_text *h = &l->h;
	struct hlo dy = emit_input_f32(l, node, 0), e, dx, inverse;
	struct hlo z = normalised(&g, node, emit_input_f32(l, node, 1), &inverse);

	e = hlo_binary(h, "multiply", dy, emit_channels(l, emit_input_f32(l, node, 2), &g.lies));
	e = hlo_reshape(h, e, &g.wide);
	dx = hlo_binary(h, "multiply", z, group_mean(&g, hlo_binary(h, "multiply", e, z)));
	dx = hlo_binary(h, "subtract", hlo_binary(h, "subtract", e, group_mean(&g, e)), dx);
	dx = hlo_binary(h, "multiply", dx, inverse);
	emit_output(l, node, 0, hlo_reshape(h, dx, &g.lies));
	z = hlo_binary(h, "multiply", dy, hlo_reshape(h, z, &g.lies));
	emit_output(l, node, 1, emit_sum_channels(l, z));
	emit_output(l, node, 2, emit_sum_channels(l, dy));
}

/* Multiplies height or width (axis 0 or 1) of an image N x H x W x C by the matrix of a linear
 * Resize, or by its transpose. The products are not the network's: they do not count. */
static struct hlo interpolated(struct emitter *l, const struct attributes *a, int axis, int64_t in,
			       struct hlo x, bool back)
{
	const int order[] = {1 + axis, 0, 2 - axis, 3}, home[] = {1, axis ? 2 : 0, axis ? 0 : 2, 3};
	const int64_t out = in * a->strides[axis], macs = l->h.macs;
	struct resize_tap *taps = arena_array(l->arena, (size_t)out, sizeof(*taps));
	double *weights = arena_array(l->arena, (size_t)(out * in), sizeof(*weights));
	struct shape matrix = {.rank = 2, .dims = {out, in}}, flat = {.rank = 2}, turned;

	resize_taps(a, axis, in, taps);
	for (int64_t i = 0; i < out; i++) {
		weights[i * in + taps[i].low] += 1 - taps[i].weight;
		weights[i * in + taps[i].high] += taps[i].weight;
	}
	x = hlo_transpose(&l->h, x, order);
	turned = x.shape;
	flat.dims[0] = turned.dims[0];
	flat.dims[1] = shape_elements(&turned) / turned.dims[0];
	x = hlo_dot(&l->h, hlo_reshape(&l->h, hlo_vector(&l->h, weights, out * in), &matrix),
		    back ? 0 : 1, hlo_reshape(&l->h, x, &flat), 0, HLO_F32);
	l->h.macs = macs;
	turned.dims[0] = back ? in : out;
	return hlo_transpose(&l->h, hlo_reshape(&l->h, x, &turned), home);
}

/* The image with its rows and columns repeated, or the sum over the repetitions. */
static struct hlo repeated(struct emitter *l, const struct attributes *a, const struct shape *x,
			   const struct shape *y, struct hlo value, bool back)
{
	static const int kept[] = {0, 1, 3, 5}, repetitions[] = {2, 4};
	const int64_t *d = x->dims;
	struct shape wide = {.rank = 6,
			     .dims = {d[0], d[1], a->strides[0], d[2], a->strides[1], d[3]}};

	if (back)
		return hlo_reduce(&l->h, "add", hlo_reshape(&l->h, value, &wide), repetitions, 2);
	return hlo_reshape(&l->h, hlo_broadcast(&l->h, value, kept, &wide), y);
}

static void resize(struct emitter *l, const struct node *node, int x, int y, bool back)
{
	const struct attributes *a = &node->attributes;
	struct shape small = emit_lying(l, x), large = emit_lying(l, y);
	struct hlo value = emit_input_f32(l, node, 0);

	if (a->mode == RESIZE_NEAREST)
		value = repeated(l, a, &small, &large, value, back);
	for (int axis = 0; axis < 2 && a->mode == RESIZE_LINEAR; axis++)
		value = interpolated(l, a, axis, small.dims[1 + axis], value, back);
	emit_output(l, node, 0, value);
}

void emit_resize(struct emitter *l, const struct node *node)
{
	resize(l, node, node->inputs[0], node->outputs[0], false);
}

void emit_resize_grad(struct emitter *l, const struct node *node)
{
	resize(l, node, node->outputs[0], node->inputs[0], true);
}
