/* Writes the picture of a network as SVG or for Graphviz. */
#include "draw/picture.h"

#include "draw/picture_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_FIRST 17.0 /* from the top of a box to the baseline of its first line */
#define TEXT_LINE 16.0

/* Pale colours under dark text, readable on a light and on a dark page. */
static const char *const colours[COLOUR_COUNT] = {
	[COLOUR_INPUT] = "#d9d9d9", [COLOUR_WEIGHTS] = "#a6cee3", [COLOUR_POOL] = "#b2df8a",
	[COLOUR_JOIN] = "#fdd58c",  [COLOUR_LOSS] = "#f4a6a0",	  [COLOUR_OTHER] = "#dccbe8",
};

enum prony_status picture_format_of(const char *path, enum picture_format *out, struct error *err)
{
	const char *dot = strrchr(path, '.');

	if (dot && strcmp(dot, ".svg") == 0)
		*out = PICTURE_SVG;
	else if (dot && strcmp(dot, ".dot") == 0)
		*out = PICTURE_DOT;
	else
		return error_set(
			err, PRONY_USAGE,
			"'%.300s': the file name of a picture must end in .svg or .dot (Graphviz)",
			path);
	return PRONY_OK;
}

/* Appends escaped text. XML has no control characters, but names in a file may have any. */
static void add_xml(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			strbuf_puts(out, "&amp;");
		else if (*text == '<')
			strbuf_puts(out, "&lt;");
		else if (*text == '>')
			strbuf_puts(out, "&gt;");
		else if (*text == '"')
			strbuf_puts(out, "&quot;");
		else
			strbuf_putc(out,
				    (unsigned char)*text < 0x20 || *text == 0x7F ? '?' : *text);
	}
}

static void add_dot(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			strbuf_putc(out, '\\');
		strbuf_putc(out, (unsigned char)*text < 0x20 ? '?' : *text);
	}
}

/* Draws an edge: straight through the layers that it passes, bent between them. */
static void svg_edge(const struct picture *picture, const struct picture_edge *edge,
		     struct strbuf *out)
{
	const struct picture_box *from = &picture->boxes[edge->from],
				 *to = &picture->boxes[edge->to];
	double x = from->x + from->width / 2, y = from->y + from->height;

	strbuf_printf(out, "<path d=\"M%.1f %.1f", x, y);
	for (int layer = from->layer + 1; layer <= to->layer; layer++) {
		bool arrives = layer == to->layer;
		double next = arrives ? to->x + to->width / 2 : edge->via[layer - from->layer - 1];
		double top = picture->tops[layer],
		       base = picture->tops[layer - 1] + picture->heights[layer - 1];
		double middle = (base + top) / 2;

		if (y < base)
			strbuf_printf(out, "V%.1f", base);
		strbuf_printf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, next, middle, next,
			      top);
		x = next;
		y = top;
	}
	strbuf_puts(out, "\"/>\n");
}

static void svg_box(const struct picture_box *box, struct strbuf *out)
{
	strbuf_printf(out,
		      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
		      "fill=\"%s\"/>\n",
		      box->x, box->y, box->width, box->height, colours[box->colour]);
	for (int i = 0; i < BOX_LINES; i++) {
		strbuf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", box->x + box->width / 2,
			      box->y + TEXT_FIRST + i * TEXT_LINE,
			      i == 0 ? " font-weight=\"bold\"" : "");
		add_xml(out, box->lines[i]);
		strbuf_puts(out, "</text>\n");
	}
}

static void write_svg(const struct picture *picture, struct strbuf *out)
{
	strbuf_printf(out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, "
		      "monospace\" font-size=\"12\" text-anchor=\"middle\">\n<title>",
		      picture->width, picture->height, picture->width, picture->height);
	add_xml(out, picture->title);
	strbuf_printf(
		out,
		"</title>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
		"markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
		"fill=\"#808080\"/></marker></defs>\n<text x=\"%.1f\" y=\"24\" "
		"fill=\"#808080\">",
		picture->width / 2);
	add_xml(out, picture->title);
	strbuf_puts(out, "</text>\n<g fill=\"none\" stroke=\"#808080\" stroke-width=\"1.3\" "
			 "marker-end=\"url(#tip)\">\n");
	for (int i = 0; i < picture->edge_count; i++)
		svg_edge(picture, &picture->edges[i], out);
	strbuf_puts(out, "</g>\n<g fill=\"#1a1a1a\">\n");
	for (int i = 0; i < picture->box_count; i++)
		svg_box(&picture->boxes[i], out);
	strbuf_puts(out, "</g>\n</svg>\n");
}

static void write_dot(const struct picture *picture, struct strbuf *out)
{
	strbuf_puts(out, "digraph \"");
	add_dot(out, picture->title);
	strbuf_puts(out, "\" {\nnode [shape=box, style=\"rounded,filled\", fontname=\"monospace\", "
			 "fontsize=10];\n");
	for (int i = 0; i < picture->box_count; i++) {
		strbuf_printf(out, "n%d [fillcolor=\"%s\", label=\"", i,
			      colours[picture->boxes[i].colour]);
		for (int k = 0; k < BOX_LINES; k++) {
			strbuf_puts(out, k ? "\\n" : "");
			add_dot(out, picture->boxes[i].lines[k]);
		}
		strbuf_puts(out, "\"];\n");
	}
	for (int i = 0; i < picture->edge_count; i++)
		strbuf_printf(out, "n%d -> n%d;\n", picture->edges[i].from, picture->edges[i].to);
	strbuf_puts(out, "}\n");
}

enum prony_status picture_write(const struct graph *graph, enum picture_format format,
				struct strbuf *out, struct error *err)
{
	struct picture picture = {0};
	enum prony_status status = PRONY_OK;

	arena_init(&picture.arena, 0);
	picture.title = arena_printf(
		&picture.arena, "%s, batch %" PRId64 ": %s parameters, %s MACs", graph->name,
		graph_batch(graph), picture_number(&picture.arena, graph_parameter_count(graph)),
		picture_number(&picture.arena, graph_macs(graph)));
	picture_boxes(&picture, graph);
	if (format == PICTURE_SVG)
		status = picture_layout(&picture, err);
	if (status == PRONY_OK && format == PICTURE_SVG)
		write_svg(&picture, out);
	else if (status == PRONY_OK)
		write_dot(&picture, out);
	if (status == PRONY_OK && out->truncated)
		status = error_set(err, PRONY_UNSUPPORTED, "the picture is too large");
	arena_release(&picture.arena);
	return status;
}
