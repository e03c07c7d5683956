#include "worker/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "samples/protocol.h"

void channel_init(struct channel *channel, int request_fd, int reply_fd)
{
	*channel = (struct channel){
		.request_fd = request_fd,
		.reply_fd = reply_fd,
		.buffer = memory_alloc(PROTOCOL_LINE_BYTES_MAX),
	};
}

void channel_release(struct channel *channel)
{
	if (!channel)
		return;
	free(channel->buffer);
	*channel = (struct channel){.request_fd = -1, .reply_fd = -1};
}

/* Appends the bytes that arrived; *count is 0 at the end of the requests. */
static enum prony_status receive(struct channel *channel, size_t *count, struct error *err)
{
	ssize_t got;

	do {
		got = read(channel->request_fd, channel->buffer + channel->end,
			   PROTOCOL_LINE_BYTES_MAX - channel->end);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_errno(err, PRONY_IO, errno, "cannot read requests");
	*count = (size_t)got;
	channel->end += *count;
	return PRONY_OK;
}

enum prony_status channel_read(struct channel *channel, const char **line, size_t *length,
			       struct error *err)
{
	size_t scanned = 0; /* bytes after start that hold no newline */
	bool skipping = false;

	for (;;) {
		size_t unread = channel->end - channel->start;
		char *begin = channel->buffer + channel->start;
		char *newline =
			unread > scanned ? memchr(begin + scanned, '\n', unread - scanned) : NULL;

		if (newline) {
			channel->start = (size_t)(newline - channel->buffer) + 1;
			if (skipping)
				return error_set(err, PRONY_PROTOCOL,
						 "a request is longer than %d bytes",
						 PROTOCOL_LINE_BYTES_MAX);
			*line = begin;
			*length = (size_t)(newline - begin);
			return PRONY_OK;
		}
		scanned = unread;
		memmove(channel->buffer, begin, unread);
		channel->start = 0;
		channel->end = unread;
		if (channel->end == PROTOCOL_LINE_BYTES_MAX) {
			skipping = true;
			channel->end = scanned = 0;
		}
		size_t count = 0;
		enum prony_status status = receive(channel, &count, err);
		if (status != PRONY_OK)
			return status;
		if (count == 0) {
			*line = NULL;
			*length = 0;
			return PRONY_OK;
		}
	}
}

static enum prony_status send_all(int fd, const char *bytes, size_t length, struct error *err)
{
	while (length > 0) {
		ssize_t sent = write(fd, bytes, length);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return error_errno(err, PRONY_IO, errno, "cannot write a reply");
		bytes += sent;
		length -= (size_t)sent;
	}
	return PRONY_OK;
}

enum prony_status channel_write(struct channel *channel, const json_t *reply, struct error *err)
{
	char *text = json_dumps(reply, JSON_COMPACT);
	enum prony_status status;

	if (!text)
		return error_set(err, PRONY_INTERNAL, "a reply cannot be written as JSON");
	size_t length = strlen(text);
	text[length] = '\n'; /* one write per line, so that nothing can come between */
	status = send_all(channel->reply_fd, text, length + 1, err);
	free(text);
	return status;
}
