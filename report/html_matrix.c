/* Writes the matrix of ratios: comparisons against frameworks, shaded, with their geometric means.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/html_internal.h"
#include "report/text.h"

/* With more frameworks than fit across a page, and fewer comparisons than frameworks, the matrix
 * has a row for each framework, because wide tables are cut off on paper. */
enum { ACROSS_FRAMEWORKS = 7 };

/* The deepest shade stands for the largest ratio of the page, within these limits. */
#define SHADE_LEAST 2.0
#define SHADE_MOST 10.0

/* A comparison of a run, or the geometric means of a run. */
struct work {
	size_t comparison, run;
	enum figure_id ratio;
	size_t of; /* means: of that many comparisons; 0: a comparison */
};

struct matrix {
	const struct html_page *page;
	struct work *works; /* comparisons, then means */
	size_t work_count, mean_count;
	size_t *frameworks; /* numbers of the page, by their mean ratio */
	size_t framework_count;
	struct contrast *means; /* by run and number of the framework */
	double deepest;		/* logarithm of the ratio with the deepest shade */
	bool differ;		/* there is a ratio other than that of a framework to itself */
};

static const struct summary_row *row_of(const struct matrix *m, const struct work *work,
					size_t framework)
{
	return html_find(m->page, work->run, work->comparison, m->page->frameworks[framework]);
}

/* Returns a ratio, or a mean of ratios; NULL if there is none. */
static const struct contrast *contrast_of(const struct matrix *m, const struct work *work,
					  size_t framework)
{
	const struct contrast *contrast =
		&m->means[work->run * m->page->framework_count + framework];
	const struct summary_row *row = work->of ? NULL : row_of(m, work, framework);
	if (!work->of && !row)
		return NULL;
	if (row)
		contrast = work->ratio == FIGURE_FLOOR ? &row->floor : &row->lead;
	return isfinite(contrast->ratio) ? contrast : NULL;
}

/* Takes the comparisons in which a framework was tried, and these frameworks. */
static void gather(struct matrix *m)
{
	const struct html_page *page = m->page;
	bool *tried = memory_alloc((page->framework_count + 1) * sizeof *tried);
	memset(tried, 0, (page->framework_count + 1) * sizeof *tried);
	for (size_t i = 0; i < page->comparison_count * page->count; i++) {
		struct work work = {.comparison = i / page->count, .run = i % page->count};
		bool any = false;
		work.ratio = html_ratio(page, work.comparison);
		for (size_t k = 0; k < page->framework_count; k++) {
			const struct summary_row *row = row_of(m, &work, k);
			if (row && row->cell->status != CELL_MISSING && !row->folded)
				any = tried[k] = true;
		}
		if (any)
			m->works[m->work_count++] = work;
	}
	for (size_t k = 0; k < page->framework_count; k++)
		if (tried[k])
			m->frameworks[m->framework_count++] = k;
	free(tried);
}

static bool has_interval(const struct matrix *m, const struct work *work, size_t framework)
{
	const struct contrast *contrast = contrast_of(m, work, framework);
	return contrast && isfinite(contrast->error);
}

/* Computes a run's geometric means over the comparisons in which each of its frameworks that has
 * any ratio has one with an interval. There are none for fewer than two comparisons, or
 * frameworks. */
static void add_means(struct matrix *m, size_t run, size_t comparisons, struct contrast *contrasts)
{
	struct contrast *means = m->means + run * m->page->framework_count;
	struct work mean = {.run = run, .of = 0};
	size_t *shared = memory_alloc((comparisons + 1) * sizeof *shared);
	bool *counts = memory_alloc((m->framework_count + 1) * sizeof *counts);
	size_t compared = 0;
	for (size_t k = 0; k < m->framework_count; k++) {
		counts[k] = false;
		for (size_t i = 0; i < comparisons; i++)
			counts[k] |= m->works[i].run == run &&
				     has_interval(m, &m->works[i], m->frameworks[k]);
		compared += counts[k];
	}
	for (size_t i = 0; i < comparisons; i++) {
		bool all = compared > 1 && m->works[i].run == run;
		for (size_t k = 0; k < m->framework_count && all; k++)
			all = !counts[k] || has_interval(m, &m->works[i], m->frameworks[k]);
		if (all)
			shared[mean.of++] = i;
	}
	for (size_t k = 0; k < m->framework_count && mean.of > 1; k++) {
		for (size_t i = 0; i < mean.of && counts[k]; i++)
			contrasts[i] = *contrast_of(m, &m->works[shared[i]], m->frameworks[k]);
		if (counts[k])
			contrast_mean(contrasts, mean.of, &means[m->frameworks[k]]);
	}
	if (mean.of > 1)
		m->works[m->work_count + m->mean_count++] = mean;
	free(counts);
	free(shared);
}

