/* Writes the section of nodes: which of them is slow, and what their sensors know of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/compare.h"
#include "report/html_internal.h"
#include "report/nodes.h"
#include "report/text.h"

/* More cells have no room beside each other: then those in which a node stands apart, and no more
 * than twice as many. */
enum { CELLS_MAX = 12, TEXT_BYTES = 96 };

static int newest_first(const void *a, const void *b)
{
	int64_t x = ((const struct stored_run *)a)->meta.started_wall_ns;
	int64_t y = ((const struct stored_run *)b)->meta.started_wall_ns;

	return (x < y) - (x > y);
}

static bool is_shown(const struct nodes *nodes, const struct node_cell *cell)
{
	bool shown = nodes->cell_count <= CELLS_MAX;

	for (size_t n = 0; n < nodes->compared && !shown; n++)
		shown = nodes_stand_apart(&cell->rows[n]);
	return shown;
}

/* "+4.1 %", its interval, and the reason. */
static void add_figure(const struct node_row *row, struct strbuf *out)
{
	const struct node_figure *last = &row->rounds[ROUND_LAST];
	const struct contrast *c = &last->contrast;
	const char *why = row->broken && last->cell->reason ? last->cell->reason : row->reasons;
	bool apart = nodes_judged(last) && last->verdict != VERDICT_INCONCLUSIVE;

	strbuf_printf(out, "<td class=\"figure%s\">",
		      row->broken || (apart && last->verdict == VERDICT_SLOWER) ? " bad"
		      : apart && last->verdict == VERDICT_FASTER		? " good"
										: "");
	if (isnan(c->ratio))
		text_html(nodes_failure(last), out);
	else
		strbuf_printf(out, "%+.1f %%", 100 * (c->ratio - 1));
	if (nodes_judged(last))
		strbuf_printf(out, "<br><small>%+.1f to %+.1f</small>", 100 * (c->low - 1),
			      100 * (c->high - 1));
	if (*why)
		html_text("<br><small>", why, "</small>", out);
	strbuf_puts(out, "</td>");
}

static void add_row(const struct nodes *nodes, size_t n, const bool *shown, struct strbuf *out)
{
	const struct node *node = &nodes->nodes[n];
	bool slow = node->lasts == LASTS_PERSISTENT;

	strbuf_puts(out, "<tr>");
	html_cell("strong", node->place, out);
	html_cell(slow ? "bad" : NULL, node_lasts_word(node->lasts), out);
	for (size_t i = 0; i < nodes->cell_count; i++)
		if (shown[i])
			add_figure(&nodes->cells[i].rows[n], out);
	strbuf_puts(out, "</tr>\n");
}

/* A row for each node, the slow ones first, and a column for each cell. */
static void add_table(const struct html_page *page, const struct nodes *nodes, struct strbuf *out)
{
	struct arena arena;
	size_t count = 2;

	arena_init(&arena, 0);
	bool *shown = arena_array(&arena, nodes->cell_count + 1, sizeof *shown);
	const char **titles = arena_array(&arena, nodes->cell_count + 2, sizeof *titles);
	titles[0] = "node";
	titles[1] = "lasts";
	for (size_t i = 0; i < nodes->cell_count; i++) {
		const struct cell *cell = &nodes->cells[i].cell->cell;
		char work[CELL_KEY_BYTES];
		shown[i] = count < 2 + 2 * CELLS_MAX && is_shown(nodes, &nodes->cells[i]);
		html_work(page, cell, work, sizeof work);
		if (shown[i])
			titles[count++] = arena_printf(&arena, ">%s: %s", cell->framework, work);
	}
	html_head(page, titles, count, out);
	for (int lasts = LASTS_PERSISTENT; lasts >= LASTS_NOT; lasts--)
		for (size_t n = 0; n < nodes->compared; n++)
			if (nodes->nodes[n].lasts == (enum node_lasts)lasts)
				add_row(nodes, n, shown, out);
	html_foot(out);
	if (count < nodes->cell_count + 2)
		strbuf_printf(out, "<p class=\"note\">%zu more cells: prony show --by node</p>\n",
			      nodes->cell_count + 2 - count);
	arena_release(&arena);
}

void html_nodes(const struct html_page *page, struct strbuf *out)
{
	struct stored_run *runs = memory_alloc((page->count + 1) * sizeof *runs);
	struct nodes nodes;

	for (size_t i = 0; i < page->count; i++)
		runs[i] = *page->summaries[i]->run;
	qsort(runs, page->count, sizeof *runs, newest_first);
	nodes_init(&nodes, runs, page->count, NODES_THRESHOLD);
	if (nodes.compared > 1 && nodes.cell_count > 0) {
		struct strbuf lines;
		strbuf_init(&lines, 0);
		nodes_conclusions(&nodes, 0, &lines);
		nodes_heading(&nodes, 0, &lines);
		char *text = strbuf_take(&lines);
		for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
			if (*line)
				html_text("<p>", line, "</p>\n", out);
		free(text);
		add_table(page, &nodes, out);
	}
	nodes_release(&nodes);
	free(runs);
}
