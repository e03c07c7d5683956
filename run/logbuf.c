#include "run/logbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void logbuf_init(struct logbuf *log)
{
	*log = (struct logbuf){0};
}

void logbuf_release(struct logbuf *log)
{
	free(log->head);
	free(log->tail);
	logbuf_init(log);
}

void logbuf_add(struct logbuf *log, const char *bytes, size_t length)
{
	if (!log->head && !(log->head = malloc(LOGBUF_HALF_BYTES)))
		return;
	size_t room = LOGBUF_HALF_BYTES - log->head_bytes, first = length < room ? length : room;
	memcpy(log->head + log->head_bytes, bytes, first);
	log->head_bytes += first;
	bytes += first;
	length -= first;
	if (!length || (!log->tail && !(log->tail = malloc(LOGBUF_HALF_BYTES))))
		return;
	while (length) {
		size_t at = (size_t)(log->tail_total % LOGBUF_HALF_BYTES);
		size_t part = length < LOGBUF_HALF_BYTES - at ? length : LOGBUF_HALF_BYTES - at;
		memcpy(log->tail + at, bytes, part);
		log->tail_total += part;
		bytes += part;
		length -= part;
	}
}

char *logbuf_text(const struct logbuf *log)
{
	size_t kept = log->tail_total < LOGBUF_HALF_BYTES ? (size_t)log->tail_total : LOGBUF_HALF_BYTES;
	char *text = malloc(log->head_bytes + kept + 96), *out = text;
	if (!text)
		return NULL;
	if (log->head_bytes)
		memcpy(out, log->head, log->head_bytes);
	out += log->head_bytes;
	if (log->tail_total > kept)
		out += snprintf(out, 96, "\n[... %llu bytes left out ...]\n", log->tail_total - kept);
	if (kept) {
		size_t start = log->tail_total > kept ? (size_t)(log->tail_total % LOGBUF_HALF_BYTES) : 0;
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
