/* Text for output: text from frameworks and files is made harmless and measured in columns. */
#ifndef PRONY_REPORT_TEXT_H
#define PRONY_REPORT_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/strbuf.h"

/* The only sequences that a page may hold (ECMA-48, 8.3.117). */
#define TEXT_BOLD "\033[1m"
#define TEXT_DIM "\033[2m"
#define TEXT_PLAIN "\033[0m"

/*
 * One line of valid UTF-8: bytes that are none, control characters and bidirectional overrides
 * (which could forge a terminal's contents) become U+FFFD, white space becomes a space. NULL counts
 * as "". The caller frees it.
 */
char *text_line(const char *text);

/* The same for text of several lines, whose line feeds and tabs stay. */
char *text_block(const char *text);

/* The same for what was laid out for a terminal: the sequences above stay too. */
char *text_page(const char *text);

/* Columns of a terminal that the text takes (after Unicode Standard Annex 11: wide East Asian
 * characters and emoji take two, combining marks none). */
size_t text_columns(const char *text);

/* Bytes of the longest beginning that takes at most `columns`; at least one character of a text
 * that is not empty, so that callers make progress. */
size_t text_fit(const char *text, size_t columns);

/* Takes the next line of at most `columns` off *rest, broken where words end if they do, else
 * behind a hyphen: returns its bytes from *line. */
size_t text_take_line(const char **rest, size_t columns, const char **line);

/* The text, as text_line makes it, in lines of at most `width` columns, each behind `indent` spaces
 * and between `before` and `after`; one line where the width is 0 or too small to be of use. */
void text_wrap(const char *text, int indent, int width, const char *before, const char *after,
	       struct strbuf *out);

/* json_dumps with what a terminal would obey escaped: the same values. The caller frees it. */
char *text_of_json(const json_t *json, size_t flags);

/* A JSON string with malformed bytes replaced; control characters stay, JSON escapes them. NULL
 * gives null. New reference. */
json_t *text_json(const char *text);
/* Likewise; null for "" too. */
json_t *text_json_or_null(const char *text);

/* Escapes for HTML text and double-quoted attributes. */
void text_html(const char *text, struct strbuf *out);

/* One line, escaped for a cell of a Markdown table. */
void text_markdown(const char *text, struct strbuf *out);

/* One line, escaped for text of LaTeX; what was malformed is a question mark. */
void text_latex(const char *text, struct strbuf *out);

/* A field of CSV, quoted only where RFC 4180 asks for it. Text that a spreadsheet would take for a
 * formula gets an apostrophe in front; a number does not. */
void text_csv(const char *text, struct strbuf *out);

#endif
