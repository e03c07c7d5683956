/* Groups nodes into boxes and writes their text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "draw/picture_internal.h"

/* Width of the widest letter of the SVG's font at 12 pixels. */
#define LETTER_WIDTH 7.3
#define LINE_HEIGHT 16.0
#define PADDING 8.0
#define NAME_LETTERS 40
/* A line of operators of this length is not extended: chains of activations may be arbitrarily
 * long. */
#define OPERATORS_LETTERS 64

/* State while boxes are made. */
struct maker {
	struct picture *picture;
	const struct graph *graph;
	int *users;	     /* of each value, among forward nodes */
	int *box_of;	     /* box of each value; -1: none */
	int64_t *parameters; /* of each box */
};

static bool starts_letter(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

static int letters(const char *text)
{
	int count = 0;

	for (; *text; text++)
		count += starts_letter(*text);
	return count;
}

static bool flows(const struct graph *graph, int value)
{
	return value != VALUE_NONE && (graph->values[value].kind == VALUE_ACTIVATION ||
				       graph->values[value].kind == VALUE_INPUT);
}

/* Only convolutions have groups. */
static bool is_depthwise(const struct graph *graph, const struct node *node)
{
	return node->attributes.group > 1 &&
	       node->attributes.group == graph->values[node->inputs[0]].shape.dims[1];
}

/* Returns the box that a node is added to; -1: a new one. */
static int box_before(const struct maker *m, const struct node *node)
{
	int value = node->inputs[0], box = value == VALUE_NONE ? -1 : m->box_of[value];
	const struct node *tail;

	if (box < 0 || m->users[value] != 1 || m->picture->boxes[box].tail < 0)
		return -1;
	tail = &m->graph->nodes[m->picture->boxes[box].tail];
	if (tail->outputs[0] != value ||
	    letters(m->picture->boxes[box].lines[1]) > OPERATORS_LETTERS)
		return -1;
	/* A separable convolution consists of two. */
	if (is_depthwise(m->graph, tail) && node->attributes.group == 1 &&
	    node->attributes.kernel[0] == 1 && node->attributes.kernel[1] == 1)
		return box;
	return operator_row(node->op)->joins_box ? box : -1;
}

static enum picture_colour colour_of(const struct node *node, int joined)
{
	if (operator_row(node->op)->is_loss)
		return COLOUR_LOSS;
	if (operator_row(node->op)->macs)
		return COLOUR_WEIGHTS;
	if (joined > 1)
		return COLOUR_JOIN;
	return operator_row(node->op)->is_reduction ? COLOUR_POOL : COLOUR_OTHER;
}

/* Returns "Conv 7x7 /2", "MaxPool 3x3 /2", "BatchNorm". */
static const char *operator_text(struct maker *m, const struct node *node)
{
	const struct attributes *a = &node->attributes;
	const char *short_name = operator_row(node->op)->short_name;
	const char *name = short_name ? short_name : operator_name(node->op);
	char stride[48] = "", group[48] = "";

	if (a->kernel[0] == 0) /* no sliding window */
		return name;
	if (a->strides[0] != a->strides[1])
		snprintf(stride, sizeof(stride), " /%" PRId64 "x%" PRId64, a->strides[0],
			 a->strides[1]);
	else if (a->strides[0] != 1)
		snprintf(stride, sizeof(stride), " /%" PRId64, a->strides[0]);
	if (is_depthwise(m->graph, node))
		snprintf(group, sizeof(group), " depthwise");
	else if (a->group > 1)
		snprintf(group, sizeof(group), " in %" PRId64 " groups", a->group);
	return arena_printf(&m->picture->arena, "%s %" PRId64 "x%" PRId64 "%s%s", name,
			    a->kernel[0], a->kernel[1], stride, group);
}

const char *picture_number(struct arena *arena, int64_t number)
{
	if (number < 1000)
		return arena_printf(arena, "%" PRId64, number);
	return arena_printf(arena, "%s,%03d", picture_number(arena, number / 1000),
			    (int)(number % 1000));
}

/* Shortens a long name at its start, because the end is more specific. */
static const char *shortened(struct arena *arena, const char *name)
{
	int drop = letters(name) - NAME_LETTERS;

	if (drop <= 0)
		return name;
	for (drop++; drop > 0 || !starts_letter(*name); name++)
		drop -= starts_letter(*name);
	return arena_printf(arena, "\xE2\x80\xA6%s", name);
}

static void say_shape(struct maker *m, struct picture_box *box, int value, int64_t parameters)
{
	char shape[128];
	const struct shape *of = &m->graph->values[value].shape;

	shape_text(of, shape, sizeof(shape));
	box->lines[2] = of->rank == 0 ? "scalar" : arena_strdup(&m->picture->arena, shape);
	if (parameters > 0)
		box->lines[2] = arena_printf(&m->picture->arena, "%s, %s parameters", box->lines[2],
					     picture_number(&m->picture->arena, parameters));
}

static void connect(struct maker *m, int from, int to)
{
	struct picture *picture = m->picture;

	for (int i = picture->edge_count; i-- > 0 && picture->edges[i].to == to;)
		if (picture->edges[i].from == from)
			return;
	picture->edges[picture->edge_count++] = (struct picture_edge){.from = from, .to = to};
}

static void add_node(struct maker *m, int index)
{
	struct picture *picture = m->picture;
	const struct node *node = &m->graph->nodes[index];
	int at = box_before(m, node), joined = 0;

	if (at >= 0) {
		struct picture_box *box = &picture->boxes[at];

		box->lines[1] = arena_printf(&picture->arena, "%s + %s", box->lines[1],
					     operator_text(m, node));
		box->tail = index;
	} else {
		at = picture->box_count++;
		for (int i = 0; i < node->input_count; i++) {
			if (!flows(m->graph, node->inputs[i]) || m->box_of[node->inputs[i]] < 0)
				continue;
			connect(m, m->box_of[node->inputs[i]], at);
			joined++;
		}
		picture->boxes[at] = (struct picture_box){
			.lines = {shortened(&picture->arena, node->name), operator_text(m, node)},
			.colour = colour_of(node, joined),
			.tail = index};
	}
	for (int i = 0; i < node->input_count; i++)
		if (node->inputs[i] != VALUE_NONE &&
		    m->graph->values[node->inputs[i]].kind == VALUE_PARAMETER)
			m->parameters[at] +=
				shape_elements(&m->graph->values[node->inputs[i]].shape);
	for (int i = 0; i < node->output_count; i++)
		if (node->outputs[i] != VALUE_NONE)
			m->box_of[node->outputs[i]] = at;
	say_shape(m, &picture->boxes[at], node->outputs[0], m->parameters[at]);
}

/* Counts the users of each value; returns the largest possible number of edges. */
static int count_users(struct maker *m)
{
	int edges = 0;

	for (int i = 0; i < m->graph->forward_count; i++) {
		const struct node *node = &m->graph->nodes[i];

		for (int k = 0; k < node->input_count; k++) {
			if (!flows(m->graph, node->inputs[k]))
				continue;
			m->users[node->inputs[k]]++;
			edges++;
		}
	}
	return edges;
}

static void measure(struct picture_box *box)
{
	int most = 0;

	for (int i = 0; i < BOX_LINES; i++) {
		int count = letters(box->lines[i]);

		if (count > most)
			most = count;
	}
	box->width = most * LETTER_WIDTH + 2 * PADDING;
	box->height = BOX_LINES * LINE_HEIGHT + PADDING;
}

void picture_boxes(struct picture *picture, const struct graph *graph)
{
	struct arena *arena = &picture->arena;
	int inputs = graph_inputs(graph, NULL, 0);
	size_t values = (size_t)graph->value_count + 1;
	size_t boxes = (size_t)(graph->forward_count + inputs);
	struct maker maker = {.picture = picture,
			      .graph = graph,
			      .users = arena_array(arena, values, sizeof(int)),
			      .box_of = arena_array(arena, values, sizeof(int)),
			      .parameters = arena_array(arena, boxes, sizeof(int64_t))};

	for (size_t i = 0; i < values; i++)
		maker.box_of[i] = -1;
	picture->boxes = arena_array(arena, boxes, sizeof(*picture->boxes));
	picture->edges =
		arena_array(arena, (size_t)count_users(&maker) + 1, sizeof(*picture->edges));
	for (int i = 0; i < inputs; i++) {
		int input = graph_input(graph, i);

		picture->boxes[i] =
			(struct picture_box){.lines = {graph->values[input].name, "input"},
					     .colour = COLOUR_INPUT,
					     .tail = -1};
		maker.box_of[input] = i;
		say_shape(&maker, &picture->boxes[i], input, 0);
	}
	picture->box_count = inputs;
	for (int i = 0; i < graph->forward_count; i++)
		add_node(&maker, i);
	for (int i = 0; i < picture->box_count; i++)
		measure(&picture->boxes[i]);
	picture->title_width = letters(picture->title) * LETTER_WIDTH;
}
