/* Kernels of batch normalisation against the operator's float64 kernels. */
#include "tests/cuda/kernel_case.h"

struct norm_case {
	int64_t x[4];
	int lanes, chunks, groups; /* as the backend may choose them */
	double mean, deviation;
};

/* Channels in whole packs and not, in one tile and several, one point and planes; blocks without
 * rows; a mean that hides the deviation in a sum of squares. */
static const struct norm_case cases[] = {
	{{4, 16, 6, 5}, 2, 3, 7, 0, 1},	  {{3, 5, 4, 4}, 8, 1, 1, 0.5, 2},
	{{9, 72, 1, 1}, 4, 2, 9, -1, 1},  {{2, 40, 3, 8}, 8, 5, 2, 20, 1},
	{{5, 3, 7, 3}, 1, 2, 2, 0, 1},	  {{1, 8, 2, 4}, 1, 9, 1, 3, 0.5},
	{{6, 4, 8, 8}, 4, 3, 4, 3000, 1}, {{2, 2, 40, 50}, 2, 4, 100, 0, 1e-3},
};

struct norm_arrays {
	double *x, *dy, *scale, *shift, *running[2];
	double *y, *moments[2], *dx, *dscale, *dshift; /* the reference's */
	double *sum;				       /* y + dy, with max(0, sum) */
	CUdeviceptr dev_x, dev_dy, dev_y, dev_dx, dev_scale, dev_shift, dev_running[2],
		dev_moments[2], dev_dscale, dev_dshift, partial;
};

static struct norm_arguments arguments_of(const struct norm_case *c, enum dtype type,
					  bool channels_last, bool relu)
{
	int pack = PACK_BYTES / (int)dtype_bytes(type), plane = (int)(c->x[2] * c->x[3]);
	bool last = channels_last || plane == 1;
	struct norm_arguments a = {.rows = c->x[0] * (last ? plane : 1),
				   .channels = (int)c->x[1],
				   .inner = last ? 1 : plane,
				   .relu = relu,
				   .tiles = (int)c->x[1],
				   .lanes = 1,
				   .chunks = c->chunks,
				   .groups = c->groups,
				   .epsilon = 1e-3f,
				   .momentum = 0.75f};

	a.packed = (last ? a.channels : plane) % pack == 0;
	if (last) {
		int packs = a.packed ? a.channels / pack : a.channels;

		a.lanes = c->lanes;
		a.tiles = (packs + a.lanes - 1) / a.lanes;
	}
	if (a.groups > a.rows)
		a.groups = a.rows;
	return a;
}

/* The reference, with max(0, y) behind it. */
static void compute_reference(const struct norm_case *c, const struct norm_arguments *a,
			      struct norm_arrays *n)
{
	struct shape xs = shape_make(4, c->x), cs = shape_make(1, &c->x[1]);
	int64_t count = shape_elements(&xs);
	double *slopes = test_keep(malloc((size_t)count * sizeof(*slopes)));
	struct lone_node lone;

	lone_node_start(&lone, OP_BATCH_NORM);
	lone.training = true;
	lone.node.attributes.epsilon = (double)a->epsilon;
	lone_input(&lone, &xs, n->x);
	lone_input(&lone, &cs, n->scale);
	lone_input(&lone, &cs, n->shift);
	lone_input(&lone, &cs, n->running[0]);
	lone_input(&lone, &cs, n->running[1]);
	n->y = lone_output(&lone, &xs);
	n->moments[0] = lone_output(&lone, &cs);
	n->moments[1] = lone_output(&lone, &cs);
	lone_compute(&lone);
	n->sum = test_keep(malloc((size_t)count * sizeof(*n->sum)));
	for (int64_t i = 0; i < count; i++) {
		n->sum[i] = n->y[i] + n->dy[i];
		if (a->relu && n->sum[i] < 0)
			n->sum[i] = 0;
		slopes[i] = a->relu && n->y[i] <= 0 ? 0 : n->dy[i];
		if (a->relu && n->y[i] < 0)
			n->y[i] = 0;
	}
	lone_node_start(&lone, OP_BATCH_NORM_GRAD);
	lone.node.attributes.epsilon = (double)a->epsilon;
	lone_input(&lone, &xs, slopes);
	lone_input(&lone, &xs, n->x);
	lone_input(&lone, &cs, n->scale);
	lone_input(&lone, &cs, n->moments[0]);
	lone_input(&lone, &cs, n->moments[1]);
	n->dx = lone_output(&lone, &xs);
	n->dscale = lone_output(&lone, &cs);
	n->dshift = lone_output(&lone, &cs);
	lone_compute(&lone);
}

