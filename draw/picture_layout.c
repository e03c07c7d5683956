/* The layout in layers from top to bottom (Sugiyama, Tagawa and Toda 1981). Each box is one layer
 * below the last of its inputs. An edge that passes layers gets a place in each, so that it crosses
 * no box. Places are ordered by the mean of their neighbours. x is the value nearest to that mean
 * that keeps the gaps (isotonic regression in every layer). */
#include <stdlib.h>

#include "draw/picture_internal.h"

#define GAP 18.0
#define LAYER_GAP 30.0
#define MARGIN 20.0
#define PASSING_WIDTH 8.0
#define TITLE_HEIGHT 28.0
#define ORDER_SWEEPS 12
#define PLACE_SWEEPS 24
#define PLACES_MAX 200000
/* Pull towards the middle of the picture; without it a long network drifts from side to side. */
#define PULL 0.1

/* A box, or an edge that passes through a layer. */
struct place {
	int box; /* -1: an edge */
	int layer, index;
	double x, width;		    /* x: the middle */
	int up, up_count, down, down_count; /* slices of the neighbours' arrays */
};

struct link {
	int upper, lower; /* places of adjacent layers */
};

struct layout {
	struct picture *picture;
	struct place *places;
	int place_count;
	struct link *links;
	int link_count;
	int *ups, *downs;     /* neighbours of all places */
	int *row, *row_start; /* places by layer, in order */
	int *first_passing;   /* of each edge: its first place between two boxes */
};

static void find_layers(struct picture *picture)
{
	picture->layers = 1;
	for (int i = 0; i < picture->edge_count; i++) {
		const struct picture_edge *edge = &picture->edges[i];
		int below = picture->boxes[edge->from].layer + 1;

		/* Edges are sorted by the box they lead to, so the layer of `from` is final. */
		if (picture->boxes[edge->to].layer < below)
			picture->boxes[edge->to].layer = below;
		if (picture->layers <= below)
			picture->layers = below + 1;
	}
}

static int span(const struct picture *picture, const struct picture_edge *edge)
{
	return picture->boxes[edge->to].layer - picture->boxes[edge->from].layer;
}

static int add_place(struct layout *l, int box, int layer, double width)
{
	l->places[l->place_count] = (struct place){.box = box, .layer = layer, .width = width};
	return l->place_count++;
}

/* Adds the places of an edge. The place of a box has the number of the box. */
static void add_edge(struct layout *l, int index)
{
	const struct picture *picture = l->picture;
	const struct picture_edge *edge = &picture->edges[index];
	int above = edge->from;

	l->first_passing[index] = l->place_count;
	for (int layer = picture->boxes[edge->from].layer + 1;
	     layer < picture->boxes[edge->to].layer; layer++) {
		int place = add_place(l, -1, layer, PASSING_WIDTH);

		l->links[l->link_count++] = (struct link){above, place};
		above = place;
	}
	l->links[l->link_count++] = (struct link){above, edge->to};
}

static void find_neighbours(struct layout *l)
{
	int ups = 0, downs = 0;

	for (int i = 0; i < l->link_count; i++) {
		l->places[l->links[i].lower].up_count++;
		l->places[l->links[i].upper].down_count++;
	}
	for (int i = 0; i < l->place_count; i++) {
		struct place *place = &l->places[i];

		place->up = ups;
		place->down = downs;
		ups += place->up_count;
		downs += place->down_count;
		place->up_count = place->down_count = 0;
	}
	for (int i = 0; i < l->link_count; i++) {
		struct place *upper = &l->places[l->links[i].upper];
		struct place *lower = &l->places[l->links[i].lower];

		l->ups[lower->up + lower->up_count++] = l->links[i].upper;
		l->downs[upper->down + upper->down_count++] = l->links[i].lower;
	}
}

