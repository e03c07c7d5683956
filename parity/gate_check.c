/* The figures of a verdict, and what is taken from a tensor for them. */
#include "parity/gate_internal.h"

#include "base/json.h"

#include <math.h>

void gate_add_check(struct verdict *verdict, struct check check)
{
	/* Not "value > bound": a NaN must fail. */
	bool passed = check.value <= check.bound && !check.reason;
	double ratio = INFINITY;
	json_t *row = json_object();

	json_object_set_new(row, "what", json_string(check.what));
	if (check.step >= 0)
		json_object_set_new(row, "step", json_integer(check.step));
	if (check.tensor)
		json_object_set_new(row, "tensor", json_string(check.tensor));
	json_object_set_new(row, "value", json_number(check.value));
	json_object_set_new(row, "bound", json_number(check.bound));
	json_object_set_new(row, "passed", json_boolean(passed));
	if (check.ratio != 0 && isfinite(check.ratio))
		json_object_set_new(row, "ratio", json_real(check.ratio));
	if (check.reason)
		json_object_set_new(row, "reason", json_string(check.reason));
	json_array_append_new(verdict->checks, row);

	if (passed)
		ratio = check.bound > 0 ? check.value / check.bound : 0;
	else if (!check.reason && isfinite(check.value) && check.bound > 0)
		ratio = check.value / check.bound;
	verdict->passed = verdict->passed && passed;
	if (!verdict->worst || ratio > verdict->worst_ratio) {
		verdict->worst = row;
		verdict->worst_ratio = ratio;
		verdict->worst_check = check;
	}
}

double gate_element(const struct tensor *tensor, int64_t i)
{
	return tensor->dtype == DTYPE_F64 ? ((const double *)tensor->data)[i]
					  : (double)((const float *)tensor->data)[i];
}

/* Why a tensor cannot be compared; NULL when it can. */
const char *gate_incomparable(const struct tensor *observed, const struct tensor *expected)
{
	if (!observed || !observed->data)
		return "missing";
	if (observed->dtype != DTYPE_F32 && observed->dtype != DTYPE_F64)
		return "neither F32 nor F64";
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
