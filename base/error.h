/* An error: a status and a message good enough to print, in a fixed buffer. The first error wins.
 */
#ifndef PRONY_BASE_ERROR_H
#define PRONY_BASE_ERROR_H

#include "base/status.h"

#define ERROR_TEXT_BYTES 1024

struct error {
	enum prony_status code;	     /* PRONY_OK: no error yet */
	char text[ERROR_TEXT_BYTES]; /* one line, no trailing full stop or newline */
};

#define ERROR_INIT                                                                                 \
	{                                                                                          \
		.code = PRONY_OK                                                                   \
	}

#if defined(__GNUC__)
#define PRONY_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define PRONY_PRINTF(f, a)
#endif

/* Records an error unless `err` already holds one, and returns `code` in any case, so that `return
 * error_set(err, PRONY_BAD_INPUT, "...")` reads well. `err` may be NULL. Control characters in the
 * text are replaced, because parts of it often come from files. */
enum prony_status error_set(struct error *err, enum prony_status code, const char *format, ...)
	PRONY_PRINTF(3, 4);

/* Puts "context: " before the text of an error that is set; no effect otherwise. */
void error_prefix(struct error *err, const char *format, ...) PRONY_PRINTF(2, 3);

/* Like error_set, with the meaning of `errnum` (an errno value) appended. */
enum prony_status error_errno(struct error *err, enum prony_status code, int errnum,
			      const char *format, ...) PRONY_PRINTF(4, 5);

/* Forgets the error. Use it before an expected fallback. */
void error_clear(struct error *err);

#endif