/* Fills the rows. A passing edge is placed where the box that it leads to was made. */
static void fill_rows(struct layout *l)
{
	const struct picture *picture = l->picture;
	int *filled = arena_array(&l->picture->arena, (size_t)picture->layers + 1, sizeof(int));
	int edge = 0;

	for (int i = 0; i < l->place_count; i++)
		l->row_start[l->places[i].layer + 1]++;
	for (int i = 0; i < picture->layers; i++)
		l->row_start[i + 1] += l->row_start[i];
	for (int box = 0; box < picture->box_count; box++) {
		for (; edge < picture->edge_count && picture->edges[edge].to == box; edge++)
			for (int k = 0; k < span(picture, &picture->edges[edge]) - 1; k++) {
				int place = l->first_passing[edge] + k;
				int layer = l->places[place].layer;

				l->places[place].index = filled[layer];
				l->row[l->row_start[layer] + filled[layer]++] = place;
			}
		int layer = picture->boxes[box].layer;

		l->places[box].index = filled[layer];
		l->row[l->row_start[layer] + filled[layer]++] = box;
	}
}

struct ranked {
	double key;
	int before, place;
};

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->key < y->key || x->key > y->key)
		return x->key < y->key ? -1 : 1;
	return x->before - y->before;
}

static void order_row(struct layout *l, int layer, bool by_upper, struct ranked *ranked)
{
	int start = l->row_start[layer], count = l->row_start[layer + 1] - start;

	for (int i = 0; i < count; i++) {
		const struct place *place = &l->places[l->row[start + i]];
		const int *neighbours = by_upper ? &l->ups[place->up] : &l->downs[place->down];
		int known = by_upper ? place->up_count : place->down_count;
		double sum = 0;

		for (int k = 0; k < known; k++)
			sum += l->places[neighbours[k]].index;
		ranked[i] = (struct ranked){known > 0 ? sum / known : i, i, l->row[start + i]};
	}
	qsort(ranked, (size_t)count, sizeof(*ranked), by_key);
	for (int i = 0; i < count; i++) {
		l->row[start + i] = ranked[i].place;
		l->places[ranked[i].place].index = i;
	}
}

static void order_rows(struct layout *l)
{
	struct ranked *ranked =
		arena_array(&l->picture->arena, (size_t)l->place_count + 1, sizeof(*ranked));

	for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
		for (int layer = l->picture->layers - 2; layer >= 0; layer--)
			order_row(l, layer, false, ranked);
		for (int layer = 1; layer < l->picture->layers; layer++)
			order_row(l, layer, true, ranked);
	}
}

/* Places that are pushed together, and the position of the first of them without gaps. */
struct block {
	double sum, weight;
	int count;
};

static double wanted_x(const struct layout *l, const struct place *place, bool upper, bool lower)
{
	double sum = 0;
	int count = 0;

	for (int k = 0; upper && k < place->up_count; k++, count++)
		sum += l->places[l->ups[place->up + k]].x;
	for (int k = 0; lower && k < place->down_count; k++, count++)
		sum += l->places[l->downs[place->down + k]].x;
	if (count == 0)
		return place->x;
	return place->box < 0 ? sum / count : sum / count * (1 - PULL);
}

/* Returns the offset of place i of a row if all before it are as close as allowed. */
static double next_offset(const struct layout *l, int start, int i, double offset)
{
	return i == 0 ? 0
		      : offset + GAP +
				(l->places[l->row[start + i - 1]].width +
				 l->places[l->row[start + i]].width) /
					2;
}

static void place_row(struct layout *l, int layer, bool upper, bool lower, struct block *blocks)
{
	int start = l->row_start[layer], count = l->row_start[layer + 1] - start, used = 0;
	double offset = 0;

	for (int i = 0; i < count; i++) {
		const struct place *place = &l->places[l->row[start + i]];
		/* A bent edge is worse than a box off the middle. */
		double weight = place->box < 0 ? 4 : 1;

		offset = next_offset(l, start, i, offset);
		blocks[used++] = (struct block){
			(wanted_x(l, place, upper, lower) - offset) * weight, weight, 1};
		while (used > 1 && blocks[used - 2].sum / blocks[used - 2].weight >
					   blocks[used - 1].sum / blocks[used - 1].weight) {
			blocks[used - 2].sum += blocks[used - 1].sum;
			blocks[used - 2].weight += blocks[used - 1].weight;
			blocks[used - 2].count += blocks[used - 1].count;
			used--;
		}
	}
	offset = 0;
	for (int i = 0, b = 0, within = 0; i < count; i++) {
		offset = next_offset(l, start, i, offset);
		l->places[l->row[start + i]].x = blocks[b].sum / blocks[b].weight + offset;
		if (++within == blocks[b].count) {
			b++;
			within = 0;
		}
	}
}

