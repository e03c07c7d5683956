/* Builds tables and writes them for terminals, Markdown, LaTeX and JSON. */
#include "report/table.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/text.h"

enum {
	GAP = 2,	 /* spaces between columns */
	NOTE_INDENT = 2, /* indent of a continuation line */
};

/* The least width of a wrapped column: first none breaks a word, then smaller ones are used if the
 * table would not fit otherwise. */
static const size_t wrap_columns[] = {SIZE_MAX, 16, 12};

struct entry {
	char *text;
	json_t *value;
};

struct row {
	struct entry *entries; /* one per column */
	size_t count;	       /* number of entries filled */
	char *note;	       /* NULL = none */
};

struct table {
	struct table_column *columns;
	size_t column_count;
	struct row *rows;
	size_t row_count, row_capacity;
};

struct table *table_new(const struct table_column *columns, size_t count)
{
	struct table *table = memory_alloc(sizeof *table);
	*table = (struct table){.columns = memory_alloc((count + 1) * sizeof *columns),
				.column_count = count};
	memcpy(table->columns, columns, count * sizeof *columns);
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->row_count; i++) {
		for (size_t k = 0; k < table->rows[i].count; k++) {
			free(table->rows[i].entries[k].text);
			json_decref(table->rows[i].entries[k].value);
		}
		free(table->rows[i].entries);
		free(table->rows[i].note);
	}
	free(table->rows);
	free(table->columns);
	free(table);
}

void table_row(struct table *table)
{
	table->rows = memory_grow(table->rows, table->row_count, &table->row_capacity,
				  sizeof *table->rows);
	struct row *row = &table->rows[table->row_count++];
	*row = (struct row){.entries = memory_alloc(table->column_count * sizeof *row->entries)};
}

void table_cell(struct table *table, const char *text, json_t *value)
{
	assert(table->row_count > 0);
	struct row *row = &table->rows[table->row_count - 1];
	assert(row->count < table->column_count);
	char *clean = text_line(text);
	row->entries[row->count++] =
		(struct entry){.text = clean, .value = value ? value : text_json(clean)};
}

void table_note(struct table *table, const char *text)
{
	assert(table->row_count > 0);
	struct row *row = &table->rows[table->row_count - 1];
	free(row->note);
	row->note = text_line(text);
}

static const char *entry_text(const struct row *row, size_t column)
{
	return column < row->count ? row->entries[column].text : "";
}

/* Finds the widths that keep each text on one line; returns their sum with the gaps. */
static size_t natural_widths(const struct table *table, size_t *widths)
{
	size_t total = table->column_count ? GAP * (table->column_count - 1) : 0;
	for (size_t k = 0; k < table->column_count; k++) {
		widths[k] = text_columns(table->columns[k].title);
		for (size_t i = 0; i < table->row_count; i++) {
			size_t columns = text_columns(entry_text(&table->rows[i], k));
			if (columns > widths[k])
				widths[k] = columns;
		}
		total += widths[k];
	}
	return total;
}

bool table_fits(const struct table *table, int width)
{
	size_t *widths = memory_alloc(table->column_count * sizeof *widths);
	size_t total = natural_widths(table, widths);
	free(widths);
	return width <= 0 || total <= (size_t)width;
}

/* Returns the columns of the longest word, but at least a few. */
static size_t longest_word(const struct table *table, size_t column)
{
	size_t longest = 8;
	for (size_t i = 0; i < table->row_count; i++)
		for (const char *text = entry_text(&table->rows[i], column); *text;) {
			size_t bytes = strcspn(text, " ");
			char *word = memory_printf("%.*s", (int)bytes, text);
			size_t columns = text_columns(word);
			longest = columns > longest ? columns : longest;
			free(word);
			text += bytes + strspn(text + bytes, " ");
		}
	return longest;
}

/* Starts from the natural widths; then narrows the widest left-aligned columns until the table
 * fits. */
