#include "datasets/append_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

enum { BUFFER_BYTES = 1 << 20 };

enum prony_status append_file_open(const char *folder, const char *name, int64_t keep,
				   struct append_file *out, struct error *err)
{
	struct append_file file = {.path = path_join(folder, name), .bytes = keep};
	enum prony_status status = PRONY_OK;

	file.fd = open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0664);
	if (file.fd < 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", file.path);
	else if (file_bytes(file.path) < keep)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: it has fewer bytes than the %" PRId64
				   " already written; remove the folder and convert again",
				   file.path, keep);
	else if (ftruncate(file.fd, keep) != 0 || lseek(file.fd, keep, SEEK_SET) != keep)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", file.path);
	file.buffer = memory_alloc(BUFFER_BYTES);
	if (status == PRONY_OK)
		*out = file;
	else
		append_file_close(&file);
	return status;
}

static enum prony_status write_out(struct append_file *file, const uint8_t *bytes, size_t length,
				   struct error *err)
{
	return file_write_all(file->fd, bytes, length)
		       ? PRONY_OK
		       : error_errno(err, PRONY_IO, errno, "cannot write %s", file->path);
}

enum prony_status append_file_write(struct append_file *file, const void *bytes, size_t length,
				    struct error *err)
{
	enum prony_status status = PRONY_OK;

	file->bytes += (int64_t)length;
	if (length > BUFFER_BYTES - file->held) {
		status = write_out(file, file->buffer, file->held, err);
		file->held = 0;
	}
	if (status != PRONY_OK || length > BUFFER_BYTES)
		return status == PRONY_OK ? write_out(file, bytes, length, err) : status;
	memcpy(file->buffer + file->held, bytes, length);
	file->held += length;
	return PRONY_OK;
}

enum prony_status append_file_sync(struct append_file *file, struct error *err)
{
	enum prony_status status = write_out(file, file->buffer, file->held, err);

	file->held = 0;
	if (status == PRONY_OK && fdatasync(file->fd) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", file->path);
	return status;
}

void append_file_close(struct append_file *file)
{
	if (file->path && file->fd >= 0)
		close(file->fd);
	free(file->buffer);
	free(file->path);
	*file = (struct append_file){.fd = -1};
}