static void place_rows(struct layout *l)
{
	int layers = l->picture->layers;
	struct block *blocks =
		arena_array(&l->picture->arena, (size_t)l->place_count + 1, sizeof(*blocks));

	for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
		bool last = sweep >= PLACE_SWEEPS / 2;

		for (int layer = 0; layer < layers; layer++)
			place_row(l, layer, true, last, blocks);
		for (int layer = layers - 1; layer >= 0; layer--)
			place_row(l, layer, last, true, blocks);
	}
}

/* Converts the places to pixels of boxes, edges and layers. */
static void give_back(struct layout *l)
{
	struct picture *picture = l->picture;
	double left = 0, right = 0, y = MARGIN + TITLE_HEIGHT, missing;
	double *via = arena_array(&picture->arena, (size_t)l->place_count + 1, sizeof(*via));

	for (int i = 0; i < l->place_count; i++) {
		const struct place *place = &l->places[i];

		if (i == 0 || place->x - place->width / 2 < left)
			left = place->x - place->width / 2;
		if (i == 0 || place->x + place->width / 2 > right)
			right = place->x + place->width / 2;
	}
	missing = picture->title_width - (right - left);
	if (missing > 0) {
		left -= missing / 2;
		right += missing / 2;
	}
	for (int i = 0; i < picture->box_count; i++)
		if (picture->heights[picture->boxes[i].layer] < picture->boxes[i].height)
			picture->heights[picture->boxes[i].layer] = picture->boxes[i].height;
	for (int i = 0; i < picture->layers; i++) {
		picture->tops[i] = y;
		y += picture->heights[i] + LAYER_GAP;
	}
	for (int i = 0; i < l->place_count; i++)
		via[i] = l->places[i].x - left + MARGIN;
	for (int i = 0; i < picture->box_count; i++) {
		picture->boxes[i].x = via[i] - picture->boxes[i].width / 2;
		picture->boxes[i].y = picture->tops[picture->boxes[i].layer];
	}
	for (int i = 0; i < picture->edge_count; i++)
		picture->edges[i].via = &via[l->first_passing[i]];
	picture->width = right - left + 2 * MARGIN;
	picture->height = y - LAYER_GAP + MARGIN;
}

enum prony_status picture_layout(struct picture *picture, struct error *err)
{
	struct arena *arena = &picture->arena;
	struct layout l = {.picture = picture};
	size_t places = (size_t)picture->box_count, links = 0;

	find_layers(picture);
	for (int i = 0; i < picture->edge_count; i++)
		links += (size_t)span(picture, &picture->edges[i]);
	places += links - (size_t)picture->edge_count;
	if (places > PLACES_MAX)
		return error_set(err, PRONY_UNSUPPORTED,
				 "the network has too many long connections to draw; write a .dot "
				 "file and draw it with Graphviz");
	l.places = arena_array(arena, places + 1, sizeof(*l.places));
	l.links = arena_array(arena, links + 1, sizeof(*l.links));
	l.ups = arena_array(arena, links + 1, sizeof(int));
	l.downs = arena_array(arena, links + 1, sizeof(int));
	l.row = arena_array(arena, places + 1, sizeof(int));
	l.row_start = arena_array(arena, (size_t)picture->layers + 2, sizeof(int));
	l.first_passing = arena_array(arena, (size_t)picture->edge_count + 1, sizeof(int));
	picture->tops = arena_array(arena, (size_t)picture->layers + 1, sizeof(double));
	picture->heights = arena_array(arena, (size_t)picture->layers + 1, sizeof(double));
	for (int i = 0; i < picture->box_count; i++)
		add_place(&l, i, picture->boxes[i].layer, picture->boxes[i].width);
	for (int i = 0; i < picture->edge_count; i++)
		add_edge(&l, i);
	find_neighbours(&l);
	fill_rows(&l);
	order_rows(&l);
	place_rows(&l);
	give_back(&l);
	return PRONY_OK;
}
