/* Writes a run as a Markdown or LaTeX document: the tables, and the lines below them. */
#include "report/export.h"
#include "report/figures.h"
#include "report/program.h"
#include "report/text.h"

enum part {
	PART_HEADING,
	PART_TITLE, /* of a comparison */
	PART_MORE,  /* a second table below the first one */
	PART_VERDICT,
	PART_PARITY,
	PART_CONDITION,
	PART_LEGEND,
	PARTS
};

/* The markup of a document format: the text before and after each part. */
struct markup {
	void (*escape)(const char *text, struct strbuf *out);
	void (*table)(const struct table *table, struct strbuf *out);
	unsigned shown; /* figures of the first table, SHOW_ bits */
	const char *around[PARTS][2];
	const char *end; /* of a comparison; the last one has the lines about the run, too */
};

#define SMALL                                                                                      \
	{                                                                                          \
		"\n\\smallskip{\\scriptsize\\raggedright ", "\\par}\n"                             \
	}

static const struct markup
	markdown = {text_markdown,
		    table_render_markdown,
		    SHOW_FIRST | SHOW_USUAL | SHOW_WIDE,
		    {[PART_HEADING] = {"# prony ", "\n"},
		     [PART_TITLE] = {"\n## ", "\n\n"},
		     [PART_MORE] = {"\n", ""},
		     [PART_VERDICT] = {"\n", "\n"},
		     [PART_PARITY] = {"\n", "\n"},
		     [PART_CONDITION] = {"\n**", "**\n"},
		     [PART_LEGEND] = {"\n", ".\n"}},
		    ""},
	latex = {text_latex,
		 table_render_latex,
		 SHOW_PRINT,
		 {[PART_HEADING] = {"% \\usepackage[T1]{fontenc}\\usepackage{textcomp,"
				    "booktabs}\n% prony ",
				    "\n"},
		  [PART_TITLE] = {"\n\\begin{table}[htbp]\n\\centering\\footnotesize"
				  "\\setlength{\\tabcolsep}{3pt}\n\\caption{",
				  "}\n"},
		  [PART_MORE] = {"\n\\medskip\n", ""},
		  [PART_VERDICT] = SMALL,
		  [PART_PARITY] = SMALL,
		  [PART_CONDITION] = SMALL,
		  [PART_LEGEND] = {"\n\\smallskip{\\scriptsize\\raggedright ", ".\\par}\n"}},
		 "\\end{table}\n"};

static void add_part(const struct markup *markup, enum part part, const char *text,
		     struct strbuf *out)
{
	strbuf_puts(out, markup->around[part][0]);
	markup->escape(text, out);
	strbuf_puts(out, markup->around[part][1]);
}

static void add_legend(const struct markup *markup, const struct summary *summary,
		       struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_legend(summary, &line);
	add_part(markup, PART_LEGEND, strbuf_text(&line), out);
	strbuf_release(&line);
}

static void add_comparison(const struct markup *markup, const struct summary *summary,
			   size_t comparison, struct strbuf *out)
{
	char title[CELL_KEY_BYTES];
	struct strbuf line;
	summary_comparison_title(&summary->rows[summary->first[comparison]].cell->cell, title,
				 sizeof title);
	add_part(markup, PART_TITLE, title, out);
	if (markup == &latex)
		strbuf_printf(out, "\\label{tab:prony-%lld-%zu}\n",
			      (long long)summary->run->meta.id, comparison + 1);
	struct table *table = summary_table(summary, comparison, markup->shown);
	markup->table(table, out);
	table_free(table);
	table = summary_more(summary, comparison, SHOW_LATENCY);
	if (table) {
		add_part(markup, PART_MORE, "", out);
		markup->table(table, out);
	}
	table_free(table);
	strbuf_init(&line, 0);
	for (size_t i = 0; i < summary_verdict_count; i++) {
		strbuf_clear(&line);
		if (summary_verdicts[i](summary, comparison, &line))
			add_part(markup, PART_VERDICT, strbuf_text(&line), out);
	}
	/* The table for a printed column has no versions. */
	strbuf_clear(&line);
	for (size_t i = summary->first[comparison]; i < summary->first[comparison + 1]; i++) {
		const struct summary_row *row = &summary->rows[i];
		if (markup == &latex && row->step.n > 0)
			strbuf_printf(&line, "%s%s %s", line.length > 0 ? ", " : "versions: ",
				      row->cell->cell.framework, summary_version(row));
	}
	if (line.length > 0)
		add_part(markup, PART_VERDICT, strbuf_text(&line), out);
	strbuf_release(&line);
	if (markup == &latex)
		add_legend(markup, summary, out);
}

static void add_document(const struct markup *markup, const struct summary *summary,
			 struct strbuf *out)
{
	bool (*const conditions[])(const struct summary *, struct strbuf *) = {
		summary_unfinished,  summary_parts,	summary_absent,	 summary_exports,
		summary_disturbance, summary_power_cap, summary_settings};
	struct strbuf line;
	strbuf_init(&line, 0);
	summary_heading(summary, &line);
	add_part(markup, PART_HEADING, strbuf_text(&line), out);
	for (size_t c = 0; c < summary->comparison_count; c++) {
		strbuf_puts(out, c > 0 ? markup->end : "");
		add_comparison(markup, summary, c, out);
	}
	strbuf_clear(&line);
	summary_parity(summary, &line);
	add_part(markup, PART_PARITY, strbuf_text(&line), out);
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		strbuf_clear(&line);
		if (conditions[i](summary, &line))
			add_part(markup, PART_CONDITION, strbuf_text(&line), out);
	}
	if (markup != &latex)
		add_legend(markup, summary, out);
	strbuf_puts(out, summary->comparison_count > 0 ? markup->end : "");
	strbuf_release(&line);
}

/* One line: what a comment on a change has room for. */
static void add_machine(const struct summary *summary, struct strbuf *out)
{
	char program[PROGRAM_BYTES];
	struct strbuf line;
	strbuf_init(&line, 0);
	if (summary_machine(summary, &line))
		strbuf_puts(&line, "; ");
	program_text(&summary->run->meta, summary->environment, program);
	strbuf_printf(&line, "prony %s", program);
	add_part(&markdown, PART_PARITY, strbuf_text(&line), out);
	strbuf_release(&line);
}

enum prony_status export_markdown(const struct summary *summary, struct strbuf *out,
				  struct error *err)
{
	add_document(&markdown, summary, out);
	add_machine(summary, out);
	return export_finish(out, err);
}

enum prony_status export_latex(const struct summary *summary, struct strbuf *out, struct error *err)
{
	add_document(&latex, summary, out);
	return export_finish(out, err);
}
