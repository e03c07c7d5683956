/* Resize: whole multiples of height and width, by repetition or linear interpolation. */
#include "graph/resize.h"
#include "graph/operators/operator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/edit_internal.h"

static const char *const mode_words[] = {
	[RESIZE_NEAREST] = "nearest", [RESIZE_LINEAR] = "linear", NULL};
static const char *const coordinate_words[] = {
	[RESIZE_HALF_PIXEL] = "half_pixel", [RESIZE_ALIGN_CORNERS] = "align_corners", NULL};

static const struct attribute_row resize_attributes[] = {
	{ATTRIBUTE("scales", INTS2, strides, 1)},
	{ATTRIBUTE("mode", WORD, mode, RESIZE_NEAREST), .words = mode_words},
	{ATTRIBUTE("coordinate_transformation_mode", WORD, coordinates, RESIZE_HALF_PIXEL),
	 .words = coordinate_words},
	{.name = NULL},
};

static enum prony_status resize_infer(struct graph *graph, struct node *node, struct error *err)
{
	const struct attributes *a = &node->attributes;
	enum prony_status status = node_need_rank(graph, node, 0, 4, err);
	struct shape y;

	if (status != PRONY_OK)
		return status;
	y = *node_input_shape(graph, node, 0);
	for (int i = 0; i < 2; i++) {
		if (a->strides[i] < 1 || a->strides[i] > GRAPH_MAX_DIM)
			return node_error(node, err, "scales contains %lld; it must be 1 or more",
					  (long long)a->strides[i]);
		y.dims[2 + i] = saturating_multiply(y.dims[2 + i], a->strides[i]);
	}
	if (a->mode == RESIZE_NEAREST && a->coordinates == RESIZE_ALIGN_CORNERS)
		return node_error(node, err, "nearest with align_corners is not supported");
	return node_set_output(graph, node, 0, DTYPE_F32, &y, err);
}

void resize_taps(const struct attributes *a, int axis, int64_t in, struct resize_tap *taps)
{
	int64_t scale = a->strides[axis], out = in * scale;

	for (int64_t i = 0; i < out; i++) {
		double at = ((double)i + 0.5) / (double)scale - 0.5;

		if (a->mode == RESIZE_NEAREST) {
			taps[i] = (struct resize_tap){i / scale, i / scale, 0};
			continue;
		}
		if (a->coordinates == RESIZE_ALIGN_CORNERS)
			at = out > 1 ? (double)i * (double)(in - 1) / (double)(out - 1) : 0;
		at = at < 0 ? 0 : at;
		taps[i].low = (int64_t)at < in - 1 ? (int64_t)at : in - 1;
		taps[i].high = taps[i].low < in - 1 ? taps[i].low + 1 : taps[i].low;
		taps[i].weight = at - (double)taps[i].low;
	}
}

/* The planes of the larger array y and of the smaller one x. */
struct planes {
	const struct kernel_call *call;
	int64_t height, width, in_width, in_plane;
	struct resize_tap *rows, *columns;
};

static struct planes planes_new(const struct kernel_call *call, const struct shape *x,
				const struct shape *y)
{
	struct planes p = {.call = call,
			   .height = y->dims[2],
			   .width = y->dims[3],
			   .in_width = x->dims[3],
			   .in_plane = x->dims[2] * x->dims[3]};

	p.rows = memory_alloc((size_t)p.height * sizeof(*p.rows));
	p.columns = memory_alloc((size_t)p.width * sizeof(*p.columns));
	resize_taps(&call->node->attributes, 0, x->dims[2], p.rows);
	resize_taps(&call->node->attributes, 1, x->dims[3], p.columns);
	return p;
}

static void planes_run(struct planes *p, const struct shape *y,
		       void (*work)(void *context, int64_t part))
{
	kernel_parts(y->dims[0] * y->dims[1], shape_elements(y), work, p);
	free(p->rows);
	free(p->columns);
}

static void plane_forward(void *context, int64_t plane)
{
	const struct planes *p = context;
	const double *x = kernel_input(p->call, 0) + plane * p->in_plane;
	double *y = kernel_output(p->call, 0) + plane * p->height * p->width;

	for (int64_t h = 0; h < p->height; h++) {
		const struct resize_tap *r = &p->rows[h];
		const double *low = x + r->low * p->in_width, *high = x + r->high * p->in_width;

		for (int64_t w = 0; w < p->width; w++) {
			const struct resize_tap *c = &p->columns[w];
			double above = low[c->low] * (1 - c->weight) + low[c->high] * c->weight;
			double below = high[c->low] * (1 - c->weight) + high[c->high] * c->weight;

			*y++ = above * (1 - r->weight) + below * r->weight;
		}
	}
}

static void plane_gradient(void *context, int64_t plane)
{
	const struct planes *p = context;
	const double *dy = kernel_input(p->call, 0) + plane * p->height * p->width;
	double *dx = kernel_output(p->call, 0) + plane * p->in_plane;

	memset(dx, 0, (size_t)p->in_plane * sizeof(*dx));
	for (int64_t h = 0; h < p->height; h++) {
		const struct resize_tap *r = &p->rows[h];
		double *low = dx + r->low * p->in_width, *high = dx + r->high * p->in_width;

		for (int64_t w = 0; w < p->width; w++, dy++) {
			const struct resize_tap *c = &p->columns[w];

			low[c->low] += *dy * (1 - r->weight) * (1 - c->weight);
			low[c->high] += *dy * (1 - r->weight) * c->weight;
			high[c->low] += *dy * r->weight * (1 - c->weight);
			high[c->high] += *dy * r->weight * c->weight;
		}
	}
}

static void resize_compute(const struct kernel_call *call)
{
	const struct shape *y = kernel_output_shape(call, 0);
	struct planes p = planes_new(call, kernel_input_shape(call, 0), y);

	planes_run(&p, y, plane_forward);
}

static void resize_grad_compute(const struct kernel_call *call)
{
	const struct shape *dy = kernel_input_shape(call, 0);
	struct planes p = planes_new(call, kernel_output_shape(call, 0), dy);

	planes_run(&p, dy, plane_gradient);
}

static int64_t resize_terms(const struct graph *graph, const struct node *node, int output)
{
	(void)graph;
	(void)output;
	return node->attributes.mode == RESIZE_NEAREST ? 0 : 4;
}

/* Repeated elements, or those of both neighbours on each axis. */
static int64_t resize_grad_terms(const struct graph *graph, const struct node *node, int output)
{
	const struct attributes *a = &node->attributes;

	(void)graph;
	(void)output;
	return saturating_multiply(saturating_multiply(a->strides[0], a->strides[1]),
				   a->mode == RESIZE_NEAREST ? 1 : 4);
}

/* clang-format off */
const struct operator_row row_RESIZE = {
	ARITY(1, 1, 1), .attributes = resize_attributes, .infer = resize_infer,
	.gradient = OP_RESIZE_GRAD, .gradient_reads = "", .compute = resize_compute,
	.terms = resize_terms, .samples = samples_of_planes, .onnx_export = ONNX_EXPORT_RESIZE,
};

const struct operator_row row_RESIZE_GRAD = {
	GRADIENT(1, 1, resize_attributes), .compute = resize_grad_compute,
	.terms = resize_grad_terms,
};
/* clang-format on */
