/* The log of a worker: the first and the last half MiB of what it printed. */
#ifndef PRONY_CLIENT_LOG_BUFFER_H
#define PRONY_CLIENT_LOG_BUFFER_H

#include <stddef.h>

#define LOG_BUFFER_HALF_BYTES ((size_t)512 * 1024)

struct log_buffer {
	char *head, *tail; /* each LOG_BUFFER_HALF_BYTES, made when needed */
	size_t head_bytes;
	unsigned long long tail_total; /* all bytes that ever went to the tail */
};

void log_buffer_init(struct log_buffer *log);
void log_buffer_release(struct log_buffer *log);
/* Bytes that no memory can be had for are dropped: a log is never worth a result. */
void log_buffer_add(struct log_buffer *log, const char *bytes, size_t length);
/* One terminated text, with a line that counts what was left out; NUL bytes become '?'. Caller
 * frees; NULL only without memory. */
char *log_buffer_text(const struct log_buffer *log);

#endif
