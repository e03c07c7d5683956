/* Kernels of group and instance normalisation and of Resize against the operators' float64 kernels.
 */
#include "tests/cuda/kernel_case.h"

#include "graph/resize.h"

struct group_case {
	enum op op, gradient;
	int64_t dims[4], groups; /* of a normalisation by instance: as many as channels */
	double mean;
};

static const struct group_case groups[] = {
	{OP_GROUP_NORM, OP_GROUP_NORM_GRAD, {3, 6, 4, 5}, 2, 0},
	{OP_GROUP_NORM, OP_GROUP_NORM_GRAD, {1, 4, 9, 11}, 1, 200},
	{OP_INSTANCE_NORM, OP_INSTANCE_NORM_GRAD, {2, 5, 3, 7}, 5, 1},
};

/* The reference: y, or dx, dscale and dshift of dy. */
static void compute_norm(const struct group_case *c, const double *const in[4],
			 const struct shape *xs, double *out[4])
{
	struct shape cs = shape_make(1, &c->dims[1]);
	struct lone_node lone;

	lone_node_start(&lone, c->op);
	lone.node.attributes.epsilon = 0.01;
	lone.node.attributes.group = c->groups;
	lone_input(&lone, xs, (double *)(uintptr_t)in[0]);
	lone_input(&lone, &cs, (double *)(uintptr_t)in[1]);
	lone_input(&lone, &cs, (double *)(uintptr_t)in[2]);
	out[0] = lone_output(&lone, xs);
	lone_compute(&lone);
	lone_node_start(&lone, c->gradient);
	lone.node.attributes.epsilon = 0.01;
	lone.node.attributes.group = c->groups;
	lone_input(&lone, xs, (double *)(uintptr_t)in[3]);
	lone_input(&lone, xs, (double *)(uintptr_t)in[0]);
	lone_input(&lone, &cs, (double *)(uintptr_t)in[1]);
	out[1] = lone_output(&lone, xs);
	out[2] = lone_output(&lone, &cs);
	out[3] = lone_output(&lone, &cs);
	lone_compute(&lone);
}

static void check_norm(struct kernel_device *d, const struct group_case *c, enum dtype type)
{
	struct shape xs = shape_make(4, c->dims);
	int64_t count = shape_elements(&xs), channels = c->dims[1];
	struct group_arguments a = {.samples = (int)c->dims[0],
				    .groups = (int)c->groups,
				    .channels = (int)(channels / c->groups),
				    .inner = (int)(c->dims[2] * c->dims[3]),
				    .epsilon = 0.01F};
	const double *in[4] = {normal_numbers(count, type, 1, c->mean, 1),
			       normal_numbers(channels, DTYPE_F32, 2, 1, 0.5),
			       normal_numbers(channels, DTYPE_F32, 3, 0, 0.5),
			       normal_numbers(count, type, 4, 0.1, 1)};
	double *wanted[4], bound = type_bound(type) + 4e-6 + 2e-7 * c->mean;
	CUdeviceptr x = device_array(d, type, count, in[0]),
		    dy = device_array(d, type, count, in[3]);
	CUdeviceptr scale = device_array(d, DTYPE_F32, channels, in[1]);
	CUdeviceptr shift = device_array(d, DTYPE_F32, channels, in[2]), none = 0;
	CUdeviceptr y = device_array(d, type, count, NULL);
	CUdeviceptr moments = device_array(d, DTYPE_F32, 2 * c->dims[0] * c->groups, NULL);
	CUdeviceptr dscale = device_array(d, DTYPE_F32, channels, NULL);
	CUdeviceptr dshift = device_array(d, DTYPE_F32, channels, NULL);

	compute_norm(c, in, &xs, wanted);
	LAUNCH(d, "group_norm", type, 2, 32, &y, &moments, &x, &scale, &shift, &a);
	assert_close("y", read_array(d, y, type, count), wanted[0], count, bound);
	LAUNCH(d, "group_norm_sums", type, 2, 32, &dscale, &dshift, &dy, &x, &moments, &a);
	LAUNCH(d, "group_norm_grad", type, 2, 32, &dy, &dy, &x, &moments, &scale, &a);
	assert_close("dx", read_array(d, dy, type, count), wanted[1], count, bound);
	assert_close("dscale", read_array(d, dscale, DTYPE_F32, channels), wanted[2], channels,
		     bound);
	assert_close("dshift", read_array(d, dshift, DTYPE_F32, channels), wanted[3], channels,
		     bound);
	/* y may be x, and there may be no place for the moments. */
	LAUNCH(d, "group_norm", type, 1, 64, &x, &none, &x, &scale, &shift, &a);
	assert_close("y", read_array(d, x, type, count), wanted[0], count, bound);
	kernel_device_forget(d);
}

