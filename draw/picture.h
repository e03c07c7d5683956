/* Draws a network: boxes of layers from top to bottom, as SVG or for Graphviz. */
#ifndef PRONY_DRAW_PICTURE_H
#define PRONY_DRAW_PICTURE_H

#include "base/strbuf.h"
#include "graph/graph.h"

enum picture_format { PICTURE_SVG, PICTURE_DOT };

/* Chooses the format by the file name, "x.svg" or "x.dot"; PRONY_USAGE for any other. */
enum prony_status picture_format_of(const char *path, enum picture_format *out, struct error *err);

/* Appends the forward graph to `out`. A layer, such as a convolution, is one box together with the
 * normalisation, activation and dropout that are its only users. A box shows its name, its
 * operators, its output shape and its parameters. Branches are side by side. Returns
 * PRONY_UNSUPPORTED if lines would pass too many boxes to be readable; Graphviz's format has no
 * such limit. */
enum prony_status picture_write(const struct graph *graph, enum picture_format format,
				struct strbuf *out, struct error *err);

#endif
