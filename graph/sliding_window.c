/* Arithmetic of sliding windows. */
#include "graph/sliding_window.h"

int64_t sliding_window_overhang(const struct attributes *a, int axis, int64_t in, int64_t out)
{
	int64_t reach =
		(out - 1) * a->strides[axis] + (a->kernel[axis] - 1) * a->dilations[axis] + 1;
	int64_t behind = reach - a->pads[axis] - in;

	return behind > 0 ? behind : 0;
}

int64_t sliding_window_divisor(const struct attributes *a, int axis, int64_t in, int64_t place)
{
	int64_t begin = place * a->strides[axis] - a->pads[axis];
	int64_t end = begin + a->kernel[axis];
	int64_t first = a->count_include_pad ? -a->pads[axis] : 0;
	int64_t last = a->count_include_pad ? in + a->pads[axis + 2] : in;

	return (end < last ? end : last) - (begin > first ? begin : first);
}
