/* Writes charts on the page: the image twice, for wide and for narrow screens, its numbers, and
 * links to its files. */
#include "report/html_internal.h"
#include "report/text.h"

static void add_chart(const struct chart *chart, struct strbuf *out)
{
	static const char *const forms[][2] = {{"svg", "SVG"}, {"png", "PNG"}, {"csv", "CSV"}};
	struct strbuf csv;
	strbuf_init(&csv, 0);
	strbuf_printf(out, "<figure id=\"%s\"><figcaption><strong>", chart->name);
	text_html(chart->heading ? chart->heading : chart->title, out);
	html_text("</strong><span>", chart->caption,
		  "</span></figcaption>\n<div class=\"wide-only\">", out);
	chart_svg(chart, CHART_WIDE, out);
	strbuf_puts(out, "</div><div class=\"narrow\">");
	chart_svg(chart, CHART_NARROW, out);
	strbuf_puts(out, "</div>\n<div class=\"tools\">");
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		strbuf_printf(out,
			      "<button type=\"button\" data-form=\"%s\" aria-label=\"Save as %s: ",
			      forms[i][0], forms[i][1]);
		text_html(chart->title, out);
		strbuf_printf(out, "\">%s</button>", forms[i][1]);
	}
	chart_csv(chart, &csv);
	html_text("</div>\n<details class=\"numbers\"><summary>Numbers</summary><pre>",
		  strbuf_text(&csv), "</pre></details></figure>\n", out);
	strbuf_release(&csv);
}

void html_charts(const struct charts *charts, size_t first, struct strbuf *out)
{
	if (first >= charts->count)
		return;
	strbuf_puts(out, "<div class=\"charts\">\n");
	for (size_t i = first; i < charts->count; i++)
		add_chart(charts->items[i], out);
	strbuf_puts(out, "</div>\n");
}
