/* Text for output: makes text from frameworks and files safe, and measures it in columns. */
#ifndef PRONY_REPORT_TEXT_H
#define PRONY_REPORT_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "base/strbuf.h"

/* The only escape sequences that a page may contain (ECMA-48, 8.3.117). */
#define TEXT_BOLD "\033[1m"
#define TEXT_DIM "\033[2m"
#define TEXT_PLAIN "\033[0m"

/* Returns one line of valid UTF-8. Invalid bytes, control characters and bidirectional overrides
 * (which could forge a terminal's contents) become U+FFFD; white space becomes a space. NULL counts
 * as "". The caller frees it. */
char *text_line(const char *text);

/* The same for text of several lines; keeps line feeds and tabs. */
char *text_block(const char *text);

/* The same for text laid out for a terminal; also keeps the sequences above. */
char *text_page(const char *text);

/* Returns the number of terminal columns that the text takes (by Unicode Standard Annex 11: wide
 * East Asian characters and emoji take two, combining marks none). */
size_t text_columns(const char *text);

/* Returns the bytes of the longest prefix that takes at most `columns`; at least one character of a
 * non-empty text, so that callers make progress. */
size_t text_fit(const char *text, size_t columns);

/* Takes the next line of at most `columns` off *rest. It breaks at the end of a word if possible,
 * else after a hyphen or before a capital in it. Returns the length of the line in bytes, beginning
 * at *line. */
size_t text_take_line(const char **rest, size_t columns, const char **line);

/* Writes the text, made safe by text_line, in lines of at most `width` columns. Each line follows
 * `indent` spaces and is enclosed in `before` and `after`. One line only if the width is 0 or too
 * small to be useful. */
void text_wrap(const char *text, int indent, int width, const char *before, const char *after,
	       struct strbuf *out);

/* Like json_dumps, with terminal control characters escaped: the values are the same. The caller
 * frees it. */
char *text_of_json(const json_t *json, size_t flags);

/* Returns a JSON string with malformed bytes replaced; control characters stay, because JSON
 * escapes them. NULL gives null. New reference. */
json_t *text_json(const char *text);
/* Likewise; "" also gives null. */
json_t *text_json_or_null(const char *text);

/* Escapes for HTML text and double-quoted attributes. */
void text_html(const char *text, struct strbuf *out);

/* One line, escaped for a cell of a Markdown table. */
void text_markdown(const char *text, struct strbuf *out);

/* One line, escaped for LaTeX text; malformed bytes become question marks. */
void text_latex(const char *text, struct strbuf *out);

/* Writes a field of CSV, quoted only if RFC 4180 requires it. Text that a spreadsheet would treat
 * as a formula gets a leading apostrophe; a number does not. */
void text_csv(const char *text, struct strbuf *out);

#endif
