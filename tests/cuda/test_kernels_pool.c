/* Kernels of pooling against the operators' float64 kernels. */
#include "tests/cuda/kernel_case.h"

struct pool_case {
	enum op op;
	int64_t x[4], y[2];
	struct attributes attributes;
};

#define WINDOW(h, w) .kernel = {h, w}
#define STEP(h, w, dilation) .strides = {h, w}, .dilations = {dilation, dilation}

static const struct pool_case cases[] = {
	/* AlexNet's, and one of uneven steps and padding; 8 and 16 channels go in packs. */
	{OP_MAX_POOL, {2, 16, 7, 9}, {3, 4}, {WINDOW(3, 3), STEP(2, 2, 1)}},
	{OP_MAX_POOL, {2, 5, 9, 7}, {5, 3}, {WINDOW(2, 3), STEP(2, 3, 1), .pads = {1, 2, 0, 1}}},
	/* Overlapping windows with padding, as GoogLeNet's. */
	{OP_MAX_POOL, {3, 8, 5, 6}, {5, 6}, {WINDOW(3, 3), STEP(1, 1, 1), .pads = {1, 1, 1, 1}}},
	/* Dilations of 2 and 3, with steps. */
	{OP_MAX_POOL, {1, 8, 9, 9}, {5, 5}, {WINDOW(3, 3), STEP(1, 1, 2)}},
	{OP_MAX_POOL, {2, 3, 11, 12}, {3, 4}, {WINDOW(3, 2), STEP(3, 3, 3), .pads = {1, 1, 2, 1}}},
	/* ceil_mode: the last window reaches beyond the padding. */
	{OP_MAX_POOL, {2, 8, 6, 6}, {3, 3}, {WINDOW(3, 3), STEP(2, 2, 1)}},
	/* Places in the window that do not fit into a byte. */
	{OP_MAX_POOL, {2, 8, 17, 19}, {1, 3}, {WINDOW(17, 17), STEP(1, 1, 1)}},
	{OP_AVERAGE_POOL, {2, 16, 7, 9}, {3, 4}, {WINDOW(3, 3), STEP(2, 2, 1)}},
	{OP_AVERAGE_POOL,
	 {2, 8, 6, 6},
	 {4, 4},
	 {WINDOW(3, 3), STEP(2, 2, 1), .pads = {1, 1, 1, 1}}},
	{OP_AVERAGE_POOL,
	 {2, 5, 6, 6},
	 {4, 4},
	 {WINDOW(3, 3), STEP(2, 2, 1), .pads = {1, 1, 1, 1}, .count_include_pad = true}},
};

static struct pool_arguments arguments_of(const struct pool_case *c, bool channels_last,
					  enum dtype type)
{
	const struct attributes *a = &c->attributes;
	struct pool_arguments p = {.channels = (int)c->x[1],
				   .channels_last = channels_last,
				   .include_pad = a->count_include_pad};

	p.packed = channels_last && p.channels % (PACK_BYTES / (int)dtype_bytes(type)) == 0;
	for (int i = 0; i < 2; i++) {
		p.in[i] = (int)c->x[2 + i];
		p.out[i] = (int)c->y[i];
		p.kernel[i] = (int)a->kernel[i];
		p.strides[i] = (int)a->strides[i];
		p.dilations[i] = (int)a->dilations[i];
		p.pads[i] = (int)a->pads[i];
		p.pads[2 + i] = (int)a->pads[2 + i];
	}
	p.wide = p.kernel[0] * p.kernel[1] > 256;
	return p;
}

static long long items(const struct shape *result, const struct pool_arguments *a, enum dtype type)
{
	return shape_elements(result) / (a->packed ? PACK_BYTES / (int)dtype_bytes(type) : 1);
}

