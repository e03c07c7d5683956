/* Figures on the page: the picture twice, for wide and for narrow places, its numbers, its files.
 */
#include "report/html_internal.h"
#include "report/text.h"

static void add_figure(const struct figure *figure, struct strbuf *out)
{
	static const char *const forms[][2] = {{"svg", "SVG"}, {"png", "PNG"}, {"csv", "CSV"}};
	struct strbuf csv;
	strbuf_init(&csv, 0);
	strbuf_printf(out, "<figure id=\"%s\"><figcaption><strong>", figure->name);
	text_html(figure->title, out);
	strbuf_puts(out, "</strong><span>");
	text_html(figure->caption, out);
	strbuf_puts(out, "</span></figcaption>\n<div class=\"wide-only\">");
	figure_svg(figure, FIGURE_WIDE, out);
	strbuf_puts(out, "</div><div class=\"narrow\">");
	figure_svg(figure, FIGURE_NARROW, out);
	strbuf_puts(out, "</div>\n<div class=\"tools\">");
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		strbuf_printf(out,
			      "<button type=\"button\" data-form=\"%s\" aria-label=\"Save as %s: ",
			      forms[i][0], forms[i][1]);
		text_html(figure->title, out);
		strbuf_printf(out, "\">%s</button>", forms[i][1]);
	}
	figure_csv(figure, &csv);
	strbuf_puts(out, "</div>\n<details class=\"numbers\"><summary>Numbers</summary><pre>");
	text_html(strbuf_text(&csv), out);
	strbuf_puts(out, "</pre></details></figure>\n");
	strbuf_release(&csv);
}

void html_figures(const struct figures *figures, size_t first, struct strbuf *out)
{
	if (first >= figures->count)
		return;
	strbuf_puts(out, "<div class=\"charts\">\n");
	for (size_t i = first; i < figures->count; i++)
		add_figure(figures->items[i], out);
	strbuf_puts(out, "</div>\n");
}
