/* Writing files whole, and what stands at an output's name that is none. */
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

static bool write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		bytes += written;
		length -= (size_t)written;
	}
	return true;
}

/* The folder in which a name stands; caller frees. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? memory_printf("%.*s", slash == path ? 1 : (int)(slash - path), path)
		     : memory_strdup(".");
}

/* The rename itself reaches the disk with the directory. Some file systems cannot: no error. */
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

/* Closes; the first failure's errno stays. */
static bool finish(int fd, bool good)
{
	int errnum = errno;

	if (close(fd) != 0 && good)
		return false;
	errno = errnum;
	return good;
}

/* A temporary neighbour takes the name when it is whole, with the rights of what had it. */
static enum prony_status replace(const char *path, const struct stat *old, const void *bytes,
				 size_t length, struct error *err)
{
	static atomic_uint serial;
	char *temporary =
		memory_printf("%s.%ld.%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
	enum prony_status status = PRONY_OK;
	bool renamed = false;
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0664);

	if (fd >= 0) {
		/* Only root may give a file back to its owner. */
		if (old && fchown(fd, old->st_uid, old->st_gid) != 0)
			errno = 0;
		bool good = (!old || fchmod(fd, old->st_mode & 0777) == 0) &&
			    write_all(fd, bytes, length) && fsync(fd) == 0;
		renamed = finish(fd, good) && rename(temporary, path) == 0;
	}
	if (!renamed) {
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", path);
		if (fd >= 0)
			unlink(temporary);
	} else {
		sync_folder(path);
	}
	free(temporary);
	return status;
}

/* What a link leads to, a device, a pipe: they stay what they are. */
static enum prony_status write_through(const char *path, const void *bytes, size_t length,
				       struct error *err)
{
	struct stat info;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0664);

	if (fd < 0)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	bool good = write_all(fd, bytes, length) && fstat(fd, &info) == 0 &&
		    (!S_ISREG(info.st_mode) || fsync(fd) == 0);
	if (!finish(fd, good))
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	return PRONY_OK;
}

enum prony_status file_write_atomic(const char *path, const void *bytes, size_t length,
				    struct error *err)
{
	struct stat info;

	if (lstat(path, &info) != 0)
		return replace(path, NULL, bytes, length, err);
	if (S_ISREG(info.st_mode))
		return replace(path, &info, bytes, length, err);
	return write_through(path, bytes, length, err);
}

/* Whether a new name can be put into the folder of `path`. */
static enum prony_status check_folder(const char *path, struct error *err)
{
	enum prony_status status = PRONY_OK;
	char *folder = folder_of(path);
	struct stat info;

	if (stat(folder, &info) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s: its folder %s", path,
				     folder);
	else if (!S_ISDIR(info.st_mode))
		status = error_set(err, PRONY_IO, "cannot write %s: %s is no folder", path, folder);
	else if (access(folder, W_OK | X_OK) != 0)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s: its folder %s", path,
				     folder);
	free(folder);
	return status;
}

/* Where a link leads that leads to nothing yet: what it names can be made there. */
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
		return error_set(err, PRONY_BAD_INPUT, "cannot write a file without a name");
	if (!there && errno != ENOENT)
		return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
	if (path[strlen(path) - 1] == '/' || (there && S_ISDIR(info.st_mode)))
		return error_set(err, PRONY_IO, "cannot write %s: it is a folder", path);
	if (!there || S_ISREG(info.st_mode)) {
		if (there && access(path, W_OK) != 0)
			return error_errno(err, PRONY_IO, errno, "cannot write %s", path);
		return check_folder(path, err);
	}
	/* Links that lead in a circle are another error of stat's. */
	if (S_ISLNK(info.st_mode) && stat(path, &target) != 0 && errno == ENOENT)
		return check_link(path, err);
	if (S_ISLNK(info.st_mode) && stat(path, &target) == 0 && S_ISDIR(target.st_mode))
		return error_set(err, PRONY_IO, "cannot write %s: it leads to a folder", path);
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