static void make_arrays(struct kernel_device *d, const struct norm_case *c, enum dtype type,
			bool channels_last, const struct norm_arguments *a, struct norm_arrays *n)
{
	struct shape xs = shape_make(4, c->x);
	int64_t count = shape_elements(&xs), channels = c->x[1];

	n->x = normal_numbers(count, type, 1, c->mean, c->deviation);
	n->dy = normal_numbers(count, type, 2, 0.1, 1);
	n->scale = normal_numbers(channels, DTYPE_F32, 3, 1, 0.5);
	n->shift = normal_numbers(channels, DTYPE_F32, 4, 0, 0.5);
	n->dev_x = device_image(d, type, &xs, channels_last, n->x);
	n->dev_dy = device_image(d, type, &xs, channels_last, n->dy);
	n->dev_y = device_array(d, type, count, NULL);
	n->dev_dx = device_array(d, type, count, NULL);
	n->dev_scale = device_array(d, DTYPE_F32, channels, n->scale);
	n->dev_shift = device_array(d, DTYPE_F32, channels, n->shift);
	n->dev_dscale = device_array(d, DTYPE_F32, channels, NULL);
	n->dev_dshift = device_array(d, DTYPE_F32, channels, NULL);
	n->partial = device_array(d, DTYPE_F32, channels * (3 * a->chunks + 1), NULL);
	for (int k = 0; k < 2; k++) {
		n->running[k] = normal_numbers(channels, DTYPE_F32, 5, 2, 1);
		n->dev_running[k] = device_array(d, DTYPE_F32, channels, n->running[k]);
		n->dev_moments[k] = device_array(d, DTYPE_F32, channels, NULL);
	}
}

static void check_forward(struct kernel_device *d, const struct norm_case *c, enum dtype type,
			  bool channels_last, struct norm_arguments *a, struct norm_arrays *n)
{
	struct shape xs = shape_make(4, c->x);
	int64_t channels = c->x[1];
	/* x has a rounding error of its mean, and y of that over the deviation. */
	double bound = type_bound(type) + 4e-7 * fabs(c->mean) / c->deviation;
	CUdeviceptr none = 0;

	LAUNCH(d, "norm_moments", type, 3, 64, &n->partial, &n->dev_x, a);
	LAUNCH(d, "norm_statistics", DTYPE_COUNT, 2, 32, &n->dev_moments[0], &n->dev_moments[1],
	       &n->dev_running[0], &n->dev_running[1], &n->partial, a);
	LAUNCH(d, "norm_apply", type, 3, 32, &n->dev_y, &n->dev_x, &none, &n->dev_moments[0],
	       &n->dev_moments[1], &n->dev_scale, &n->dev_shift, a);
	for (int k = 0; k < 2; k++) {
		double *found = read_array(d, n->dev_moments[k], DTYPE_F32, channels);

		if (k == 1)
			assert_close("variance", found, n->moments[k], channels, 3e-6);
		for (int64_t i = 0; k == 0 && i < channels; i++)
			near(found[i], n->moments[k][i], 2e-7 * (fabs(c->mean) + c->deviation));
		found = read_array(d, n->dev_running[k], DTYPE_F32, channels);
		for (int64_t i = 0; i < channels; i++)
			n->running[k][i] = 0.75 * n->running[k][i] + 0.25 * n->moments[k][i];
		assert_close("running statistic", found, n->running[k], channels, 3e-6);
	}
	assert_close("y", read_image(d, n->dev_y, type, &xs, channels_last), n->y,
		     shape_elements(&xs), bound);
	LAUNCH(d, "norm_apply", type, 3, 32, &n->dev_y, &n->dev_x, &n->dev_dy, &n->dev_moments[0],
	       &n->dev_moments[1], &n->dev_scale, &n->dev_shift, a);
	assert_close("y + dy", read_image(d, n->dev_y, type, &xs, channels_last), n->sum,
		     shape_elements(&xs), bound);
}

