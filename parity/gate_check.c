/* Functions that compute the figures of a verdict from tensors. */
#include "parity/gate_internal.h"

#include <math.h>
#include <string.h>

void gate_add_check(struct gate_verdict *verdict, struct gate_check check)
{
	double ratio = INFINITY;
	size_t count = verdict->count;

	/* A network that amplifies rounding to infinity has no bound: nothing could fail here. */
	if (!check.reason && !isfinite(check.bound))
		check.reason = "its rounding error has no finite bound";
	/* Not "value > bound": a NaN must fail. */
	check.passed = check.value <= check.bound && !check.reason;
	if (!isfinite(check.ratio))
		check.ratio = 0;
	if ((count & (count - 1)) == 0) { /* the capacity doubles at powers of two */
		struct gate_check *wider =
			arena_array(verdict->arena, count ? 2 * count : 1, sizeof(*wider));

		if (count)
			memcpy(wider, verdict->checks, count * sizeof(*wider));
		verdict->checks = wider;
	}
	verdict->checks[verdict->count++] = check;

	if (check.passed)
		ratio = check.bound > 0 ? check.value / check.bound : 0;
	else if (!check.reason && isfinite(check.value) && check.bound > 0)
		ratio = check.value / check.bound;
	verdict->passed = verdict->passed && check.passed;
	if (count == 0 || ratio > verdict->worst_ratio) {
		verdict->worst = count;
		verdict->worst_ratio = ratio;
	}
}

double gate_element(const struct tensor *tensor, int64_t i)
{
	return tensor->dtype == DTYPE_F64 ? ((const double *)tensor->data)[i]
					  : (double)((const float *)tensor->data)[i];
}

/* Returns why a tensor cannot be compared; NULL if it can. */
const char *gate_incomparable(const struct tensor *observed, const struct tensor *expected)
{
	if (!observed || !observed->data)
		return "missing";
	if (observed->dtype != DTYPE_F32 && observed->dtype != DTYPE_F64)
		return "type is neither F32 nor F64";
	if (!shape_equal(&observed->shape, &expected->shape))
		return "wrong shape";
	return NULL;
}

double gate_norm(const struct tensor *tensor)
{
	double sum = 0;

	for (int64_t i = 0; i < shape_elements(&tensor->shape); i++)
		sum += gate_element(tensor, i) * gate_element(tensor, i);
	return sqrt(sum);
}
