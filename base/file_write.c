/* Writes files atomically, and checks whether an output path can be written. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

bool file_write_all(int fd, const void *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		bytes = (const char *)bytes + written;
		length -= (size_t)written;
	}
	return true;
}

/* The folder that contains the file; the caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? memory_printf("%.*s", slash == path ? 1 : (int)(slash - path), path)
		     : memory_strdup(".");
}

/* Sync the folder too, so that the rename reaches the disk. Some file systems cannot do that;
 * ignore the error. */
static void sync_folder(const char *path)
{
	char *folder = folder_of(path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	free(folder);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

struct file_writer {
	char *path, *temporary; /* temporary NULL: the file itself is written to */
	int fd;
};

static void writer_free(struct file_writer *writer)
{
	free(writer->temporary);
	free(writer->path);
	free(writer);
}

/* errno still holds the first failure. */
static enum prony_status writer_fail(struct file_writer *writer, struct error *err)
{
	enum prony_status status =
		error_errno(err, PRONY_IO, errno, "cannot write %s", writer->path);
	if (writer->fd >= 0)
		close(writer->fd);
	if (writer->fd >= 0 && writer->temporary)
		unlink(writer->temporary);
	writer_free(writer);
	return status;
}

/* Creates a temporary file beside the target, with the target's permissions. A link's target, a
 * device or a pipe is opened directly. */
enum prony_status file_writer_open(const char *path, struct file_writer **out, struct error *err)
{
	static atomic_uint serial;
	struct file_writer *writer = memory_alloc(sizeof *writer);
	struct stat old;
	bool there = lstat(path, &old) == 0;

	*writer = (struct file_writer){.path = memory_strdup(path)};
	if (there && !S_ISREG(old.st_mode)) {
		writer->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0664);
	} else {
		writer->temporary = memory_printf("%s.%ld.%u.tmp", path, (long)getpid(),
						  atomic_fetch_add(&serial, 1));
		writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0664);
	}
	if (writer->fd < 0)
		return writer_fail(writer, err);
	if (there && writer->temporary) {
		/* Only root can restore the owner. */
		if (fchown(writer->fd, old.st_uid, old.st_gid) != 0)
			errno = 0;
		if (fchmod(writer->fd, old.st_mode & 0777) != 0)
			return writer_fail(writer, err);
	}
	*out = writer;
	return PRONY_OK;
}

enum prony_status file_writer_add(struct file_writer *writer, const void *bytes, size_t length,
				  struct error *err)
{
	return file_write_all(writer->fd, bytes, length) ? PRONY_OK : writer_fail(writer, err);
}

enum prony_status file_writer_finish(struct file_writer *writer, struct error *err)
{
	struct stat info;
	bool good =
		fstat(writer->fd, &info) == 0 && (!S_ISREG(info.st_mode) || fsync(writer->fd) == 0);

	if (good) {
		good = close(writer->fd) == 0;
		writer->fd = -1;
	}
	if (good && writer->temporary)
		good = rename(writer->temporary, writer->path) == 0;
	if (!good) {
		int errnum = errno;
		if (writer->temporary)
			unlink(writer->temporary);
		errno = errnum;
		return writer_fail(writer, err);
	}
	if (writer->temporary)
		sync_folder(writer->path);
	writer_free(writer);
	return PRONY_OK;
}

void file_writer_abandon(struct file_writer *writer)
{
	if (!writer)
		return;
	close(writer->fd);
	if (writer->temporary)
		unlink(writer->temporary);
	writer_free(writer);
}

enum prony_status file_write_atomic(const char *path, const void *bytes, size_t length,
				    struct error *err)
{
	struct file_writer *writer = NULL;
	enum prony_status status = file_writer_open(path, &writer, err);

	if (status == PRONY_OK)
		status = file_writer_add(writer, bytes, length, err);
	return status == PRONY_OK ? file_writer_finish(writer, err) : status;
}

/* Checks whether a new file can be created in the folder of `path`. */
static enum prony_status check_folder(const char *path, struct error *err)
{
	enum prony_status status = PRONY_OK;
	char *folder = folder_of(path);
	struct stat info;

	if (stat(folder, &info) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s: its folder %s", path,
				     folder);
	else if (!S_ISDIR(info.st_mode))
		status = error_set(err, PRONY_IO, "cannot write %s: %s is not a folder", path,
				   folder);
	else if (access(folder, W_OK | X_OK) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s: its folder %s", path,
				     folder);
	free(folder);
	return status;
}

/* Checks a dangling link: its target can be created. */
static enum prony_status check_link(const char *path, struct error *err)
{
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof target - 1);

	if (length < 0)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	target[length] = '\0';
	char *folder = folder_of(path);
	char *whole = *target == '/' ? memory_strdup(target) : path_join(folder, target);
	enum prony_status status = file_check_output(whole, err);
	free(folder);
	free(whole);
	return status;
}

enum prony_status file_check_output(const char *path, struct error *err)
{
	struct stat info, target;
	bool there = lstat(path, &info) == 0;

	if (!*path)
		return error_set(err, PRONY_BAD_INPUT, "cannot write a file with an empty name");
	if (!there && errno != ENOENT)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	if (path[strlen(path) - 1] == '/' || (there && S_ISDIR(info.st_mode)))
		return error_set(err, PRONY_IO, "cannot write %s: it is a folder", path);
	if (!there || S_ISREG(info.st_mode)) {
		if (there && access(path, W_OK) != 0)
			return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
		return check_folder(path, err);
	}
	/* stat reports a different error for a loop of links. */
	if (S_ISLNK(info.st_mode) && stat(path, &target) != 0 && errno == ENOENT)
		return check_link(path, err);
	if (S_ISLNK(info.st_mode) && stat(path, &target) == 0 && S_ISDIR(target.st_mode))
		return error_set(err, PRONY_IO, "cannot write %s: it is a link to a folder", path);
	if (S_ISSOCK(info.st_mode))
		return error_set(err, PRONY_IO, "cannot write %s: it is a socket", path);
	if (access(path, W_OK) != 0)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	return PRONY_OK;
}

bool file_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
