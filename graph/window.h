/* Arithmetic of windows that slide, on one of the two spatial axes: `in` elements, `out` windows.
 */
#ifndef PRONY_GRAPH_WINDOW_H
#define PRONY_GRAPH_WINDOW_H

#include "graph/operators.h"

/* How far the last window reaches behind the input, what ceil_mode adds included; rows that no
 * window reaches need nothing. */
int64_t window_behind(const struct attributes *a, int axis, int64_t in, int64_t out);

/* The elements that window `place` of an average divides by: those of the input, with
 * count_include_pad those of the padding, what ceil_mode adds never. */
int64_t window_counted(const struct attributes *a, int axis, int64_t in, int64_t place);

#endif
