/* Resize and its gradient with loops of our own, on row-major planes in fp32. */
#include "graph/resize.h"

#include <string.h>

#include "adapters/native/cpu/cpu.h"

/* A tap of an axis in fp32. */
struct tap {
	int32_t low, high;
	float weight;
};

struct resize {
	size_t planes, height, width, in_width, in_plane; /* of y; in_: of x */
	const struct tap *rows, *columns;
	bool repeats;
};

struct share {
	const struct resize *r;
	const float *from;
	float *to;
};

static void forward_planes(void *data, size_t first, size_t end)
{
	const struct share *share = data;
	const struct resize *r = share->r;

	for (size_t row = first * r->height; row < end * r->height; row++) {
		struct tap tap = r->rows[row % r->height];
		const float *x = share->from + row / r->height * r->in_plane;
		const float *low = x + (size_t)tap.low * r->in_width;
		const float *high = x + (size_t)tap.high * r->in_width;
		float *y = share->to + row * r->width;

		for (size_t w = 0; r->repeats && w < r->width; w++)
			y[w] = low[r->columns[w].low];
		for (size_t w = 0; !r->repeats && w < r->width; w++) {
			struct tap c = r->columns[w];
			float above = low[c.low] + c.weight * (low[c.high] - low[c.low]);
			float below = high[c.low] + c.weight * (high[c.high] - high[c.low]);

			y[w] = above + tap.weight * (below - above);
		}
	}
}

static void gradient_planes(void *data, size_t first, size_t end)
{
	const struct share *share = data;
	const struct resize *r = share->r;

	memset(share->to + first * r->in_plane, 0, (end - first) * r->in_plane * sizeof(float));
	for (size_t row = first * r->height; row < end * r->height; row++) {
		struct tap tap = r->rows[row % r->height];
		float *dx = share->to + row / r->height * r->in_plane;
		float *low = dx + (size_t)tap.low * r->in_width;
		float *high = dx + (size_t)tap.high * r->in_width;
		const float *dy = share->from + row * r->width;

		for (size_t w = 0; r->repeats && w < r->width; w++)
			low[r->columns[w].low] += dy[w];
		for (size_t w = 0; !r->repeats && w < r->width; w++) {
			struct tap c = r->columns[w];
			float below = tap.weight * dy[w], above = dy[w] - below;

			low[c.low] += above - c.weight * above;
			low[c.high] += c.weight * above;
			high[c.low] += below - c.weight * below;
			high[c.high] += c.weight * below;
		}
	}
}

/* Operands: the result, the input. */
static void run(struct program *program, const struct command *command,
		void (*planes)(void *data, size_t first, size_t end))
{
	const struct resize *r = command->work->detail;
	struct share share = {r, cpu_data(program, command, 1), cpu_data(program, command, 0)};

	onednn_split(&program->device->dnn, cpu_threads(program, r->planes * r->height * r->width),
		     r->planes, planes, &share);
}

static void run_forward(struct program *program, const struct command *command)
{
	run(program, command, forward_planes);
}

static void run_gradient(struct program *program, const struct command *command)
{
	run(program, command, gradient_planes);
}

static const struct tap *taps_of(struct lowering *l, const struct attributes *a, int axis,
				 int64_t in)
{
	struct arena *arena = &l->program->arena;
	size_t count = (size_t)(in * a->strides[axis]);
	struct resize_tap *exact = arena_array(arena, count, sizeof(*exact));
	struct tap *taps = arena_array(arena, count, sizeof(*taps));

	resize_taps(a, axis, in, exact);
	for (size_t i = 0; i < count; i++)
		taps[i] = (struct tap){(int32_t)exact[i].low, (int32_t)exact[i].high,
				       (float)exact[i].weight};
	return taps;
}

/* Input 0 of node n in rows, and a command that computes output 0. `small` is the shape of x. */
static enum prony_status lower(struct lowering *l, int n, const struct shape *small,
			       void (*kernel)(struct program *, const struct command *),
			       struct error *err)
{
	const struct node *node = &l->graph->nodes[n];
	const struct shape *from = &l->graph->values[node->inputs[0]].shape;
	const struct shape *to = &l->graph->values[node->outputs[0]].shape;
	struct layout rows = layout_row_major(DTYPE_F32, from->rank, from->dims);
	struct resize *r = arena_alloc(&l->program->arena, sizeof(*r));
	const int64_t *scales = node->attributes.strides;
	int x, y;
	enum prony_status status = lower_value(l, node->inputs[0], node->name, &x, err);

	if (status == PRONY_OK)
		status = lower_as(l, x, &rows, node->name, &x, err);
	if (status == PRONY_OK)
		status = lower_new(l, DTYPE_F32, to->rank, to->dims, &y, err);
	if (status != PRONY_OK)
		return status;
	*r = (struct resize){.planes = (size_t)(small->dims[0] * small->dims[1]),
			     .height = (size_t)(small->dims[2] * scales[0]),
			     .width = (size_t)(small->dims[3] * scales[1]),
			     .in_width = (size_t)small->dims[3],
			     .in_plane = (size_t)(small->dims[2] * small->dims[3]),
			     .rows = taps_of(l, &node->attributes, 0, small->dims[2]),
			     .columns = taps_of(l, &node->attributes, 1, small->dims[3]),
			     .repeats = node->attributes.mode == RESIZE_NEAREST};
	cpu_kernel(l, node->name, "", kernel, (const int[]){y, x}, 2)->detail = r;
	l->values[node->outputs[0]].operand = y;
	return PRONY_OK;
}

enum prony_status cpu_resize(struct lowering *l, int n, struct error *err)
{
	const struct shape *x = &l->graph->values[l->graph->nodes[n].inputs[0]].shape;

	return lower(l, n, x, run_forward, err);
}

enum prony_status cpu_resize_grad(struct lowering *l, int n, struct error *err)
{
	const struct shape *dx = &l->graph->values[l->graph->nodes[n].outputs[0]].shape;

	return lower(l, n, dx, run_gradient, err);
}
