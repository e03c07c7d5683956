#include "datasets/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define REMEDY "convert the data again (prony data convert)"

enum prony_status plain_file_open(const char *path, struct plain_file *out, struct error *err)
{
	struct stat info;
	/* O_NONBLOCK: opening a pipe would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		close(fd);
		return error_set(err, PRONY_BAD_INPUT, "%s: not a regular file", path);
	}
	*out = (struct plain_file){.path = memory_strdup(path), .fd = fd, .bytes = info.st_size};
	return PRONY_OK;
}

void plain_file_close(struct plain_file *file)
{
	if (!file->path)
		return;
	close(file->fd);
	free(file->path);
	*file = (struct plain_file){0};
}

enum prony_status plain_file_read(const struct plain_file *file, int64_t offset, void *out,
				  size_t bytes, const char *what, struct error *err)
{
	ssize_t got = file_read_at(file->fd, offset, out, bytes);

	if (got < 0)
		return error_errno(err, PRONY_IO, errno, "%s: cannot be read", file->path);
	if ((size_t)got < bytes)
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: offset %" PRId64
			": truncated: reading %s needs %zu bytes, but the file ends at %" PRId64
			"; " REMEDY,
			file->path, offset, what, bytes, file->bytes);
	return PRONY_OK;
}

enum prony_status plain_file_broken(const struct plain_file *file, int64_t offset, const char *what,
				    struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT, "%s: offset %" PRId64 ": %s; " REMEDY, file->path,
			 offset, what);
}
