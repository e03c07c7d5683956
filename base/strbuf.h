/* A growing string with a maximum length. */
#ifndef PRONY_BASE_STRBUF_H
#define PRONY_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct strbuf {
	char *text; /* always terminated once something was added; NULL before */
	size_t length, capacity, limit_bytes;
	bool truncated; /* the limit was reached and text was lost */
};

/* limit_bytes 0: 64 MiB. */
void strbuf_init(struct strbuf *buf, size_t limit_bytes);
void strbuf_release(struct strbuf *buf);
void strbuf_clear(struct strbuf *buf);
void strbuf_add(struct strbuf *buf, const char *bytes, size_t length);
void strbuf_puts(struct strbuf *buf, const char *text);
void strbuf_putc(struct strbuf *buf, char c);
void strbuf_printf(struct strbuf *buf, const char *format, ...) PRONY_PRINTF(2, 3);
void strbuf_vprintf(struct strbuf *buf, const char *format, va_list arguments) PRONY_PRINTF(2, 0);
/* Two significant digits, without an exponent for values from 0.0001 up: 0.13, 1.3, 134567. */
void strbuf_two_digits(struct strbuf *buf, double value);
/* The text ("" when empty), borrowed until the next change. */
const char *strbuf_text(const struct strbuf *buf);
/* Hands the text over to the caller, who frees it; the buffer is then empty. Never NULL. */
char *strbuf_take(struct strbuf *buf);

#endif
