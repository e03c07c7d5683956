/* Prepares text for output: removes terminal control, measures columns, escapes for each format. */
#include "report/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Lines are never narrower than this. */
#define LEAST_COLUMNS 16
#define REPLACEMENT 0xFFFD
#define REPLACEMENT_UTF8 "\xEF\xBF\xBD"

struct range {
	uint32_t first, last;
};

/* Combining marks, and invisible characters. */
static const struct range zero_width[] = {
	{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
	{0x064B, 0x065F}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},
	{0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2060, 0x2064}, {0x20D0, 0x20FF},
	{0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};

/* EastAsianWidth.txt, classes W and F, neighbouring ranges joined. */
static const struct range double_width[] = {
	{0x1100, 0x115F},   {0x231A, 0x231B},	{0x2329, 0x232A},   {0x23E9, 0x23EC},
	{0x2614, 0x2615},   {0x2648, 0x2653},	{0x26CE, 0x26CE},   {0x2705, 0x2705},
	{0x270A, 0x270B},   {0x2728, 0x2728},	{0x274C, 0x274C},   {0x2795, 0x2797},
	{0x2E80, 0x303E},   {0x3041, 0x4DBF},	{0x4E00, 0xA4CF},   {0xA960, 0xA97F},
	{0xAC00, 0xD7A3},   {0xF900, 0xFAFF},	{0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
	{0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
	{0x1FA70, 0x1FAFF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD},
};

#define WITHIN(table, code) is_within((table), sizeof(table) / sizeof *(table), (code))

static bool is_within(const struct range *table, size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (code >= table[i].first && code <= table[i].last)
			return true;
	return false;
}

/* Returns the character at the start of `text`, which is not empty, and its length in bytes. A
 * malformed byte (RFC 3629: stray and missing continuation bytes, overlong forms, surrogates) is
 * decoded as one byte with the code of the replacement character and *valid false. */
static size_t decode(const char *text, uint32_t *code, bool *valid)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = bytes[0] < 0x80		    ? 1
			: (bytes[0] & 0xE0) == 0xC0 ? 2
			: (bytes[0] & 0xF0) == 0xE0 ? 3
			: (bytes[0] & 0xF8) == 0xF0 ? 4
						    : 0;
	*valid = length > 0;
	*code = length <= 1 ? bytes[0] : bytes[0] & (0x7Fu >> length);
	for (size_t i = 1; i < length && *valid; i++) {
		*valid = (bytes[i] & 0xC0) == 0x80;
		*code = *code << 6 | (bytes[i] & 0x3Fu);
	}
	if (*valid && length > 1)
		*valid = *code >= smallest[length] && *code <= 0x10FFFF &&
			 (*code < 0xD800 || *code > 0xDFFF);
	if (*valid)
		return length;
	*code = REPLACEMENT;
	return 1;
}

/* Whether a terminal would execute the character instead of displaying it. */
static bool is_command(uint32_t code)
{
	return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
	       (code >= 0x2066 && code <= 0x2069);
}

enum { KEEP_LINES = 1, KEEP_COLOURS = 2 };

/* Returns the length in bytes of an allowed colour sequence at the start of `text`. */
static size_t colour_at(const char *text)
{
	static const char *const own[] = {TEXT_BOLD, TEXT_DIM, TEXT_PLAIN};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strncmp(text, own[i], strlen(own[i])))
			return strlen(own[i]);
	return 0;
}

static char *clean(const char *text, int keep)
{
	struct strbuf out;
	strbuf_init(&out, SIZE_MAX / 4);
	while (text && *text) {
		uint32_t code;
		bool valid;
		size_t length = keep & KEEP_COLOURS ? colour_at(text) : 0;
		if (length > 0) {
			strbuf_add(&out, text, length);
			text += length;
			continue;
		}
		length = decode(text, &code, &valid);
		if (keep & KEEP_LINES && (code == '\n' || code == '\t'))
			strbuf_putc(&out, *text);
		else if (code == '\n' || code == '\r' || code == '\t')
			strbuf_putc(&out, ' ');
		else if (!valid || is_command(code))
			strbuf_puts(&out, REPLACEMENT_UTF8);
		else
			strbuf_add(&out, text, length);
		text += length;
	}
	return strbuf_take(&out);
}

char *text_line(const char *text)
{
	return clean(text, 0);
}

char *text_block(const char *text)
{
	return clean(text, KEEP_LINES);
}

char *text_page(const char *text)
{
	return clean(text, KEEP_LINES | KEEP_COLOURS);
}

static size_t columns_of(uint32_t code)
{
	if (WITHIN(zero_width, code))
		return 0;
	return WITHIN(double_width, code) ? 2 : 1;
}

size_t text_columns(const char *text)
{
	size_t columns = 0;
	while (*text) {
		uint32_t code;
		bool valid;
		text += decode(text, &code, &valid);
		columns += columns_of(code);
	}
	return columns;
}

size_t text_fit(const char *text, size_t columns)
{
	size_t bytes = 0, used = 0;
	while (text[bytes]) {
		uint32_t code;
		bool valid;
		size_t length = decode(text + bytes, &code, &valid);
		used += columns_of(code);
		if (used > columns && bytes > 0)
			break;
		bytes += length;
	}
	return bytes;
}

char *text_of_json(const json_t *json, size_t flags)
{
	char *dumped = json_dumps(json, flags);
	struct strbuf out;
	if (!dumped)
		memory_exhausted("memory for JSON");
	strbuf_init(&out, SIZE_MAX / 4);
	for (const char *at = dumped; *at;) {
		uint32_t code;
		bool valid;
		size_t length = decode(at, &code, &valid);
		/* Characters below 0x20 occur only between the members; jansson escapes those
		 * inside texts. */
		if (code >= 0x7F && is_command(code))
			strbuf_printf(&out, "\\u%04x", code);
		else
			strbuf_add(&out, at, length);
		at += length;
	}
	free(dumped);
	return strbuf_take(&out);
}

json_t *text_json(const char *text)
{
	if (!text)
		return json_null();
	json_t *whole = json_string(text);
	if (whole)
		return whole;
	struct strbuf out;
	strbuf_init(&out, SIZE_MAX / 4);
	while (*text) {
		uint32_t code;
		bool valid;
		size_t length = decode(text, &code, &valid);
		if (valid)
			strbuf_add(&out, text, length);
		else
			strbuf_puts(&out, REPLACEMENT_UTF8);
		text += length;
	}
	whole = json_string(strbuf_text(&out));
	strbuf_release(&out);
	return whole;
}

json_t *text_json_or_null(const char *text)
{
	return text && *text ? text_json(text) : json_null();
}

/* Whether a long word may be broken behind this character: a hyphen between letters or digits
 * (which is neither a sign nor part of an option), or a small letter before a capital
 * (BatchNormalization).
 */
static bool breaks_after(const char *text, size_t at)
{
	const unsigned char *c = (const unsigned char *)text + at;
	if (islower(c[0]) && isupper(c[1]))
		return true;
	return c[0] == '-' && at > 0 && isalnum(c[-1]) && isalnum(c[1]);
}

size_t text_take_line(const char **rest, size_t columns, const char **line)
{
	*line = *rest;
	size_t bytes = text_fit(*rest, columns), end = bytes;
	if ((*rest)[bytes]) {
		size_t at = bytes;
		while (at > 0 && (*rest)[at] != ' ')
			at--;
		/* A word too long for the line is broken where breaks_after allows it. */
		if (at == 0)
			for (at = bytes; at > 0 && !breaks_after(*rest, at - 1);)
				at--;
		if (at > 0)
			bytes = end = at;
	}
	*rest += end;
	while (**rest == ' ')
		(*rest)++;
	return bytes;
}

void text_wrap(const char *text, int indent, int width, const char *before, const char *after,
	       struct strbuf *out)
{
	size_t columns = width > indent + LEAST_COLUMNS ? (size_t)(width - indent) : SIZE_MAX;
	char *clean = text_line(text);

	for (const char *rest = clean; *rest;) {
		const char *line;
		size_t bytes = text_take_line(&rest, columns, &line);

		strbuf_printf(out, "%*s%s", indent, "", before);
		strbuf_add(out, line, bytes);
		strbuf_printf(out, "%s\n", after);
	}
	free(clean);
}

void text_html(const char *text, struct strbuf *out)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			strbuf_puts(out, "&amp;");
			break;
		case '<':
			strbuf_puts(out, "&lt;");
			break;
		case '>':
			strbuf_puts(out, "&gt;");
			break;
		case '"':
			strbuf_puts(out, "&quot;");
			break;
		case '\'':
			strbuf_puts(out, "&#39;");
			break;
		default:
			strbuf_putc(out, *text);
		}
	}
}