/* Returns the number by which the frameworks are sorted: the mean of the logarithms of its means
 * or, if there are none, of its ratios. */
static double place_of(const struct matrix *m, size_t framework)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = m->mean_count > 0 ? m->work_count : 0; i < m->work_count + m->mean_count;
	     i++) {
		const struct contrast *contrast = contrast_of(m, &m->works[i], framework);
		sum += contrast ? contrast->difference : 0;
		count += contrast != NULL;
	}
	return count > 0 ? sum / (double)count : INFINITY;
}

static void sort_frameworks(struct matrix *m)
{
	double *places = memory_alloc((m->page->framework_count + 1) * sizeof *places);
	for (size_t i = 0; i < m->framework_count; i++) {
		size_t framework = m->frameworks[i], at = i;
		double place = places[framework] = place_of(m, framework);
		for (; at > 0 && place < places[m->frameworks[at - 1]]; at--)
			m->frameworks[at] = m->frameworks[at - 1];
		m->frameworks[at] = framework;
	}
	free(places);
}

static void find_deepest(struct matrix *m)
{
	double most = SHADE_LEAST;
	for (size_t i = 0; i < m->work_count; i++)
		for (size_t k = 0; k < m->framework_count; k++) {
			const struct contrast *contrast =
				contrast_of(m, &m->works[i], m->frameworks[k]);
			if (!contrast)
				continue;
			most = fmax(most, exp(fabs(contrast->difference)));
			m->differ |= contrast->difference != 0;
		}
	m->deepest = log(fmin(most, SHADE_MOST));
}

static void matrix_init(const struct html_page *page, struct matrix *m)
{
	size_t works = page->comparison_count * page->count, frameworks = page->framework_count;
	struct contrast *contrasts = memory_alloc((works + 1) * sizeof *contrasts);
	*m = (struct matrix){.page = page};
	m->works = memory_alloc((works + page->count + 1) * sizeof *m->works);
	m->frameworks = memory_alloc((frameworks + 1) * sizeof *m->frameworks);
	m->means = memory_alloc((page->count * frameworks + 1) * sizeof *m->means);
	for (size_t i = 0; i < page->count * frameworks; i++)
		m->means[i] = (struct contrast){.ratio = NAN};
	gather(m);
	for (size_t run = 0; run < page->count; run++)
		add_means(m, run, m->work_count, contrasts);
	sort_frameworks(m);
	find_deepest(m);
	free(contrasts);
}

static void matrix_release(struct matrix *m)
{
	free(m->works);
	free(m->frameworks);
	free(m->means);
}

/* Adds the filters that hide a line or column: number `i` of the works or of the frameworks. Means
 * are always shown. */
static void side_attributes(const struct matrix *m, bool works, size_t i, struct strbuf *out)
{
	if (!works)
		html_attribute("framework", m->page->frameworks[m->frameworks[i]], out);
	else if (!m->works[i].of)
		html_attributes(m->page->comparisons[m->works[i].comparison], false, out);
}

static void framework_name(const struct matrix *m, size_t i, struct strbuf *out)
{
	const char *name = m->page->frameworks[m->frameworks[i]];
	strbuf_printf(out, "<span class=\"swatch\" style=\"background:%s\"></span> ",
		      html_colour(m->page, name));
	text_html(name, out);
}

/* Adds what the comparison is, with a link to its section if `linked`. */
static void work_name(const struct matrix *m, size_t i, bool linked, struct strbuf *out)
{
	const struct work *work = &m->works[i];
	char title[CELL_KEY_BYTES];
	linked = linked && !work->of && work->comparison < HTML_SECTIONS_MAX;
	if (work->of)
		snprintf(title, sizeof title, "geometric mean of %zu", work->of);
	else
		html_work(m->page, m->page->comparisons[work->comparison], title, sizeof title);
	if (linked)
		strbuf_printf(out, "<a href=\"#comparison-%zu\">", work->comparison + 1);
	text_html(title, out);
	strbuf_puts(out, linked ? "</a>" : "");
	if (m->page->count > 1)
		html_text("<br>", m->page->labels[work->run], "", out);
}

