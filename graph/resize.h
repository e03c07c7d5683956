/* Where the elements of a Resize come from. */
#ifndef PRONY_GRAPH_RESIZE_H
#define PRONY_GRAPH_RESIZE_H

#include "graph/operators.h"

enum { RESIZE_NEAREST, RESIZE_LINEAR };		  /* attribute `mode` */
enum { RESIZE_HALF_PIXEL, RESIZE_ALIGN_CORNERS }; /* attribute `coordinates` */

/* An element of the output is (1 - weight) times element `low` of the input, plus weight times
 * element `high`, on each axis. */
struct resize_tap {
	int64_t low, high;
	double weight;
};

/* Writes a tap for each of the in * scale elements on an axis (0: height, 1: width). Coordinates as
 * ONNX defines them. */
void resize_taps(const struct attributes *a, int axis, int64_t in, struct resize_tap *taps);

#endif
