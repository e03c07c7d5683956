#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define READ_FIRST_BYTES ((size_t)16 * 1024)
#define SELF_MAX_BYTES ((size_t)64 * 1024)

/* A mistyped name is bad input; a failing device is an I/O error. */
static enum prony_status read_status(int errnum)
{
	switch (errnum) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EACCES:
	case EPERM:
	case ELOOP:
	case ENAMETOOLONG:
		return PRONY_BAD_INPUT;
	default:
		return PRONY_IO;
	}
}

/* Makes room for at least one byte and the terminator; the size is bounded by limit_bytes. */
static bool grow(char **text, size_t *capacity, size_t length, size_t limit_bytes)
{
	if (length + 1 < *capacity)
		return true;
	size_t larger = *capacity > limit_bytes / 2 ? limit_bytes + 2 : *capacity * 2;
	char *moved = larger <= MEMORY_SMALL_BYTES ? memory_realloc(*text, larger)
						   : realloc(*text, larger);
	if (!moved)
		return false;
	*text = moved;
	*capacity = larger;
	return true;
}

/* Reads `fd` to its end. Does not rely on a size, because /proc and pipes report none. */
static enum prony_status read_all(int fd, const char *path, size_t expected, size_t limit_bytes,
				  char **out, size_t *length, struct error *err)
{
	size_t capacity = (expected > READ_FIRST_BYTES ? expected : READ_FIRST_BYTES) + 2;
	size_t used = 0;
	/* A caller that reads a small file treats an unreadable file as absent. Do not let lack of
	 * memory look like that. */
	char *text = capacity <= MEMORY_SMALL_BYTES ? memory_alloc(capacity) : malloc(capacity);

	if (!text)
		return error_set(err, PRONY_NOMEM, "%s: not enough memory for %zu bytes", path,
				 capacity);
	for (;;) {
		if (!grow(&text, &capacity, used, limit_bytes)) {
			free(text);
			return error_set(err, PRONY_NOMEM, "%s: not enough memory to read it",
					 path);
		}
		ssize_t got = read(fd, text + used, capacity - 1 - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int errnum = errno;
			free(text);
			return error_errno(err, read_status(errnum), errnum, "cannot read %s",
					   path);
		}
		if (got == 0)
			break;
		used += (size_t)got;
		if (used > limit_bytes) {
			free(text);
			return error_set(err, PRONY_BAD_INPUT,
					 "%s is larger than the limit of %zu bytes", path,
					 limit_bytes);
		}
	}
	text[used] = '\0';
	*out = text;
	*length = used;
	return PRONY_OK;
}

ssize_t file_read_at(int fd, int64_t offset, void *out, size_t length)
{
	size_t got = 0;

	while (got < length) {
		ssize_t piece = pread(fd, (char *)out + got, length - got, offset + (off_t)got);

		if (piece < 0 && errno == EINTR)
			continue;
		if (piece < 0)
			return -1;
		if (piece == 0)
			break;
		got += (size_t)piece;
	}
	return (ssize_t)got;
}

enum prony_status file_read(const char *path, size_t limit_bytes, char **out, size_t *length,
			    struct error *err)
{
	struct stat info;
	enum prony_status status;
	size_t bounded = limit_bytes < SIZE_MAX / 4 ? limit_bytes : SIZE_MAX / 4;
	/* O_NONBLOCK: opening a pipe without a writer would block for ever. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &info) != 0) {
		status = error_errno(err, read_status(errno), errno, "cannot open %s", path);
	} else if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
		status = error_set(err, PRONY_BAD_INPUT, "%s is a %s, not a file", path,
				   S_ISFIFO(info.st_mode)   ? "pipe"
				   : S_ISSOCK(info.st_mode) ? "socket"
							    : "device");
	} else if (S_ISDIR(info.st_mode)) {
		status = error_set(err, PRONY_BAD_INPUT, "%s is a directory, not a file", path);
	} else if ((uintmax_t)info.st_size > bounded) {
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s has %jd bytes, more than the limit of %zu bytes", path,
				   (intmax_t)info.st_size, bounded);
	} else {
		status = read_all(fd, path, (size_t)info.st_size, bounded, out, length, err);
	}
	if (fd >= 0)
		close(fd);
	return status;
}

struct file_stamp file_stamp(const char *path)
{
	struct stat about;

	if (stat(path, &about) != 0)
		return (struct file_stamp){0};
	return (struct file_stamp){.device = (int64_t)about.st_dev,
				   .inode = (int64_t)about.st_ino,
				   .bytes = about.st_size,
				   .changed_ns = (int64_t)about.st_mtim.tv_sec * 1000000000 +
						 about.st_mtim.tv_nsec};
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->changed_ns == b->changed_ns;
}

int64_t file_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
}

bool file_exists(const char *path)
{
	return path && access(path, F_OK) == 0;
}

bool file_has_bytes(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
}

bool file_is_directory(const char *path)
{
	struct stat info;

	return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum prony_status directory_make(const char *path, struct error *err)
{
	if (*path == '\0')
		return error_set(err, PRONY_BAD_INPUT,
				 "cannot make a directory with an empty name");

	char *partial = memory_strdup(path);
	enum prony_status status = PRONY_OK;
	for (char *c = partial + 1; status == PRONY_OK; c++) {
		if (*c != '/' && *c != '\0')
			continue;
		char kept = *c;
		*c = '\0';
		/* Check for more than EEXIST: the folder may exist below a parent that is read-only
		 * or forbidden. */
		/* Never world-writable, whatever the umask: files in there are executed. */
		if (mkdir(partial, 0775) != 0) {
			int errnum = errno;
			/* "File exists" alone would not say that it is the wrong kind of file. */
			if (!file_is_directory(partial))
				status = error_errno(err, PRONY_IO,
						     errnum == EEXIST ? ENOTDIR : errnum,
						     "cannot make the directory %s", partial);
		}
		*c = kept;
		if (kept == '\0')
			break;
	}
	free(partial);
	return status;
}