/* Opens a cell with its ratio for sorting, and its shade. */
static void open_ratio(const struct matrix *m, const struct contrast *contrast, const char *class,
		       struct strbuf *out)
{
	double shade = round(100 * fmin(fabs(contrast->difference) / m->deepest, 1));
	strbuf_printf(out, " class=\"figure%s%s\" data-value=\"%.6g\"", class,
		      !(shade > 0)		 ? ""
		      : contrast->difference > 0 ? " slow"
						 : " fast",
		      contrast->ratio);
	if (shade > 0)
		strbuf_printf(out, " style=\"--shade:%.0f%%\"", shade);
}

static void mean_cell(const struct matrix *m, const struct contrast *mean, struct strbuf *out)
{
	char ratio[FORMAT_BYTES], low[FORMAT_BYTES], high[FORMAT_BYTES];
	if (!mean) {
		strbuf_puts(out, " class=\"figure none\">-</td>");
		return;
	}
	format_ratio_within(mean->ratio, contrast_half_width(mean), ratio, sizeof ratio);
	format_ratio(mean->low, low, sizeof low);
	format_ratio(mean->high, high, sizeof high);
	open_ratio(m, mean, "", out);
	strbuf_printf(out, ">%s", ratio);
	if (mean->high > mean->low)
		strbuf_printf(out, " <small>%s to %s</small>", low, high);
	strbuf_puts(out, "</td>");
}

/* Adds how a cell without a ratio ended. */
static void status_cell(const struct summary_row *row, struct strbuf *out)
{
	const struct stored_cell *cell = row->cell;
	char *reason = text_line(summary_reason(row)), step[FORMAT_BYTES];
	strbuf_printf(out, " class=\"figure %s\" title=\"", html_status_class(row));
	text_html(reason, out);
	figure_text(FIGURE_STEP, row, step);
	if (cell->status != CELL_OK && row->step.n > 0)
		strbuf_printf(out, "\">%s <small>%zu of %zu</small></td>", step, row->processes,
			      row->needed);
	else
		strbuf_printf(out, "\">%s</td>",
			      cell->status != CELL_OK		  ? cell_status_name(cell->status)
			      : cell->flags & CELL_FLAG_GATE_ONLY ? "same work"
								  : "not ranked");
	free(reason);
}

/* Adds a ratio; the framework that the others are compared with has its step time, too, and one
 * without others has nothing else. */
static void ratio_cell(const struct matrix *m, const struct work *work, size_t framework,
		       const struct summary_row *row, struct strbuf *out)
{
	char step[FORMAT_BYTES], ratio[FORMAT_BYTES], interval[FIGURE_INTERVAL_BYTES];
	const struct contrast *contrast = contrast_of(m, work, framework);
	bool alone = html_is_alone(m->page, work->run, row->comparison);
	bool first = row->rank == 1 && !alone, itself = figure_value(work->ratio, row).itself;
	figure_text(FIGURE_STEP, row, step);
	figure_text(work->ratio, row, ratio);
	figure_interval_text(work->ratio, row, interval);
	if (contrast)
		open_ratio(m, contrast, first ? " best" : "", out);
	else
		strbuf_puts(out, " class=\"figure\"");
	strbuf_printf(out, " title=\"%s%s%s\">", step, *interval ? "; " : "", interval);
	/* A sign in addition to the weight, for paper and screen readers. */
	strbuf_puts(out, first ? "<span role=\"img\" aria-label=\"first\">*</span> " : "");
	strbuf_puts(out, alone ? step : ratio);
	if (itself && !alone)
		strbuf_printf(out, " <small>%s</small>", step);
	strbuf_puts(out, "</td>");
}

static void matrix_cell(const struct matrix *m, const struct work *work, size_t framework,
			struct strbuf *out)
{
	const struct summary_row *row = work->of ? NULL : row_of(m, work, framework);
	if (work->of)
		mean_cell(m, contrast_of(m, work, framework), out);
	else if (!row)
		strbuf_puts(out, " class=\"figure none\">-</td>");
	else if (!row->comparable)
		status_cell(row, out);
	else
		ratio_cell(m, work, framework, row, out);
}