static void check_case(struct kernel_device *d, const struct pool_case *c, enum dtype type,
		       bool channels_last)
{
	bool max = c->op == OP_MAX_POOL;
	struct shape xs = shape_make(4, c->x);
	struct shape ys = shape_make(4, (const int64_t[]){c->x[0], c->x[1], c->y[0], c->y[1]});
	int64_t count = shape_elements(&ys);
	struct pool_arguments a = arguments_of(c, channels_last, type);
	double *x = normal_numbers(shape_elements(&xs), type, 1, 0.5, 1), *y, *dx;
	double *dy = normal_numbers(count, type, 2, 0, 1);
	CUdeviceptr dev_x = device_image(d, type, &xs, channels_last, x);
	CUdeviceptr dev_dy = device_image(d, type, &ys, channels_last, dy);
	CUdeviceptr dev_y = device_array(d, type, count, NULL);
	CUdeviceptr dev_dx = device_array(d, type, shape_elements(&xs), NULL);
	CUdeviceptr taps = device_array(d, DTYPE_U8, count * (a.wide ? 4 : 1), NULL);
	long long forward = items(&ys, &a, type), backward = items(&xs, &a, type);
	struct lone_node lone;

	lone_node_start(&lone, c->op);
	lone.node.attributes = c->attributes;
	lone_input(&lone, &xs, x);
	y = lone_output(&lone, &ys);
	lone_compute(&lone);
	if (max)
		LAUNCH(d, "max_pool", type, 3, 32, &dev_y, &taps, &dev_x, &a, &forward);
	else
		LAUNCH(d, "average_pool", type, 3, 32, &dev_y, &dev_x, &a, &forward);
	assert_close("y", read_image(d, dev_y, type, &ys, channels_last), y, count,
		     type_bound(type));

	lone_node_start(&lone, max ? OP_MAX_POOL_GRAD : OP_AVERAGE_POOL_GRAD);
	lone.node.attributes = c->attributes;
	lone_input(&lone, &ys, dy);
	if (max) {
		lone_input(&lone, &xs, x);
		lone_input(&lone, &ys, y);
	}
	dx = lone_output(&lone, &xs);
	lone_compute(&lone);
	if (max)
		LAUNCH(d, "max_pool_grad", type, 3, 32, &dev_dx, &dev_dy, &taps, &a, &backward);
	else
		LAUNCH(d, "average_pool_grad", type, 3, 32, &dev_dx, &dev_dy, &a, &backward);
	assert_close("dx", read_image(d, dev_dx, type, &xs, channels_last), dx, shape_elements(&xs),
		     type_bound(type));
}

#define POOL_TEST(name, type)                                                                      \
	KERNEL_TEST(name)                                                                          \
	{                                                                                          \
		for (size_t i = 0; i < COUNT(cases); i++) {                                        \
			check_case(d, &cases[i], type, false);                                     \
			check_case(d, &cases[i], type, true);                                      \
			kernel_device_forget(d);                                                   \
		}                                                                                  \
	}
POOL_TEST(test_pool_f32, DTYPE_F32)
POOL_TEST(test_pool_f16, DTYPE_F16)
POOL_TEST(test_pool_bf16, DTYPE_BF16)

/* Equal numbers: the first wins, as in the reference. NaN wins over all. Without taps, none are
 * written. */
KERNEL_TEST(test_ties_and_nan)
{
	const struct pool_case c = {
		OP_MAX_POOL, {1, 1, 2, 4}, {1, 2}, {WINDOW(2, 2), STEP(2, 2, 1)}};
	struct pool_arguments a = arguments_of(&c, true, DTYPE_F32);
	double x[] = {3, 3, 1, NAN, 3, 3, 2, 5}, *found;
	CUdeviceptr dev_x = device_array(d, DTYPE_F32, 8, x);
	CUdeviceptr dev_y = device_array(d, DTYPE_F32, 2, NULL), none = 0;
	CUdeviceptr taps = device_array(d, DTYPE_U8, 2, NULL);
	long long n = 2;

	LAUNCH(d, "max_pool", DTYPE_F32, 1, 32, &dev_y, &taps, &dev_x, &a, &n);
	found = read_array(d, taps, DTYPE_U8, 2);
	assert_true(found[0] == 0 && found[1] == 1);
	LAUNCH(d, "max_pool", DTYPE_F32, 1, 32, &dev_y, &none, &dev_x, &a, &n);
	found = read_array(d, dev_y, DTYPE_F32, 2);
	assert_true(found[0] == 3 && isnan(found[1]));
}
