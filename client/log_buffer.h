/* The log of a worker: the first and the last half MiB of its output. */
#ifndef PRONY_CLIENT_LOG_BUFFER_H
#define PRONY_CLIENT_LOG_BUFFER_H

#include <stddef.h>

#define LOG_BUFFER_HALF_BYTES ((size_t)512 * 1024)

struct log_buffer {
	char *head, *tail; /* each LOG_BUFFER_HALF_BYTES, allocated when needed */
	size_t head_bytes;
	unsigned long long tail_total; /* all bytes ever added to the tail */
};

void log_buffer_init(struct log_buffer *log);
void log_buffer_release(struct log_buffer *log);
/* Adds bytes. They are dropped if there is no memory: a missing log must not fail a result. */
void log_buffer_add(struct log_buffer *log, const char *bytes, size_t length);
/* Returns one terminated text, with a line that counts the bytes left out; NUL bytes become '?'.
 * The caller frees it; NULL only without memory. */
char *log_buffer_text(const struct log_buffer *log);

#endif
