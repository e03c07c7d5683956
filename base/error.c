#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at `s`, 0 when there is none (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		length = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		length = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return length;
}

/* Turns the text into one printable line. Also replaces malformed UTF-8 (truncation can cause it),
 * because jansson refuses it when the message becomes part of a record. */
static void make_printable(char *text)
{
	unsigned char *s = (unsigned char *)text;

	while (*s) {
		size_t length = utf8_length(s);
		bool c1_control = length == 2 && s[0] == 0xc2 && s[1] < 0xa0;

		if (*s == '\n' || *s == '\t' || *s == '\r') {
			*s++ = ' ';
		} else if (length == 0 || *s < 0x20 || *s == 0x7f) {
			*s++ = '?';
		} else {
			if (c1_control)
				s[0] = s[1] = '?';
			s += length;
		}
	}
	while (s > (unsigned char *)text && s[-1] == ' ')
		*--s = '\0';
}

enum prony_status error_set(struct error *err, enum prony_status code, const char *format, ...)
{
	assert(code != PRONY_OK);
	if (!err || err->code != PRONY_OK)
		return code;

	va_list arguments;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	make_printable(err->text);
	err->code = code;
	return code;
}

void error_prefix(struct error *err, const char *format, ...)
{
	if (!err || err->code == PRONY_OK)
		return;

	char context[ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(context, sizeof(context), format, arguments);
	va_end(arguments);

	/* The cause matters more than its context, so truncation removes only the end. */
	size_t room = sizeof(err->text) - 1;
	size_t prefix = strlen(context);
	if (prefix > room / 2)
		prefix = room / 2;
	size_t kept = strnlen(err->text, room - prefix - 2);
	memmove(err->text + prefix + 2, err->text, kept);
	memcpy(err->text, context, prefix);
	memcpy(err->text + prefix, ": ", 2);
	err->text[prefix + 2 + kept] = '\0';
	make_printable(err->text);
}

enum prony_status error_errno(struct error *err, enum prony_status code, int errnum,
			      const char *format, ...)
{
	assert(code != PRONY_OK);
	if (!err || err->code != PRONY_OK)
		return code;

	va_list arguments;
	va_start(arguments, format);
	vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);

	/* GNU strerror_r may return a static text instead of filling the buffer. */
	char buffer[128];
	const char *meaning = strerror_r(errnum, buffer, sizeof(buffer));
	size_t length = strlen(err->text);
	snprintf(err->text + length, sizeof(err->text) - length, ": %s%s", meaning,
		 errnum == EFBIG    ? " (ulimit -f limits the size of files)"
		 : errnum == EMFILE ? " (ulimit -n limits the number of open files)"
				    : "");
	make_printable(err->text);
	err->code = code;
	return code;
}

void error_clear(struct error *err)
{
	if (!err)
		return;
	err->code = PRONY_OK;
	err->text[0] = '\0';
}
