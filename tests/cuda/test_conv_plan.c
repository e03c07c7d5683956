/* Plans of convolutions on the fakes of driver and cuDNN: which engines they take, what is measured
 * of them, and how they are kept. */
#include "tests/unit/unit_test.h"

#include "adapters/native/cuda/conv_plan.h"
#include "adapters/native/cuda/cuda.h"

/* An odd one: groups, uneven padding, stride, dilation. */
static const struct conv_problem odd = {
	.x = {2, 6, 9, 7},
	.w = {4, 3, 3, 2},
	.y = {2, 4, 5, 7},
	.strides = {2, 1},
	.dilations = {1, 2},
	.before = {1, 0},
	.after = {2, 2},
};

static void open_device(struct device *device)
{
	struct error err = ERROR_INIT;

	check(cuda_driver_load(&device->driver, &err), &err);
	check(cudnn_load(&device->dnn, NULL, &err), &err);
	assert_int_equal(device->driver.DeviceGet(&device->handle, 0), 0);
	assert_int_equal(device->driver.DevicePrimaryCtxRetain(&device->context, device->handle),
			 0);
	assert_int_equal(device->driver.CtxSetCurrent(device->context), 0);
	assert_int_equal(device->driver.StreamCreate(&device->stream, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(device->dnn.Create(&device->dnn_handle), 0);
	assert_int_equal(device->dnn.SetStream(device->dnn_handle, device->stream), 0);
}

static void close_device(struct device *device)
{
	device->dnn.Destroy(device->dnn_handle);
	device->driver.StreamDestroy(device->stream);
	device->driver.DevicePrimaryCtxRelease(device->handle);
}

static struct conv_planner planner_on(struct device *device)
{
	return (struct conv_planner){.cudnn = &device->dnn,
				     .handle = device->dnn_handle,
				     .measure = cuda_conv_measure,
				     .context = device};
}

static struct cudnn_plan plan(const struct conv_planner *planner,
			      const struct conv_problem *problem)
{
	struct cudnn_plan made;
	struct error err = ERROR_INIT;

	check(conv_plan_make(planner, problem, "odd", &made, &err), &err);
	assert_int_equal(made.notes & conv_forbidden_notes(problem), 0);
	return made;
}

TEST(strict_plans_are_exact)
{
	struct device device = {0};
	struct conv_planner planner;

	open_device(&device);
	planner = planner_on(&device);
	for (int kind = CONV_FORWARD; kind <= CONV_GRAD_WEIGHT; kind++) {
		struct conv_problem problem = odd;
		struct cudnn_plan made;

		problem.kind = (enum conv_kind)kind;
		problem.strict = true;
		problem.sum = problem.bias = problem.relu = kind == CONV_FORWARD;
		made = plan(&planner, &problem);
		assert_int_not_equal(made.engine, CONV_ENGINE_INEXACT);
		assert_true(made.error > 0 && made.error < 1e-6);
		cudnn_plan_release(&device.dnn, &made);
	}
	close_device(&device);
}

/* The earlier a plan, the faster and the less exact; the first one does not run. */
static enum prony_status judge(void *context, const struct conv_problem *problem,
			       struct cudnn_plan *plans, int count, struct error *err)
{
	double *exactness = context;

	(void)problem;
	(void)err;
	for (int i = 1; i < count; i++) {
		plans[i].ms = (float)i;
		plans[i].error = *exactness / i;
	}
	return PRONY_OK;
}

TEST(an_exact_plan_wins)
{
	struct device device = {0};
	double exactness[] = {1e-3, 1.5e-5, 1e-7};
	const int best[] = {4, 2, 1}; /* of five plans in tf32 */

	open_device(&device);
	for (size_t i = 0; i < COUNT(exactness); i++) {
		struct conv_planner planner = {.cudnn = &device.dnn,
					       .handle = device.dnn_handle,
					       .measure = judge,
					       .context = &exactness[i]};
		struct conv_problem problem = odd;
		struct cudnn_plan made;

		problem.kind = CONV_GRAD_WEIGHT;
		problem.channels_last = true;
		made = plan(&planner, &problem);
		assert_int_equal((int)made.ms, best[i]);
		cudnn_plan_release(&device.dnn, &made);
	}
	close_device(&device);
}

/* The fake's first engine in fp32 multiplies like TF32. */
TEST(an_error_is_seen)
{
	struct device device = {0};
	struct conv_planner planner;

	open_device(&device);
	planner = planner_on(&device);
	planner.measure = NULL;
	for (int kind = CONV_FORWARD; kind <= CONV_GRAD_WEIGHT; kind++) {
		struct conv_problem problem = odd;
		struct cudnn_plan made;
		struct error err = ERROR_INIT;

		problem.kind = (enum conv_kind)kind;
		problem.channels_last = true;
		made = plan(&planner, &problem);
		problem.strict = true;
		check(cuda_conv_measure(&device, &problem, &made, 1, &err), &err);
		assert_true(made.error > 1e-5 && made.error < 1e-3);
		cudnn_plan_release(&device.dnn, &made);
	}
	close_device(&device);
}

TEST(sixteen_bits_are_measured)
{
	struct device device = {0};
	struct conv_planner planner;
	const enum dtype types[] = {DTYPE_F16, DTYPE_BF16};

	open_device(&device);
	planner = planner_on(&device);
	for (size_t i = 0; i < COUNT(types); i++) {
		struct conv_problem problem = odd;
		struct cudnn_plan made;

		problem.type = problem.w_type = types[i];
		problem.channels_last = true;
		made = plan(&planner, &problem);
		assert_true(made.workspace <= CONV_WORKSPACE_BYTES);
		assert_true(made.ms > 0);
		cudnn_plan_release(&device.dnn, &made);
	}
	close_device(&device);
}

/* The second process neither asks the heuristics nor measures. */
IN_FOLDER(plans_are_kept)
{
	struct device device = {0};
	struct conv_planner planner;
	struct conv_problem problem = odd;
	struct cudnn_plan made, kept;

	setenv("XDG_CACHE_HOME", test_folder(), 1);
	open_device(&device);
	planner = planner_on(&device);
	planner.cache = plan_cache_open(&device.dnn, "A card/1", 90);
	problem.strict = true;
	made = plan(&planner, &problem);
	plan_cache_close(planner.cache);
	planner.cache = plan_cache_open(&device.dnn, "A card/1", 90);
	kept = plan(&planner, &problem);
	assert_int_equal(kept.engine, -1);
	assert_true(kept.ms == made.ms && kept.error == made.error);
	assert_int_equal(kept.workspace, made.workspace);
	cudnn_plan_release(&device.dnn, &kept);
	cudnn_plan_release(&device.dnn, &made);
	plan_cache_close(planner.cache);

	/* Another user has them in a shared folder. */
	assert_int_equal(mkdir(test_path("shared"), 0700), 0);
	assert_int_equal(mkdir(test_path("shared/cache"), 0700), 0);
	assert_int_equal(
		rename(test_path("prony/cuda-plans"), test_path("shared/cache/cuda-plans")), 0);
	setenv("PRONY_SHARED", test_path("shared"), 1);
	planner.cache = plan_cache_open(&device.dnn, "A card/1", 90);
	kept = plan(&planner, &problem);
	assert_int_equal(kept.engine, -1);
	cudnn_plan_release(&device.dnn, &kept);
	plan_cache_close(planner.cache);
	unsetenv("PRONY_SHARED");

	/* Another device has none. */
	planner.cache = plan_cache_open(&device.dnn, "A card/1", 80);
	made = plan(&planner, &problem);
	assert_true(made.engine >= 0);
	cudnn_plan_release(&device.dnn, &made);
	plan_cache_close(planner.cache);
	close_device(&device);
}
