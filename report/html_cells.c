/* Tables of the page: their cells, and what filters find rows by. */
#include <stdlib.h>
#include <string.h>

#include "report/html_internal.h"
#include "report/text.h"

const enum axis_id html_filters[HTML_FILTERS] = {
	AXIS_FRAMEWORK, AXIS_NETWORK, AXIS_DATASET, AXIS_STAGE,	    AXIS_BATCH, AXIS_DEVICE,
	AXIS_PRECISION, AXIS_INPUT,   AXIS_SYNC,    AXIS_OPTIMISER, AXIS_LOOP};

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
		bool figures = *titles[i] == '>';
		if (page->count == 1 && !strcmp(titles[i], "run"))
			continue;
		strbuf_puts(out,
			    figures ? "<th scope=\"col\" class=\"figure\">" : "<th scope=\"col\">");
		text_html(titles[i] + figures, out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
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

void html_attributes(const struct cell *cell, bool framework, struct strbuf *out)
{
	for (size_t i = !framework; i < HTML_FILTERS; i++) {
		const struct axis *axis = &axes[html_filters[i]];
		char text[CELL_WORD_BYTES];
		axis_text(axis, axis_value(axis, cell), text);
		html_attribute(axis->name, text, out);
	}
}

void html_row(const struct summary_row *row, const char *class, struct strbuf *out)
{
	strbuf_printf(out, "<tr class=\"%s\"", class);
	html_attributes(&row->cell->cell, true, out);
	html_attribute("status", cell_status_name(row->cell->status), out);
	strbuf_puts(out, ">");
}
