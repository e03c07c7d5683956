#include "client/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"

#define PREFIX "prony-run-"
/* Younger folders are kept: a folder is not yet locked just after it is made. */
#define YOUNG_S 120

enum prony_status leftover_claim(char **folder, int *lock_fd, struct error *err)
{
	enum prony_status status = directory_make_temporary(PREFIX, folder, err);
	if (status != PRONY_OK)
		return status;
	*lock_fd = open(*folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*lock_fd >= 0)
		flock(*lock_fd, LOCK_EX | LOCK_NB);
	return PRONY_OK;
}

static bool is_ours_and_old(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
	       time(NULL) - info.st_mtime > YOUNG_S;
}

/* Removes a folder if its lock can be taken. If it cannot, for whatever reason, the folder counts
 * as in use. */
static void sweep(const char *parent, const char *name)
{
	char *path = path_join(parent, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && is_ours_and_old(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0)
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
