#include "base/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define HEAD_WORD "prony-cache 1"

void cache_open(const char *name, int64_t limit_bytes, struct cache *out)
{
	char *home = path_cache_home(), *homes[PATH_DATA_HOMES_MAX];
	size_t count = path_data_homes(homes);

	*out = (struct cache){.folder = path_join(home, name), .limit_bytes = limit_bytes};
	/* The first one is the user's own. */
	for (size_t i = 1; i < count; i++) {
		char *cache = path_join(homes[i], "cache");

		out->shared[i - 1] = path_join(cache, name);
		free(cache);
	}
	for (size_t i = 0; i < count; i++)
		free(homes[i]);
	free(home);
}

void cache_close(struct cache *cache)
{
	for (size_t i = 0; i < PATH_DATA_HOMES_MAX; i++)
		free(cache->shared[i]);
	free(cache->folder);
	*cache = (struct cache){.folder = NULL};
}

/* Writes the header of an entry and pads it with 0 bytes. */
static void make_head(const char *key, const char *payload, size_t length,
		      char head[CACHE_HEAD_BYTES])
{
	char sum[DIGEST_HEX_BYTES];

	digest_bytes(payload, length, sum);
	char *text = memory_printf("%s %s %s\n", HEAD_WORD, key, sum);
	memset(head, 0, CACHE_HEAD_BYTES);
	memcpy(head, text, strlen(text));
	free(text);
}

/* Do not trust a file that another user put there. */
static bool is_ours(const char *path)
{
	struct stat about;

	return lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

/* Reads the file of an entry if it is whole. */
static bool read_whole(const char *path, const char *key, int64_t limit_bytes,
		       struct cache_entry *out)
{
	char *file = NULL, head[CACHE_HEAD_BYTES];
	size_t length = 0;

	if (file_read(path, (size_t)limit_bytes, &file, &length, NULL) != PRONY_OK ||
	    length < CACHE_HEAD_BYTES) {
		free(file);
		return false;
	}
	make_head(key, file + CACHE_HEAD_BYTES, length - CACHE_HEAD_BYTES, head);
	if (memcmp(file, head, CACHE_HEAD_BYTES) != 0) {
		free(file);
		return false;
	}
	*out = (struct cache_entry){.file = file,
				    .payload = file + CACHE_HEAD_BYTES,
				    .length = length - CACHE_HEAD_BYTES};
	return true;
}

enum prony_status cache_read(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			     struct cache_entry *out, struct error *err)
{
	bool whole = false;

	if (!cache->folder)
		return error_set(err, PRONY_MISSING, "nothing is kept");
	char *path = path_join(cache->folder, key);
	if (is_ours(path)) {
		whole = read_whole(path, key, cache->limit_bytes, out);
		if (whole)
			utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
		else
			unlink(path);
	}
	free(path);
	for (size_t i = 0; !whole && i < PATH_DATA_HOMES_MAX && cache->shared[i]; i++) {
		path = path_join(cache->shared[i], key);
		whole = read_whole(path, key, cache->limit_bytes, out);
		free(path);
	}
	return whole ? PRONY_OK : error_set(err, PRONY_MISSING, "no whole entry %.16s", key);
}

struct found {
	char *path;
	int64_t bytes;
	struct timespec used;
};

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct found *)a)->used;
	const struct timespec *y = &((const struct found *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Lists the files of the folder, including leftovers of interrupted writes. */
static struct found *list(const char *folder, size_t *count)
{
	errno = 0;
	DIR *stream = opendir(folder);
	memory_check(errno);
	struct found *found = NULL;
	struct stat about;

	*count = 0;
	for (struct dirent *row; stream && (row = readdir(stream));) {
		char *path = path_join(folder, row->d_name);

		if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode)) {
			free(path);
			continue;
		}
		found = memory_realloc(found, (*count + 1) * sizeof(*found));
		found[(*count)++] = (struct found){path, about.st_size, about.st_mtim};
	}
	if (stream)
		closedir(stream);
	return found;
}

static void keep_within(const struct cache *cache, int64_t limit_bytes)
{
	size_t count;
	struct found *found = list(cache->folder, &count);
	int64_t sum = 0;

	if (count > 0)
		qsort(found, count, sizeof(*found), by_use);
	for (size_t i = 0; i < count; i++)
		sum += found[i].bytes;
	for (size_t i = 0; i < count; i++) {
		if (sum > limit_bytes && unlink(found[i].path) == 0)
			sum -= found[i].bytes;
		free(found[i].path);
	}
	free(found);
}

enum prony_status cache_write(const struct cache *cache, const char key[DIGEST_HEX_BYTES],
			      char *file, size_t file_bytes, struct error *err)
{
	if (!cache->folder || (int64_t)file_bytes > cache->limit_bytes / 2)
		return PRONY_OK;
	enum prony_status status = directory_make(cache->folder, err);
	if (status != PRONY_OK)
		return status;
	/* Make room first, so that the limit also holds while the new entry is written. */
	keep_within(cache, cache->limit_bytes - (int64_t)file_bytes);
	make_head(key, file + CACHE_HEAD_BYTES, file_bytes - CACHE_HEAD_BYTES, file);
	char *path = path_join(cache->folder, key);
	status = file_write_atomic(path, file, file_bytes, err);
	free(path);
	return status;
}
