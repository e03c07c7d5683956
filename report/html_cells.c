/* Writes the page's tables: their cells, and the attributes by which filters select rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html_internal.h"
#include "report/text.h"

const enum axis_id html_filters[HTML_FILTERS] = {
	AXIS_FRAMEWORK, AXIS_NETWORK, AXIS_DATASET, AXIS_STAGE,	    AXIS_BATCH, AXIS_DEVICE,
	AXIS_PRECISION, AXIS_INPUT,   AXIS_SYNC,    AXIS_OPTIMISER, AXIS_LOOP};

void html_text(const char *before, const char *text, const char *after, struct strbuf *out)
{
	strbuf_puts(out, before);
	text_html(text, out);
	strbuf_puts(out, after);
}

void html_cell(const char *class, const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	if (class)
		strbuf_printf(out, "<td class=\"%s\">", class);
	else
		strbuf_puts(out, "<td>");
	text_html(clean, out);
	strbuf_puts(out, "</td>");
	free(clean);
}

void html_head(const struct html_page *page, const char *const *titles, size_t count,
	       struct strbuf *out)
{
	strbuf_puts(out, "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>");
	for (size_t i = 0; i < count; i++) {
		bool figure = *titles[i] == '>', name = !strcmp(titles[i], "framework");
		if ((page->count == 1 && !strcmp(titles[i], "run")) ||
		    (page->comparison_count == 1 && !strcmp(titles[i], "work")))
			continue;
		strbuf_puts(out, figure ? "<th scope=\"col\" class=\"figure\">"
				 : name ? "<th scope=\"col\" class=\"name\">"
					: "<th scope=\"col\">");
		text_html(titles[i] + figure, out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
}

void html_work_cell(const struct html_page *page, const struct cell *cell, const char *more,
		    struct strbuf *out)
{
	char work[CELL_KEY_BYTES], text[CELL_KEY_BYTES + 40];
	html_work(page, cell, work, sizeof work);
	snprintf(text, sizeof text, "%s%s", work, more);
	if (page->comparison_count > 1)
		html_cell(NULL, text, out);
}

void html_run_cell(const struct html_page *page, size_t run, struct strbuf *out)
{
	if (page->count > 1)
		html_cell("label", page->labels[run], out);
}

void html_below(size_t columns, const char *text, struct strbuf *out)
{
	char *clean = text_line(text);
	strbuf_printf(out, "<td class=\"reason\" colspan=\"%zu\"><div>", columns);
	html_text("", clean, "</div></td></tr>\n", out);
	free(clean);
}

void html_foot(struct strbuf *out)
{
	strbuf_puts(out, "</tbody></table></div>\n");
}

void html_attribute(const char *name, const char *value, struct strbuf *out)
{
	char *clean = text_line(value);
	strbuf_printf(out, " data-%s=\"", name);
	text_html(clean, out);
	strbuf_putc(out, '"');
	free(clean);
}

unsigned html_shared(unsigned filters, const struct cell *cell, const struct cell *other)
{
	for (size_t i = 0; i < HTML_FILTERS; i++)
		if (!axis_equal(&axes[html_filters[i]], cell, other))
			filters &= ~(1U << i);
	return filters;
}

void html_attributes_of(const struct cell *cell, unsigned filters, struct strbuf *out)
{
	for (size_t i = 0; i < HTML_FILTERS; i++) {
		const struct axis *axis = &axes[html_filters[i]];
		char text[CELL_WORD_BYTES];
		/* Inference has no optimiser, so no checkbox for optimisers may hide it. */
		if (!(filters >> i & 1) || !axis_applies(axis, cell))
			continue;
		axis_text(axis, axis_value(axis, cell), text);
		html_attribute(axis->name, text, out);
	}
}

void html_attributes(const struct cell *cell, bool framework, struct strbuf *out)
{
	html_attributes_of(cell, framework ? HTML_FILTERS_ALL : HTML_FILTERS_ALL & ~1U, out);
}

void html_row_of(const struct summary_row *row, unsigned filters, const char *class,
		 struct strbuf *out)
{
	strbuf_printf(out, "<tr class=\"%s\"", class);
	html_attributes_of(&row->cell->cell, filters, out);
	html_attribute("status", cell_status_name(row->cell->status), out);
	strbuf_puts(out, ">");
}

void html_row(const struct summary_row *row, const char *class, struct strbuf *out)
{
	html_row_of(row, HTML_FILTERS_ALL, class, out);
}
