/* The log of a worker: the first and the last half MiB of what it printed. */
#ifndef PRONY_RUN_LOGBUF_H
#define PRONY_RUN_LOGBUF_H

#include <stddef.h>

#define LOGBUF_HALF_BYTES ((size_t)512 * 1024)

struct logbuf {
	char *head, *tail;          /* each LOGBUF_HALF_BYTES, made when needed */
	size_t head_bytes;
	unsigned long long tail_total; /* all bytes that ever went to the tail */
};

void logbuf_init(struct logbuf *log);
void logbuf_release(struct logbuf *log);
/* Bytes that no memory can be had for are dropped: a log is never worth a result. */
void logbuf_add(struct logbuf *log, const char *bytes, size_t length);
/* One terminated text, with a line that counts what was left out; NUL bytes become '?'. Caller frees;
 * NULL only without memory. */
char *logbuf_text(const struct logbuf *log);

#endif