void text_markdown(const char *text, struct strbuf *out)
{
	char *line = text_line(text);
	for (const char *at = line; *at; at++) {
		if (*at == '<') {
			strbuf_puts(out, "&lt;");
			continue;
		}
		if (strchr("\\`*|[", *at))
			strbuf_putc(out, '\\');
		strbuf_putc(out, *at);
	}
	free(line);
}

void text_latex(const char *text, struct strbuf *out)
{
	/* Characters that TeX interprets, alone or in the old font encoding. */
	static const struct {
		char character;
		const char *written;
	} rows[] = {{'\\', "\\textbackslash{}"},
		    {'{', "\\{"},
		    {'}', "\\}"},
		    {'$', "\\$"},
		    {'&', "\\&"},
		    {'#', "\\#"},
		    {'%', "\\%"},
		    {'_', "\\_"},
		    {'~', "\\textasciitilde{}"},
		    {'^', "\\textasciicircum{}"},
		    {'<', "\\textless{}"},
		    {'>', "\\textgreater{}"},
		    {'|', "\\textbar{}"},
		    {'"', "\\textquotedbl{}"},
		    {'[', "{[}"},
		    {']', "{]}"},
		    {'\'', "\\textquotesingle{}"},
		    {'`', "\\textasciigrave{}"}};
	char *line = text_line(text);
	for (const char *at = line; *at; at++) {
		size_t i = 0, count = sizeof rows / sizeof *rows;
		while (i < count && rows[i].character != *at)
			i++;
		if (!strncmp(at, "+/-", 3)) {
			strbuf_puts(out, "$\\pm$");
			at += 2;
		} else if (!strncmp(at, "--", 2)) {
			strbuf_puts(out, "-{}"); /* two would become a dash */
		} else if (i < count) {
			strbuf_puts(out, rows[i].written);
		} else if (!strncmp(at, "\xEF\xBF\xBD", 3)) {
			strbuf_putc(out, '?');
			at += 2;
		} else {
			strbuf_putc(out, *at);
		}
	}
	free(line);
}

/* Whether a spreadsheet would compute the text instead of displaying it, even after a leading
 * space. A leading tab or carriage return counts too, because some programs treat it as the end of
 * a field. */
static bool is_formula(const char *text)
{
	const char *first = text + strspn(text, " \t\r\n");
	char *end;
	if (*text == '\t' || *text == '\r')
		return true;
	if (!*first || !strchr("=+-@", *first))
		return false;
	strtod(first, &end);
	return end == first || *end; /* a plain number is not a formula */
}

void text_csv(const char *text, struct strbuf *out)
{
	bool formula = is_formula(text);
	if (!formula && !text[strcspn(text, ",\"\r\n")]) {
		strbuf_puts(out, text);
		return;
	}
	strbuf_puts(out, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			strbuf_putc(out, '"');
		strbuf_putc(out, *text);
	}
	strbuf_putc(out, '"');
}