static size_t *choose_widths(const struct table *table, int width)
{
	size_t *widths = memory_alloc(table->column_count * sizeof *widths);
	size_t *words = memory_alloc(table->column_count * sizeof *words);
	size_t total = natural_widths(table, widths), at = 0;
	for (size_t k = 0; k < table->column_count; k++)
		words[k] = longest_word(table, k);
	while (width > 0 && total > (size_t)width &&
	       at < sizeof wrap_columns / sizeof *wrap_columns) {
		size_t widest = table->column_count, spare = 0;
		for (size_t k = 0; k < table->column_count; k++) {
			size_t least = words[k] < wrap_columns[at] ? words[k] : wrap_columns[at];
			if (table->columns[k].align != TABLE_LEFT || widths[k] <= least ||
			    (widest < table->column_count && widths[k] <= widths[widest]))
				continue;
			widest = k;
			spare = widths[k] - least;
		}
		if (widest == table->column_count) {
			at++;
			continue;
		}
		size_t excess = total - (size_t)width, less = excess < spare ? excess : spare;
		widths[widest] -= less;
		total -= less;
	}
	free(words);
	return widths;
}

static void pad(struct strbuf *out, size_t columns)
{
	while (columns-- > 0)
		strbuf_putc(out, ' ');
}

static void trim_line(struct strbuf *line)
{
	while (line->length > 0 && line->text[line->length - 1] == ' ')
		line->text[--line->length] = '\0';
}

/* Writes one row of the table, with as many lines as its fullest cell needs. */
static void render_row(const struct table *table, const size_t *widths, const char **rests,
		       const char *before, const char *after, struct strbuf *out)
{
	struct strbuf line;
	strbuf_init(&line, 0);
	for (bool more = true; more;) {
		more = false;
		strbuf_clear(&line);
		for (size_t k = 0; k < table->column_count; k++) {
			const char *start;
			size_t bytes = text_take_line(&rests[k], widths[k], &start);
			char *part = memory_alloc(bytes + 1);
			memcpy(part, start, bytes);
			part[bytes] = '\0';
			size_t used = text_columns(part),
			       room = widths[k] > used ? widths[k] - used : 0;
			if (table->columns[k].align == TABLE_RIGHT)
				pad(&line, room);
			strbuf_puts(&line, part);
			if (table->columns[k].align == TABLE_LEFT)
				pad(&line, room);
			if (k + 1 < table->column_count)
				pad(&line, GAP);
			free(part);
			more = more || *rests[k];
		}
		trim_line(&line);
		strbuf_printf(out, "%s%s%s\n", before, strbuf_text(&line), after);
	}
	strbuf_release(&line);
}

static bool fits(const struct table *table, const size_t *widths, int width)
{
	size_t total = table->column_count ? GAP * (table->column_count - 1) : 0;
	for (size_t k = 0; k < table->column_count; k++)
		total += widths[k];
	return width <= 0 || total <= (size_t)width;
}

/* Returns the column that identifies a row: the first left-aligned one. */
static size_t name_column(const struct table *table)
{
	for (size_t k = 0; k < table->column_count; k++)
		if (table->columns[k].align == TABLE_LEFT)
			return k;
	return 0;
}

/* Writes a row that is too wide as a block: its name, then the other cells with their titles, as
 * many on a line as fit. A cell that fits on a line by itself is not broken. Unknown cells ("-")
 * are left out, because nothing needs to be aligned. */
static void render_block(const struct table *table, const struct row *row, bool colour, int width,
			 struct strbuf *out)
{
	struct strbuf line;
	size_t name = name_column(table);
	strbuf_init(&line, 0);
	text_wrap(entry_text(row, name), 0, width, colour ? TEXT_BOLD : "",
		  colour ? TEXT_PLAIN : "", out);
	for (size_t k = 0; k <= table->column_count; k++) {
		const char *text = k < table->column_count ? entry_text(row, k) : "";
		if (k < table->column_count && (k == name || !*text || !strcmp(text, "-")))
			continue;
		size_t more = k < table->column_count ? text_columns(table->columns[k].title) + 1 +
								text_columns(text)
						      : (size_t)width;
		if (line.length > 0 &&
		    NOTE_INDENT + text_columns(strbuf_text(&line)) + GAP + more > (size_t)width) {
			text_wrap(strbuf_text(&line), NOTE_INDENT, width, "", "", out);
			strbuf_clear(&line);
		}
		if (k < table->column_count)
			strbuf_printf(&line, "%s%s %s", line.length > 0 ? "  " : "",
				      table->columns[k].title, text);
	}
	strbuf_release(&line);
}

static void render_note(const struct row *row, bool colour, int width, struct strbuf *out)
{
	if (row->note)
		text_wrap(row->note, NOTE_INDENT, width, colour ? TEXT_DIM : "",
			  colour ? TEXT_PLAIN : "", out);
}

