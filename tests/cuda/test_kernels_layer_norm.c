/* Kernels of layer normalisation against the operator's float64 kernels. */
#include "tests/cuda/kernel_case.h"

struct layer_case {
	int64_t rows, length;
	int lanes, chunks; /* of the sums over rows, as the backend may choose them */
	double mean, deviation;
};

/* Whole packs and not, rows shorter and longer than a block, more and fewer rows than chunks. */
static const struct layer_case cases[] = {{7, 16, 2, 1, 0, 1},	   {5, 33, 32, 2, 1, 2},
					  {1, 1, 1, 1, 0, 1},	   {40, 72, 8, 3, -5, 1},
					  {3, 1000, 8, 7, 0.5, 1}, {9, 64, 4, 2, 2000, 1}};

static struct norm_arguments arguments_of(const struct layer_case *c, enum dtype type)
{
	int pack = PACK_BYTES / (int)dtype_bytes(type);
	struct norm_arguments a = {.rows = c->rows,
				   .channels = (int)c->length,
				   .inner = 1,
				   .packed = c->length % pack == 0,
				   .lanes = c->lanes,
				   .chunks = c->chunks,
				   .epsilon = 1e-3f};
	int packs = a.packed ? a.channels / pack : a.channels;

	a.tiles = (packs + a.lanes - 1) / a.lanes;
	return a;
}

struct layer_arrays {
	double *x, *dy, *scale, *shift, *y, *dx, *dscale, *dshift;
};

static void compute_reference(const struct layer_case *c, const struct norm_arguments *a,
			      struct layer_arrays *n)
{
	struct shape xs = shape_make(2, (const int64_t[]){c->rows, c->length});
	struct shape cs = shape_make(1, &c->length);
	struct lone_node lone;

	lone_node_start(&lone, OP_LAYER_NORM);
	lone.node.attributes.epsilon = (double)a->epsilon;
	lone_input(&lone, &xs, n->x);
	lone_input(&lone, &cs, n->scale);
	lone_input(&lone, &cs, n->shift);
	n->y = lone_output(&lone, &xs);
	lone_compute(&lone);
	lone_node_start(&lone, OP_LAYER_NORM_GRAD);
	lone.node.attributes.epsilon = (double)a->epsilon;
	lone_input(&lone, &xs, n->dy);
	lone_input(&lone, &xs, n->x);
	lone_input(&lone, &cs, n->scale);
	n->dx = lone_output(&lone, &xs);
	n->dscale = lone_output(&lone, &cs);
	n->dshift = lone_output(&lone, &cs);
	lone_compute(&lone);
}

static void check_case(struct kernel_device *d, const struct layer_case *c, enum dtype type)
{
	struct norm_arguments a = arguments_of(c, type);
	int64_t count = c->rows * c->length, length = c->length;
	/* A rounding error of the mean, over the deviation. */
	double bound = type_bound(type) + 2e-7 * fabs(c->mean) / c->deviation;
	struct layer_arrays n = {.x = normal_numbers(count, type, 1, c->mean, c->deviation),
				 .dy = normal_numbers(count, type, 2, 0.1, 1),
				 .scale = normal_numbers(length, DTYPE_F32, 3, 1, 0.5),
				 .shift = normal_numbers(length, DTYPE_F32, 4, 0, 0.5)};
	CUdeviceptr x = device_array(d, type, count, n.x), dy = device_array(d, type, count, n.dy);
	CUdeviceptr scale = device_array(d, DTYPE_F32, length, n.scale);
	CUdeviceptr shift = device_array(d, DTYPE_F32, length, n.shift);
	CUdeviceptr y = device_array(d, type, count, NULL), none = 0;
	CUdeviceptr moments = device_array(d, DTYPE_F32, 2 * c->rows, NULL);
	CUdeviceptr dscale = device_array(d, DTYPE_F32, length, NULL);
	CUdeviceptr dshift = device_array(d, DTYPE_F32, length, NULL);
	CUdeviceptr partial = device_array(d, DTYPE_F32, 2 * length * c->chunks, NULL);

	compute_reference(c, &a, &n);
	LAUNCH(d, "layer_norm", type, 3, 64, &y, &moments, &x, &scale, &shift, &a);
	assert_close("y", read_array(d, y, type, count), n.y, count, bound);
	LAUNCH(d, "layer_norm_sums", type, 3, 64, &partial, &dy, &x, &moments, &a);
	LAUNCH(d, "norm_parameter_grad", DTYPE_COUNT, 2, 32, &dscale, &dshift, &partial, &none, &a);
	/* dx may be dy. */
	LAUNCH(d, "layer_norm_grad", type, 3, 32, &dy, &dy, &x, &moments, &scale, &a);
	bound += 4e-6;
	assert_close("dscale", read_array(d, dscale, DTYPE_F32, length), n.dscale, length, bound);
	assert_close("dshift", read_array(d, dshift, DTYPE_F32, length), n.dshift, length, 4e-6);
	assert_close("dx", read_array(d, dy, type, count), n.dx, count, bound);
	/* y may be x, and there may be no place for the moments. */
	LAUNCH(d, "layer_norm", type, 2, 32, &x, &none, &x, &scale, &shift, &a);
	assert_close("y", read_array(d, x, type, count), n.y, count, bound);
}

#define LAYER_TEST(name, type)                                                                     \
	KERNEL_TEST(name)                                                                          \
	{                                                                                          \
		for (size_t i = 0; i < COUNT(cases); i++) {                                        \
			check_case(d, &cases[i], type);                                            \
			kernel_device_forget(d);                                                   \
		}                                                                                  \
	}
LAYER_TEST(test_layer_norm_f32, DTYPE_F32)
LAYER_TEST(test_layer_norm_f16, DTYPE_F16)
LAYER_TEST(test_layer_norm_bf16, DTYPE_BF16)
