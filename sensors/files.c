#include "sensors/files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t file_reread(int fd, char *buffer, size_t bytes)
{
	ssize_t got = fd < 0 ? -1 : pread(fd, buffer, bytes - 1, 0);

	buffer[got > 0 ? got : 0] = '\0';
	return got;
}

bool file_opens(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int64_t number_at(const char *text)
{
	char *end;
	long long value = strtoll(text, &end, 10);

	return end == text || value < 0 ? -1 : value;
}

int64_t file_number(int fd)
{
	char buffer[32];

	return file_reread(fd, buffer, sizeof buffer) <= 0 ? -1 : number_at(buffer);
}

int64_t text_number(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) || !strchr(": ", line[length]) || !line[length])
			continue;
		return number_at(line + length + 1);
	}
	return -1;
}
