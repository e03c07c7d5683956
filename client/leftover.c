#include "client/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define PREFIX "prony-run-"
/* How often a new folder may be taken away by another prony before it is locked. */
#define TRIES 8

/* Locks a new folder. False if another prony's sweep removed it first, or is about to. */
static bool lock_new(const char *folder, int *lock_fd)
{
	struct stat mine, there;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	bool held = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	if (held && fstat(fd, &mine) == 0 && lstat(folder, &there) == 0 &&
	    mine.st_ino == there.st_ino) {
		*lock_fd = fd;
		return true;
	}
	close(fd);
	return false;
}

enum prony_status leftover_claim(char **folder, int *lock_fd, struct error *err)
{
	*lock_fd = -1;
	for (int i = 0; i < TRIES; i++) {
		enum prony_status status = directory_make_temporary(PREFIX, folder, err);
		if (status != PRONY_OK || lock_new(*folder, lock_fd))
			return status;
		free(*folder);
		*folder = NULL;
	}
	return error_set(
		err, PRONY_IO,
		"another program removes the new folders of prony below $TMPDIR (or /tmp)");
}

static bool is_ours(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 && info.st_uid == geteuid();
}

/* Removes a folder if its lock can be taken. If it cannot, for whatever reason, the folder counts
 * as in use. */
static void sweep(const char *parent, const char *name)
{
	char *path = path_join(parent, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_ours(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0)
		directory_remove(path, NULL);
	if (fd >= 0)
		close(fd);
	free(path);
}

void leftover_sweep(void)
{
	const char *named = getenv("TMPDIR"), *parent = named && *named ? named : "/tmp";
	DIR *folder = opendir(parent);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)))
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
			sweep(parent, entry->d_name);
	if (folder)
		closedir(folder);
}
