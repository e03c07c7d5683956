#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Another process may remove the file between the check and its creation. */
enum { TRIES = 100 };

/* Do not wait for a pipe's writer, and do not follow a link to somebody's file. */
#define FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* Try without O_CREAT first: fs.protected_regular forbids O_CREAT on another user's file. */
static int open_or_make(const char *path, mode_t mode)
{
	for (int i = 0; i < TRIES; i++) {
		int fd = open(path, O_RDWR | FLAGS);

		/* Reading is enough to lock a file of another user. */
		if (fd < 0 && errno != ENOENT)
			fd = open(path, O_RDONLY | FLAGS);
		if (fd >= 0 || errno != ENOENT)
			return fd;
		fd = open(path, O_RDWR | FLAGS | O_CREAT | O_EXCL, mode);
		/* The umask removed bits; the file is ours, so set the mode explicitly. */
		if (fd >= 0)
			fchmod(fd, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static const char *what_is_wrong(const struct stat *info)
{
	if (S_ISREG(info->st_mode))
		return info->st_nlink > 1 ? "has several names (hard links)" : NULL;
	return S_ISFIFO(info->st_mode)	? "is a pipe"
	       : S_ISDIR(info->st_mode) ? "is a directory"
					: "is a device";
}

enum prony_status lock_file_open(const char *path, mode_t mode, int *fd, struct error *err)
{
	struct stat info;
	int lock = open_or_make(path, mode);

	if (lock < 0 && errno == ELOOP)
		return error_set(err, PRONY_BAD_INPUT, "the lock %s is a link; remove it", path);
	if (lock < 0 || fstat(lock, &info) != 0) {
		int errnum = errno;

		if (lock >= 0)
			close(lock);
		return error_errno(err, PRONY_IO, errnum, "cannot open the lock %s", path);
	}
	if (what_is_wrong(&info)) {
		close(lock);
		return error_set(err, PRONY_BAD_INPUT, "the lock %s %s; remove it", path,
				 what_is_wrong(&info));
	}
	*fd = lock;
	return PRONY_OK;
}

bool lock_file_stands(const char *path, int fd)
{
	struct stat open_one, named;

	return fstat(fd, &open_one) == 0 && lstat(path, &named) == 0 &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}
