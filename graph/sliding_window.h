/* Arithmetic of sliding windows on one of the two spatial axes: `in` elements, `out` windows. */
#ifndef PRONY_GRAPH_SLIDING_WINDOW_H
#define PRONY_GRAPH_SLIDING_WINDOW_H

#include "graph/operators.h"

/* How far the last window reaches beyond the end of the input, including the additions of
 * ceil_mode; input rows that no window reaches count as nothing. */
int64_t sliding_window_overhang(const struct attributes *a, int axis, int64_t in, int64_t out);

/* The divisor of window `place` of an average on this axis: its elements in the input; with
 * count_include_pad also those in the padding, but never those that ceil_mode adds. */
int64_t sliding_window_divisor(const struct attributes *a, int axis, int64_t in, int64_t place);

#endif