KERNEL_TEST(test_group_norm)
{
	for (size_t i = 0; i < COUNT(groups); i++) {
		for (size_t t = 0; t < COUNT(kernel_types); t++)
			check_norm(d, &groups[i], kernel_types[t]);
	}
}

struct resize_case {
	int64_t in[2], scales[2];
	int mode, coordinates;
};

static const struct resize_case resizes[] = {
	{{3, 4}, {2, 3}, RESIZE_NEAREST, RESIZE_HALF_PIXEL},
	{{3, 4}, {2, 3}, RESIZE_LINEAR, RESIZE_HALF_PIXEL},
	{{5, 2}, {4, 2}, RESIZE_LINEAR, RESIZE_ALIGN_CORNERS},
	{{1, 6}, {3, 1}, RESIZE_LINEAR, RESIZE_ALIGN_CORNERS},
	{{2, 1}, {5, 4}, RESIZE_LINEAR, RESIZE_HALF_PIXEL},
};

static void check_resize(struct kernel_device *d, const struct resize_case *c, enum dtype type,
			 bool last)
{
	const int64_t large[] = {2, 3, c->in[0] * c->scales[0], c->in[1] * c->scales[1]};
	struct shape xs = shape_make(4, (const int64_t[]){2, 3, c->in[0], c->in[1]});
	struct shape ys = shape_make(4, large);
	int64_t xn = shape_elements(&xs), yn = shape_elements(&ys);
	struct resize_arguments a = {.planes = 6,
				     .channels = 3,
				     .in = {(int)c->in[0], (int)c->in[1]},
				     .scales = {(int)c->scales[0], (int)c->scales[1]},
				     .linear = c->mode == RESIZE_LINEAR,
				     .align_corners = c->coordinates == RESIZE_ALIGN_CORNERS,
				     .last = last};
	double *x = normal_numbers(xn, type, 1, 0, 1), *dy = normal_numbers(yn, type, 2, 0, 1);
	CUdeviceptr from = device_image(d, type, &xs, last, x);
	CUdeviceptr to = device_image(d, type, &ys, last, NULL);
	CUdeviceptr slope = device_image(d, type, &ys, last, dy);
	struct lone_node lone;

	for (int gradient = 0; gradient < 2; gradient++) {
		double *wanted;

		lone_node_start(&lone, gradient ? OP_RESIZE_GRAD : OP_RESIZE);
		lone.node.attributes.strides[0] = c->scales[0];
		lone.node.attributes.strides[1] = c->scales[1];
		lone.node.attributes.mode = c->mode;
		lone.node.attributes.coordinates = c->coordinates;
		lone_input(&lone, gradient ? &ys : &xs, gradient ? dy : x);
		wanted = lone_output(&lone, gradient ? &xs : &ys);
		lone_compute(&lone);
		if (gradient)
			LAUNCH(d, "resize_grad", type, 1, 64, &from, &slope, &a);
		else
			LAUNCH(d, "resize", type, 1, 64, &to, &from, &a);
		assert_close(gradient ? "dx" : "y",
			     gradient ? read_image(d, from, type, &xs, last)
				      : read_image(d, to, type, &ys, last),
			     wanted, gradient ? xn : yn, type_bound(type) + 2e-6);
	}
	kernel_device_forget(d);
}

KERNEL_TEST(test_resize)
{
	for (size_t i = 0; i < COUNT(resizes); i++) {
		for (size_t t = 0; t < COUNT(kernel_types); t++)
			check_resize(d, &resizes[i], kernel_types[t], t > 0);
	}
}
