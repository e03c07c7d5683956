/* The worker's channel: lines of JSON in and out, each at most PROTOCOL_LINE_BYTES_MAX. */
#ifndef PRONY_WORKER_CHANNEL_H
#define PRONY_WORKER_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct channel {
	int request_fd, reply_fd; /* borrowed */
	char *buffer;		  /* owned, PROTOCOL_LINE_BYTES_MAX bytes */
	size_t start, end;	  /* the bytes received and not yet returned */
};

void channel_init(struct channel *channel, int request_fd, int reply_fd);
void channel_release(struct channel *channel);

/* Waits for the next line. *line (borrowed until the next call, not terminated) excludes the
 * newline. It is NULL at the end of the requests; an unfinished line there is dropped.
 * PRONY_PROTOCOL: a line was too long; it has been skipped, and the channel can be used further.
 * PRONY_IO: the channel can no longer be used. */
enum prony_status channel_read(struct channel *channel, const char **line, size_t *length,
			       struct error *err);

/* Sends one object (borrowed). */
enum prony_status channel_write(struct channel *channel, const json_t *reply, struct error *err);

#endif