void table_render_text(const struct table *table, bool colour, int width, struct strbuf *out)
{
	size_t *widths = choose_widths(table, width);
	const char **rests = memory_alloc(table->column_count * sizeof *rests);
	bool blocks = !fits(table, widths, width);
	for (size_t i = 0; blocks && i < table->row_count; i++) {
		render_block(table, &table->rows[i], colour, width, out);
		render_note(&table->rows[i], colour, width, out);
	}
	for (size_t k = 0; k < table->column_count; k++)
		rests[k] = table->columns[k].title;
	if (!blocks)
		render_row(table, widths, rests, colour ? TEXT_BOLD : "", colour ? TEXT_PLAIN : "",
			   out);
	for (size_t i = 0; !blocks && i < table->row_count; i++) {
		for (size_t k = 0; k < table->column_count; k++)
			rests[k] = entry_text(&table->rows[i], k);
		render_row(table, widths, rests, "", "", out);
		render_note(&table->rows[i], colour, width, out);
	}
	free(rests);
	free(widths);
}

void table_render_markdown(const struct table *table, struct strbuf *out)
{
	for (size_t k = 0; k < table->column_count; k++) {
		strbuf_puts(out, "| ");
		text_markdown(table->columns[k].title, out);
		strbuf_putc(out, ' ');
	}
	strbuf_puts(out, "|\n");
	for (size_t k = 0; k < table->column_count; k++)
		strbuf_puts(out, table->columns[k].align == TABLE_RIGHT ? "| ---: " : "| --- ");
	strbuf_puts(out, "|\n");
	for (size_t i = 0; i < table->row_count; i++) {
		for (size_t k = 0; k < table->column_count; k++) {
			strbuf_puts(out, "| ");
			text_markdown(entry_text(&table->rows[i], k), out);
			strbuf_putc(out, ' ');
		}
		strbuf_puts(out, "|\n");
	}
	bool first = true;
	for (size_t i = 0; i < table->row_count; i++) {
		if (!table->rows[i].note)
			continue;
		strbuf_puts(out, first ? "\n- " : "- ");
		first = false;
		text_markdown(entry_text(&table->rows[i], name_column(table)), out);
		strbuf_puts(out, ": ");
		text_markdown(table->rows[i].note, out);
		strbuf_putc(out, '\n');
	}
}

/* Whether a row has a name and nothing else, so that its note says all about it. */
static bool is_blank(const struct table *table, size_t row)
{
	for (size_t k = 0; k < table->column_count; k++)
		if (k != name_column(table) && strcmp(entry_text(&table->rows[row], k), "-") != 0)
			return false;
	return table->rows[row].note;
}

void table_render_latex(const struct table *table, struct strbuf *out)
{
	strbuf_puts(out, "\\begin{tabular}{");
	for (size_t k = 0; k < table->column_count; k++)
		strbuf_putc(out, table->columns[k].align == TABLE_RIGHT ? 'r' : 'l');
	strbuf_puts(out, "}\n\\toprule\n");
	for (size_t k = 0; k < table->column_count; k++) {
		text_latex(table->columns[k].title, out);
		strbuf_puts(out, k + 1 < table->column_count ? " & " : " \\\\\n\\midrule\n");
	}
	for (size_t i = 0; i < table->row_count; i++)
		for (size_t k = 0; k < table->column_count && !is_blank(table, i); k++) {
			text_latex(entry_text(&table->rows[i], k), out);
			strbuf_puts(out, k + 1 < table->column_count ? " & " : " \\\\\n");
		}
	strbuf_puts(out, "\\bottomrule\n\\end{tabular}\n");
	for (size_t i = 0; i < table->row_count; i++) {
		if (!table->rows[i].note)
			continue;
		strbuf_puts(out, "\n\\smallskip{\\scriptsize\\raggedright ");
		text_latex(entry_text(&table->rows[i], name_column(table)), out);
		strbuf_puts(out, ": ");
		text_latex(table->rows[i].note, out);
		strbuf_puts(out, "\\par}\n");
	}
}

json_t *table_to_json(const struct table *table)
{
	json_t *array = json_array();
	for (size_t i = 0; i < table->row_count; i++) {
		const struct row *row = &table->rows[i];
		json_t *object = json_object();
		for (size_t k = 0; k < table->column_count; k++)
			json_object_set_new(object, table->columns[k].key,
					    k < row->count ? json_incref(row->entries[k].value)
							   : json_null());
		json_array_append_new(array, object);
	}
	return array;
}
