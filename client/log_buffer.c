#include "client/log_buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void log_buffer_init(struct log_buffer *log)
{
	*log = (struct log_buffer){0};
}

void log_buffer_release(struct log_buffer *log)
{
	free(log->head);
	free(log->tail);
	log_buffer_init(log);
}

void log_buffer_add(struct log_buffer *log, const char *bytes, size_t length)
{
	if (!log->head && !(log->head = malloc(LOG_BUFFER_HALF_BYTES)))
		return;
	size_t room = LOG_BUFFER_HALF_BYTES - log->head_bytes,
	       first = length < room ? length : room;
	memcpy(log->head + log->head_bytes, bytes, first);
	log->head_bytes += first;
	bytes += first;
	length -= first;
	if (!length || (!log->tail && !(log->tail = malloc(LOG_BUFFER_HALF_BYTES))))
		return;
	while (length) {
		size_t at = (size_t)(log->tail_total % LOG_BUFFER_HALF_BYTES);
		size_t part =
			length < LOG_BUFFER_HALF_BYTES - at ? length : LOG_BUFFER_HALF_BYTES - at;
		memcpy(log->tail + at, bytes, part);
		log->tail_total += part;
		bytes += part;
		length -= part;
	}
}

char *log_buffer_text(const struct log_buffer *log)
{
	size_t kept = log->tail_total < LOG_BUFFER_HALF_BYTES ? (size_t)log->tail_total
							      : LOG_BUFFER_HALF_BYTES;
	char *text = malloc(log->head_bytes + kept + 96), *out = text;
	if (!text)
		return NULL;
	if (log->head_bytes)
		memcpy(out, log->head, log->head_bytes);
	out += log->head_bytes;
	if (log->tail_total > kept)
		out += snprintf(out, 96, "\n[... %llu bytes left out ...]\n",
				log->tail_total - kept);
	if (kept) {
		size_t start = log->tail_total > kept
				       ? (size_t)(log->tail_total % LOG_BUFFER_HALF_BYTES)
				       : 0;
		memcpy(out, log->tail + start, kept - start);
		memcpy(out + (kept - start), log->tail, start);
	}
	out += kept;
	*out = '\0';
	for (char *c = text; c < out; c++)
		if (*c == '\0')
			*c = '?';
	return text;
}
