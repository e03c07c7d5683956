#include "base/strbuf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define STRBUF_DEFAULT_LIMIT ((size_t)64 * 1024 * 1024)
#define STRBUF_FIRST_CAPACITY 64

void strbuf_init(struct strbuf *buf, size_t limit_bytes)
{
	*buf = (struct strbuf){.limit_bytes = limit_bytes > 0 ? limit_bytes : STRBUF_DEFAULT_LIMIT};
}

void strbuf_release(struct strbuf *buf)
{
	if (!buf)
		return;
	free(buf->text);
	strbuf_init(buf, buf->limit_bytes);
}

void strbuf_clear(struct strbuf *buf)
{
	buf->length = 0;
	buf->truncated = false;
	if (buf->text)
		buf->text[0] = '\0';
}

/* Makes room and returns how many of `more` bytes fit below the limit. */
static size_t make_room(struct strbuf *buf, size_t more)
{
	if (buf->limit_bytes == 0) /* an all-zero struct works too */
		buf->limit_bytes = STRBUF_DEFAULT_LIMIT;
	if (more > buf->limit_bytes - buf->length) {
		more = buf->limit_bytes - buf->length;
		buf->truncated = true;
	}
	size_t needed = buf->length + more + 1;
	if (needed > buf->capacity) {
		size_t capacity = buf->capacity > 0 ? buf->capacity : STRBUF_FIRST_CAPACITY;
		while (capacity < needed)
			capacity = capacity > buf->limit_bytes / 2 ? needed : capacity * 2;
		buf->text = memory_realloc(buf->text, capacity);
		buf->capacity = capacity;
	}
	return more;
}

void strbuf_add(struct strbuf *buf, const char *bytes, size_t length)
{
	size_t fitting = make_room(buf, length);

	if (fitting > 0)
		memcpy(buf->text + buf->length, bytes, fitting);
	buf->length += fitting;
	buf->text[buf->length] = '\0';
}

void strbuf_puts(struct strbuf *buf, const char *text)
{
	strbuf_add(buf, text, strlen(text));
}

void strbuf_putc(struct strbuf *buf, char c)
{
	strbuf_add(buf, &c, 1);
}

void strbuf_vprintf(struct strbuf *buf, const char *format, va_list arguments)
{
	va_list again;

	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	assert(length >= 0);
	size_t fitting = make_room(buf, (size_t)length);
	vsnprintf(buf->text + buf->length, fitting + 1, format, arguments);
	buf->length += fitting;
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	strbuf_vprintf(buf, format, arguments);
	va_end(arguments);
}

void strbuf_two_digits(struct strbuf *buf, double value)
{
	/* %g would switch to exponents (1e+02) from here on. */
	strbuf_printf(buf, value >= 99.5 || value <= -99.5 ? "%.0f" : "%.2g", value);
}

const char *strbuf_text(const struct strbuf *buf)
{
	return buf->text ? buf->text : "";
}

char *strbuf_take(struct strbuf *buf)
{
	char *text = buf->text ? buf->text : memory_strdup("");

	buf->text = NULL;
	strbuf_release(buf);
	return text;
}
