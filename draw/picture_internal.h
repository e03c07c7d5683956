/* Private to the picture of a network: declarations that its sources share. */
#ifndef PRONY_DRAW_PICTURE_INTERNAL_H
#define PRONY_DRAW_PICTURE_INTERNAL_H

#include "base/arena.h"
#include "draw/picture.h"

enum picture_colour {
	COLOUR_INPUT,
	COLOUR_WEIGHTS, /* convolutions, products, recurrent layers */
	COLOUR_POOL,
	COLOUR_JOIN, /* joins several values */
	COLOUR_LOSS,
	COLOUR_OTHER,
	COLOUR_COUNT
};

enum { BOX_LINES = 3 };

struct picture_box {
	const char *lines[BOX_LINES]; /* name; operators; shape and parameters */
	enum picture_colour colour;
	int tail; /* the last of its nodes; -1: the network's input */
	int layer;
	double x, y, width, height; /* pixels; x, y: top left corner */
};

/* An edge from the bottom of a box to the top of a later one. In each layer between them it passes
 * at via[]. */
struct picture_edge {
	int from, to;
	const double *via;
};

struct picture {
	struct arena arena;
	const char *title;
	double title_width;
	struct picture_box *boxes; /* in the order of their nodes */
	int box_count;
	struct picture_edge *edges;
	int edge_count;
	int layers;
	double *tops, *heights; /* of each layer */
	double width, height;
};

/* Makes boxes and edges, and computes the size of each box (picture_boxes.c). */
void picture_boxes(struct picture *picture, const struct graph *graph);
/* Returns the number with commas between thousands. */
const char *picture_number(struct arena *arena, int64_t number);
/* Computes the positions of boxes and edges (picture_layout.c). */
enum prony_status picture_layout(struct picture *picture, struct error *err);

#endif
