/* The total size and the digest of a folder of pictures. */
#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/memory.h"
#include "datasets/image_list.h"

static int by_name(const FTSENT **left, const FTSENT **right)
{
	return strcmp((*left)->fts_name, (*right)->fts_name);
}

/* Calls the function for every file below, sorted by name, until it returns an error. */
static enum prony_status each_file(const char *path,
				   enum prony_status (*visit)(void *context, const char *file,
							      const char *below, int64_t bytes,
							      bool *stop, struct error *err),
				   void *context, struct error *err)
{
	char *start = memory_strdup(path), *const roots[] = {start, NULL};
	FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	enum prony_status status = PRONY_OK;
	bool stop = false;
	FTSENT *entry;

	if (!walk)
		status = error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
	while (walk && status == PRONY_OK && !stop && (entry = fts_read(walk)))
		if (entry->fts_info == FTS_F)
			status = visit(context, entry->fts_path, entry->fts_path + strlen(path),
				       entry->fts_statp->st_size, &stop, err);
	if (walk)
		fts_close(walk);
	free(start);
	return status;
}

struct sum {
	struct digest digest;
	int64_t bytes, limit;
};

static enum prony_status add_digest(void *context, const char *file, const char *below,
				    int64_t bytes, bool *stop, struct error *err)
{
	struct sum *sum = context;
	char hex[DIGEST_HEX_BYTES];
	enum prony_status status = digest_file(file, hex, err);

	(void)stop;
	digest_add_text(&sum->digest, below + strspn(below, "/"));
	digest_add_text(&sum->digest, status == PRONY_OK ? hex : "");
	sum->bytes += bytes;
	return status;
}

enum prony_status image_folder_digest(const char *path, int64_t *bytes, char hex[],
				      struct error *err)
{
	struct sum sum = {.bytes = 0};

	digest_begin(&sum.digest);
	enum prony_status status = each_file(path, add_digest, &sum, err);
	digest_end(&sum.digest, hex);
	*bytes = sum.bytes;
	return status;
}

static enum prony_status add_bytes(void *context, const char *file, const char *below,
				   int64_t bytes, bool *stop, struct error *err)
{
	struct sum *sum = context;

	(void)file, (void)below, (void)err;
	sum->bytes += bytes;
	*stop = sum->bytes > sum->limit;
	return PRONY_OK;
}

int64_t image_folder_bytes(const char *path, int64_t limit_bytes)
{
	struct sum sum = {.limit = limit_bytes};
	struct error ignored = ERROR_INIT;

	return each_file(path, add_bytes, &sum, &ignored) == PRONY_OK ? sum.bytes : -1;
}
