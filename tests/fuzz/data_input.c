#include "tests/fuzz/data_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[64];

const char *input_file(const uint8_t *bytes, size_t length)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("input", 0);
	if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, length, 0) != (ssize_t)length)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

bool input_was_read(enum prony_status status, const struct error *err)
{
	if (status == PRONY_OK)
		return true;
	if (status != PRONY_BAD_INPUT || err->code != status ||
	    strncmp(err->text, path, strlen(path)) != 0 || err->text[strlen(path)] != ':' ||
	    strchr(err->text, '\n') != NULL)
		abort();
	return false;
}
