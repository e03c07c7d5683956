/* A network drawn: boxes of layers from top to bottom, as SVG or for Graphviz. */
#ifndef PRONY_DRAW_PICTURE_H
#define PRONY_DRAW_PICTURE_H

#include "base/strbuf.h"
#include "graph/graph.h"

enum picture_format { PICTURE_SVG, PICTURE_DOT };

/* By the name of a file, "x.svg" or "x.dot"; PRONY_USAGE for another. */
enum prony_status picture_format_of(const char *path, enum picture_format *out, struct error *err);

/*
 * Appends the forward graph to `out`. A convolution or any other layer with the normalisation,
 * activation and dropout that only follow it is one box: its name, its operators, the shape that
 * leaves it, its parameters. Branches stand side by side. PRONY_UNSUPPORTED when lines would have
 * to pass so many boxes that nobody could follow them; Graphviz's format has no such limit.
 */
enum prony_status picture_write(const struct graph *graph, enum picture_format format,
				struct strbuf *out, struct error *err);

#endif
