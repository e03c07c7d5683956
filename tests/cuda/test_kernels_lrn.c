/* Kernels of response normalisation against the operator's float64 kernels. */
#include "tests/cuda/kernel_case.h"

/* Sizes odd, even, and beyond what a thread keeps; channels in whole packs, fewer than a run, and
 * fewer than the window. */
static const struct {
	int64_t x[4], size;
	double beta;
} cases[] = {
	{{2, 16, 3, 5}, 5, 0.75}, {{1, 5, 2, 2}, 5, 0.75},  {{2, 11, 4, 3}, 3, 0.5},
	{{3, 24, 2, 2}, 4, 0.75}, {{2, 16, 2, 3}, 9, 0.75}, {{1, 3, 2, 5}, 8, 0.6},
	{{2, 8, 3, 1}, 1, 0.75},  {{2, 40, 2, 2}, 2, 0.75},
};

static struct lrn_arguments arguments_of(size_t i, enum dtype type, bool channels_last,
					 const struct attributes *given)
{
	int64_t before = (given->size - 1) / 2, after = given->size - 1 - before;
	double scale = given->alpha / (double)given->size;
	struct lrn_arguments a = {.channels = (int)cases[i].x[1],
				  .inner = channels_last ? 1 : (int)(cases[i].x[2] * cases[i].x[3]),
				  .before = (int)before,
				  .after = (int)after,
				  .scale = (float)scale,
				  .bias = (float)given->bias,
				  .beta = (float)given->beta,
				  .slope = (float)(2 * scale * given->beta)};

	a.wide = a.before > LRN_HALO || a.after > LRN_HALO;
	a.packed = channels_last && a.channels % (PACK_BYTES / (int)dtype_bytes(type)) == 0;
	return a;
}

static void check_case(struct kernel_device *d, size_t i, enum dtype type, bool channels_last)
{
	struct shape xs = shape_make(4, cases[i].x);
	int64_t count = shape_elements(&xs), points = count / cases[i].x[1];
	/* A large alpha, so that windows matter. */
	struct attributes given = {
		.size = cases[i].size, .alpha = 0.5, .beta = cases[i].beta, .bias = 1.5};
	struct lrn_arguments a = arguments_of(i, type, channels_last, &given);
	int run = a.wide ? 1 : a.packed ? PACK_BYTES / (int)dtype_bytes(type) : LRN_RUN;
	long long n = points * ((a.channels + run - 1) / run);
	double *x = normal_numbers(count, type, 1, 0.5, 1.5), *y, *dx;
	double *dy = normal_numbers(count, type, 2, 0, 1);
	CUdeviceptr dev_x = device_image(d, type, &xs, channels_last, x);
	CUdeviceptr dev_dy = device_image(d, type, &xs, channels_last, dy);
	CUdeviceptr dev_y = device_array(d, type, count, NULL);
	struct lone_node lone;

	lone_node_start(&lone, OP_LRN);
	lone.node.attributes = given;
	lone_input(&lone, &xs, x);
	y = lone_output(&lone, &xs);
	lone_compute(&lone);
	LAUNCH(d, "lrn", type, 3, 32, &dev_y, &dev_x, &a, &n);
	assert_close("y", read_image(d, dev_y, type, &xs, channels_last), y, count,
		     type_bound(type));
	lone_node_start(&lone, OP_LRN_GRAD);
	lone.node.attributes = given;
	lone_input(&lone, &xs, dy);
	lone_input(&lone, &xs, x);
	lone_input(&lone, &xs, y);
	dx = lone_output(&lone, &xs);
	lone_compute(&lone);
	LAUNCH(d, "lrn_grad", type, 3, 32, &dev_y, &dev_dy, &dev_x, &a, &n);
	assert_close("dx", read_image(d, dev_y, type, &xs, channels_last), dx, count,
		     type_bound(type));
}

#define LRN_TEST(name, type)                                                                       \
	KERNEL_TEST(name)                                                                          \
	{                                                                                          \
		for (size_t i = 0; i < 2 * COUNT(cases); i++)                                      \
			check_case(d, i / 2, type, i % 2);                                         \
	}
LRN_TEST(test_lrn_f32, DTYPE_F32)
LRN_TEST(test_lrn_f16, DTYPE_F16)
LRN_TEST(test_lrn_bf16, DTYPE_BF16)