/* Adds the table; `turned`: its rows are frameworks, which are in the order of the first mean. */
static void add_table(const struct matrix *m, bool turned, struct strbuf *out)
{
	size_t works = m->work_count + m->mean_count, lines = turned ? m->framework_count : works,
	       columns = turned ? works : m->framework_count;
	strbuf_printf(out, "<th scope=\"col\">%s</th>", turned ? "framework" : "same work");
	for (size_t c = 0; c < columns; c++) {
		bool sorted = turned && c == m->work_count;
		strbuf_printf(out, "<th scope=\"col\" class=\"figure%s\"", turned ? " work" : "");
		side_attributes(m, turned, c, out);
		strbuf_puts(out, sorted ? " aria-sort=\"ascending\">" : ">");
		if (turned)
			work_name(m, c, false, out);
		else
			framework_name(m, c, out);
		strbuf_puts(out, "</th>");
	}
	strbuf_puts(out, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < lines; i++) {
		bool means = !turned && i == m->work_count;
		strbuf_puts(out, means ? "</tbody><tfoot>\n<tr" : "<tr");
		side_attributes(m, !turned, i, out);
		strbuf_puts(out, "><th scope=\"row\">");
		if (turned)
			framework_name(m, i, out);
		else
			work_name(m, i, true, out);
		strbuf_puts(out, "</th>");
		for (size_t c = 0; c < columns; c++) {
			strbuf_puts(out, "<td");
			side_attributes(m, turned, c, out);
			matrix_cell(m, &m->works[turned ? c : i], m->frameworks[turned ? i : c],
				    out);
		}
		strbuf_puts(out, "</tr>\n");
	}
	strbuf_puts(out, !turned && m->mean_count > 0 ? "</tfoot>" : "</tbody>");
}

static bool is_installed(const struct html_page *page, const char *framework)
{
	for (size_t run = 0; run < page->count; run++)
		for (size_t i = 0; i < page->summaries[run]->count; i++) {
			const struct stored_cell *cell = page->summaries[run]->rows[i].cell;
			if (!strcmp(cell->cell.framework, framework) &&
			    cell->status == CELL_MISSING &&
			    cell_not_installed(&cell->cell, cell->reason))
				return false;
		}
	return true;
}

/* Frameworks without results have no column. One line names those that are not installed, another
 * those that lack a device or data. */
static void add_missing(const struct matrix *m, struct strbuf *out)
{
	for (int installed = 0; installed < 2; installed++) {
		bool first = true;
		for (size_t k = 0; k < m->page->framework_count; k++) {
			bool shown = false;
			for (size_t i = 0; i < m->framework_count; i++)
				shown |= m->frameworks[i] == k;
			if (shown || is_installed(m->page, m->page->frameworks[k]) != installed)
				continue;
			strbuf_puts(out, !first	     ? ", "
					 : installed ? "<p class=\"note\">Missing, <a "
						       "href=\"#ledger\">for these reasons</a>: "
						     : "<p class=\"note\">Not installed: ");
			text_html(m->page->frameworks[k], out);
			first = false;
		}
		strbuf_puts(out, first ? "" : ".</p>\n");
	}
}

static void add_note(const struct matrix *m, struct strbuf *out)
{
	bool native = false;
	if (!m->differ)
		return;
	for (size_t i = 0; i < m->work_count; i++)
		native |= m->works[i].ratio == FIGURE_FLOOR;
	strbuf_printf(
		out,
		"<p class=\"note\">Step time divided by that of %s, whose step time stands "
		"in its cell: less is faster. The deeper the orange the slower, the deeper "
		"the blue the faster, on a logarithmic scale up to %.3gx. *: the fastest, and "
		"those that cannot be told apart from it. ~: cannot be told apart from 1. ?: the "
		"order is not proved.",
		native ? "native (without native: of the fastest)" : "the fastest",
		exp(m->deepest));
	if (m->mean_count > 0)
		strbuf_puts(out, " Geometric mean: of the ratios in the comparisons that all "
				 "frameworks share, with its 95 % interval.");
	strbuf_puts(out, "</p>\n");
}

void html_matrix(const struct html_page *page, struct strbuf *out)
{
	struct matrix m;
	matrix_init(page, &m);
	size_t most = HTML_ROWS_MAX, left_out = 0;
	if (m.work_count > most) {
		left_out = m.work_count - most;
		memmove(m.works + most, m.works + m.work_count, m.mean_count * sizeof *m.works);
		m.work_count = most;
	}
	strbuf_puts(out, "<div class=\"wide\" tabindex=\"0\"><table class=\"matrix\"><thead><tr>");
	add_table(&m, m.framework_count > ACROSS_FRAMEWORKS && m.work_count < m.framework_count,
		  out);
	strbuf_puts(out, "</table></div>\n");
	add_note(&m, out);
	if (left_out > 0)
		strbuf_printf(out,
			      "<p class=\"note\">%zu more comparisons: see the curves, or `prony "
			      "export --layout cells`.</p>\n",
			      left_out);
	add_missing(&m, out);
	matrix_release(&m);
}
