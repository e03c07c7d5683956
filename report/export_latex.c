/* A run as tables of LaTeX. */
#include "report/export.h"

#include "report/figures.h"
#include "report/text.h"

/* A paragraph of its own. */
static void add_line(const struct strbuf *line, struct strbuf *out)
{
	strbuf_puts(out, "\n\\smallskip{\\footnotesize ");
	text_latex(strbuf_text(line), out);
	strbuf_puts(out, "\\par}\n");
}

static void add_comparison(const struct summary *summary, const struct summary_row *row,
			   struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	struct strbuf line;
	summary_comparison_title(&row->cell->cell, title, sizeof title);
	strbuf_puts(out, "\n\\begin{table}[htbp]\n\\centering\n\\caption{");
	text_latex(title, out);
	strbuf_puts(out, "}\n");
	struct table *table =
		summary_table(summary, row->comparison, SHOW_FIRST | SHOW_USUAL | SHOW_WIDE);
	table_render_latex(table, out);
	table_free(table);
	table = summary_more(summary, row->comparison, SHOW_LATENCY);
	if (table) {
		strbuf_puts(out, "\n\\medskip\n");
		table_render_latex(table, out);
	}
	table_free(table);
	strbuf_init(&line, 0);
	for (size_t i = 0; i < summary_verdict_count; i++) {
		strbuf_clear(&line);
		if (summary_verdicts[i](summary, row->comparison, &line))
			add_line(&line, out);
	}
	strbuf_release(&line);
	strbuf_puts(out, "\\end{table}\n");
}

enum prony_status export_latex(const struct summary *summary, struct strbuf *out, struct error *err)
{
	bool (*const conditions[])(const struct summary *, struct strbuf *) = {
		summary_absent, summary_disturbance, summary_settings};
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_heading(summary, &line);
	strbuf_puts(out, "% \\usepackage[T1]{fontenc}\\usepackage{textcomp,booktabs}\n% prony ");
	text_latex(strbuf_text(&line), out);
	strbuf_putc(out, '\n');
	for (size_t i = 0; i < summary->count; i++)
		if (i == 0 || summary->rows[i].comparison != summary->rows[i - 1].comparison)
			add_comparison(summary, &summary->rows[i], out);
	strbuf_clear(&line);
	summary_parity(summary, &line);
	add_line(&line, out);
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		strbuf_clear(&line);
		if (conditions[i](summary, &line))
			add_line(&line, out);
	}
	strbuf_clear(&line);
	strbuf_puts(&line, SUMMARY_LEGEND ".");
	add_line(&line, out);
	strbuf_release(&line);
	return export_finish(out, err);
}
