/* Tests the ceilings of a GPU on the fake driver and the fake cuBLASLt. */
#include <math.h>
#include <stdlib.h>

#include "ceilings/gpu.h"
#include "tests/unit/unit_test.h"

static const struct ceilings_settings settings = {
	.each_ns = 1, .array_bytes = 1 << 20, .gpu_matrix = 96};

static struct ceilings nothing(void)
{
	struct ceilings out = {
#define X(name, title, unit) .name = {.one = NAN, .all = NAN},
		CEILINGS_GPU(X)
#undef X
	};
	return out;
}

TEST(products_of_four_precisions_and_copies)
{
	struct ceilings found = nothing();

	gpu_measure(&settings, &found);
	assert_true(found.has_gpu);
#define X(name, title, unit)                                                                       \
	if (!(found.name.all > 0) || *found.name.absent)                                           \
		fail_msg(#name ": %s", found.name.absent);
	CEILINGS_GPU(X)
#undef X
}

TEST(a_missing_library_is_the_reason)
{
	struct ceilings found = nothing();

	setenv("PRONY_CUBLAS", "/nowhere", 1);
	gpu_measure(&settings, &found);
	assert_true(found.gpu_bandwidth.all > 0 && isnan(found.gpu_matrix_bf16.all));
	assert_non_null(strstr(found.gpu_matrix_bf16.absent, "PRONY_CUBLAS"));
	json_auto_t *json = ceilings_to_json(&found, 1);
	assert_non_null(json_object_get(json, "gpu_bandwidth"));
}