/* Removes everything in the directory open at `fd`, which this closes. 0 or an errno value. */
static int remove_contents(int fd)
{
	DIR *directory = fdopendir(fd);
	int errnum = 0;

	if (!directory) {
		errnum = errno;
		close(fd);
		return errnum;
	}
	while (errnum == 0) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		if (!entry) {
			errnum = errno;
			break;
		}
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno != EISDIR && errno != EPERM) {
			errnum = errno;
			break;
		}
		int child = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		errnum = child < 0 ? errno : remove_contents(child);
		if (errnum == 0 && unlinkat(fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
			errnum = errno;
	}
	closedir(directory);
	return errnum;
}

enum prony_status directory_remove(const char *path, struct error *err)
{
	static const char *const refused[] = {"", "/", ".", ".."};
	int errnum = 0;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (strcmp(path, refused[i]) == 0)
			return error_set(err, PRONY_BAD_INPUT, "refusing to remove '%s'", path);

	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		errnum = remove_contents(fd);
		if (errnum == 0 && rmdir(path) != 0)
			errnum = errno;
	} else if (errno == ENOTDIR || errno == ELOOP) {
		errnum = unlink(path) == 0 ? 0 : errno;
	} else {
		errnum = errno;
	}
	if (errnum != 0 && errnum != ENOENT)
		return error_errno(err, PRONY_IO, errnum, "cannot remove %s", path);
	return PRONY_OK;
}

enum prony_status directory_make_temporary(const char *prefix, char **out, struct error *err)
{
	const char *parent = getenv("TMPDIR");

	if (!parent || !*parent)
		parent = "/tmp";
	char *path = memory_printf("%s/%sXXXXXX", parent, prefix);
	if (!mkdtemp(path)) {
		enum prony_status status = error_errno(
			err, PRONY_IO, errno, "cannot make a temporary directory below %s", parent);
		free(path);
		return status;
	}
	*out = path;
	return PRONY_OK;
}

char *path_join(const char *a, const char *b)
{
	size_t length = strlen(a);

	if (length == 0)
		return memory_strdup(b);
	while (*b == '/')
		b++;
	return memory_printf("%s%s%s", a, a[length - 1] == '/' ? "" : "/", b);
}

/* XDG Base Directory Specification: a relative path in the variable is to be ignored. */
static char *xdg_home(const char *variable, const char *otherwise)
{
	const char *named = getenv(variable);

	if (named && named[0] == '/')
		return path_join(named, "prony");

	const char *home = getenv("HOME");
	if (!home || !*home) {
		errno = 0;
		const struct passwd *user = getpwuid(getuid());
		if (!user)
			memory_check(errno);
		home = user && user->pw_dir ? user->pw_dir : ".";
	}
	return path_join(home, otherwise);
}

char *path_data_home(void)
{
	return xdg_home("XDG_DATA_HOME", ".local/share/prony");
}

/* Adds a folder that is not there already. */
static size_t add_shared(char *path, char *homes[PATH_DATA_HOMES_MAX], size_t count)
{
	bool wanted = count < PATH_DATA_HOMES_MAX;

	for (size_t i = 0; i < count && wanted; i++)
		wanted = strcmp(path, homes[i]) != 0;
	if (wanted)
		homes[count++] = path;
	else
		free(path);
	return count;
}

size_t path_data_homes(char *homes[PATH_DATA_HOMES_MAX])
{
	const char *shared = getenv("PRONY_SHARED"), *dirs = getenv("XDG_DATA_DIRS");
	size_t count = 0;

	homes[count++] = path_data_home();
	if (shared && *shared) {
		char *real = realpath(shared, NULL);
		return add_shared(real ? real : memory_strdup(shared), homes, count);
	}
	dirs = dirs && *dirs ? dirs : "/usr/local/share:/usr/share";
	for (size_t length; *dirs; dirs += length + (dirs[length] == ':')) {
		length = strcspn(dirs, ":");
		char *dir = memory_printf("%.*s", (int)length, dirs),
		     *path = path_join(dir, "prony");
		/* XDG Base Directory Specification: ignore a relative path. One that may not be
		 * searched counts, because whoever looks into it says so. */
		if (path[0] == '/' && (file_exists(path) || errno == EACCES))
			count = add_shared(path, homes, count);
		else
			free(path);
		free(dir);
	}
	return count;
}

char *path_config_home(void)
{
	return xdg_home("XDG_CONFIG_HOME", ".config/prony");
}

char *path_cache_home(void)
{
	return xdg_home("XDG_CACHE_HOME", ".cache/prony");
}

char *path_self(void)
{
	size_t capacity = 256;

	while (capacity <= SELF_MAX_BYTES) {
		char *path = memory_alloc(capacity);
		ssize_t length = readlink("/proc/self/exe", path, capacity);
		if (length < 0) {
			free(path);
			break;
		}
		if ((size_t)length < capacity) {
			/* The kernel appends this when the program file was replaced, for example
			 * by a build during a run. Use the file that is there now. */
			const char gone[] = " (deleted)";
			const size_t tail = sizeof gone - 1;

			path[length] = '\0';
			if ((size_t)length > tail && !strcmp(path + length - tail, gone))
				path[(size_t)length - tail] = '\0';
			return path;
		}
		free(path);
		capacity *= 2;
	}
	return memory_strdup(program_invocation_name);
}