enum behind { NOTHING, RELU, RESIDUAL };

/* The end of a residual block: the device has the gradient behind max(0, z) as a sum with `more`,
 * the reference the part of it where z > 0. Returns the device's first term. */
static CUdeviceptr hide_behind(struct kernel_device *d, const struct norm_case *c, enum dtype type,
			       bool channels_last, CUdeviceptr *more, CUdeviceptr *z,
			       struct norm_arrays *n)
{
	struct shape xs = shape_make(4, c->x);
	int64_t count = shape_elements(&xs);
	double *signs = normal_numbers(count, type, 6, 0, 1);
	double *given = normal_numbers(count, type, 7, 0.1, 1);

	double *added = normal_numbers(count, type, 8, 0.1, 1);

	signs[0] = 0;
	for (int64_t i = 0; i < count; i++)
		n->dy[i] = signs[i] > 0 ? in_type(given[i] + added[i], type) : 0;
	*more = device_image(d, type, &xs, channels_last, added);
	*z = device_image(d, type, &xs, channels_last, signs);
	return device_image(d, type, &xs, channels_last, given);
}

static void check_case(struct kernel_device *d, const struct norm_case *c, enum dtype type,
		       bool channels_last, enum behind behind)
{
	struct norm_arguments a = arguments_of(c, type, channels_last, behind == RELU);
	struct shape xs = shape_make(4, c->x);
	int64_t channels = c->x[1];
	struct norm_arrays n;
	double bound = type_bound(type) + 4e-7 * fabs(c->mean) / c->deviation + 4e-6;
	CUdeviceptr more = 0, z = 0, none = 0, dy;

	make_arrays(d, c, type, channels_last, &a, &n);
	dy = n.dev_dy;
	compute_reference(c, &a, &n);
	check_forward(d, c, type, channels_last, &a, &n);
	if (behind == RESIDUAL) {
		dy = hide_behind(d, c, type, channels_last, &more, &z, &n);
		n.dev_dy = device_array(d, type, shape_elements(&xs), NULL);
		compute_reference(c, &a, &n);
	}
	LAUNCH(d, "norm_sums", type, 3, 64, &n.partial, &dy, &n.dev_x, &more, &z,
	       behind == RESIDUAL ? &n.dev_dy : &none, &n.dev_moments[0], &n.dev_moments[1],
	       &n.dev_scale, &n.dev_shift, &a);
	LAUNCH(d, "norm_parameter_grad", DTYPE_COUNT, 2, 64, &n.dev_dscale, &n.dev_dshift,
	       &n.partial, &n.dev_moments[1], &a);
	/* dx may be dy. */
	LAUNCH(d, "norm_grad", type, 3, 32, &n.dev_dy, &n.dev_dy, &n.dev_x, &n.dev_moments[0],
	       &n.dev_moments[1], &n.dev_scale, &n.dev_shift, &n.dev_dscale, &n.dev_dshift, &a);
	assert_close("dscale", read_array(d, n.dev_dscale, DTYPE_F32, channels), n.dscale, channels,
		     bound);
	assert_close("dshift", read_array(d, n.dev_dshift, DTYPE_F32, channels), n.dshift, channels,
		     4e-6);
	assert_close("dx", read_image(d, n.dev_dy, type, &xs, channels_last), n.dx,
		     shape_elements(&xs), bound);
}

#define NORM_TEST(name, type)                                                                      \
	KERNEL_TEST(name)                                                                          \
	{                                                                                          \
		for (size_t i = 0; i < 6 * COUNT(cases); i++) {                                    \
			check_case(d, &cases[i / 6], type, i % 2, (enum behind)(i / 2 % 3));       \
			kernel_device_forget(d);                                                   \
		}                                                                                  \
	}
NORM_TEST(test_batch_norm_f32, DTYPE_F32)
NORM_TEST(test_batch_norm_f16, DTYPE_F16)
NORM_TEST(test_batch_norm_bf16, DTYPE_BF16)
