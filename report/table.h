/*
 * Tables of text: aligned columns on a terminal, with colour only there, or the same rows as JSON.
 */
#ifndef PRONY_REPORT_TABLE_H
#define PRONY_REPORT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table_column {
	const char *title; /* heading on the terminal */
	const char *key;   /* member in JSON */
	enum table_align align;
};

struct table;

/* The texts of the columns are borrowed for the lifetime of the table. */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);
/* Starts a row. */
void table_row(struct table *table);
/* Adds the next cell of the row: text for people and a value for programs (takes the reference;
 * NULL = the text as a JSON string). Text is copied; the width of UTF-8 is counted in characters.
 */
void table_cell(struct table *table, const char *text, json_t *value);
/* Adds a dim continuation line under the row (a reason), which is not part of JSON rows. */
void table_note(struct table *table, const char *text);

/* Whether all columns fit into `width` (0: any) with every text on one line. */
bool table_fits(const struct table *table, int width);

/* Writes the table; if the columns do not fit into `width` (0: any), each row becomes a block of
 * "title value". */
void table_render_text(const struct table *table, bool colour, int width, struct strbuf *out);
void table_render_markdown(const struct table *table, struct strbuf *out);
/* Writes a tabular with rules of the package booktabs, followed by the notes. */
void table_render_latex(const struct table *table, struct strbuf *out);
/* Returns an array of objects; new reference. */
json_t *table_to_json(const struct table *table);

#endif
