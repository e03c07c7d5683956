#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define DIGEST_READ_BYTES 65536

_Static_assert(DIGEST_HEX_BYTES == SHA256_DIGEST_STRING_LENGTH, "libmd writes as many");

void digest_begin(struct digest *digest)
{
	SHA256Init(&digest->context);
}

void digest_add(struct digest *digest, const void *bytes, size_t length)
{
	uint64_t head = length;

	SHA256Update(&digest->context, (const uint8_t *)&head, sizeof(head));
	SHA256Update(&digest->context, bytes, length);
}

void digest_add_text(struct digest *digest, const char *text)
{
	digest_add(digest, text ? text : "", text ? strlen(text) + 1 : 0);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void add_file(struct digest *digest, const FTSENT *file)
{
	const struct stat *about = file->fts_statp;
	int64_t facts[] = {file->fts_info, about->st_size, about->st_mtim.tv_sec,
			   about->st_mtim.tv_nsec};

	digest_add_text(digest, file->fts_path);
	digest_add(digest, facts, sizeof(facts));
}

void digest_add_tree(struct digest *digest, const char *path)
{
	char *real = path ? realpath(path, NULL) : NULL;
	char *roots[] = {real, NULL};

	if (path && !real)
		memory_check(errno);
	errno = 0;
	FTS *tree = real ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name) : NULL;
	memory_check(errno);
	digest_add_text(digest, path);
	digest_add_text(digest, real);
	for (FTSENT *file; tree && (file = fts_read(tree));) {
		memory_check(file->fts_errno);
		if (file->fts_info == FTS_D && !strcmp(file->fts_name, "__pycache__"))
			fts_set(tree, file, FTS_SKIP);
		else if (file->fts_info != FTS_D && file->fts_info != FTS_DP)
			add_file(digest, file);
	}
	/* fts_read returns 0 at the end of the walk. */
	if (tree)
		memory_check(errno);
	if (tree)
		fts_close(tree);
	free(real);
}

void digest_end(struct digest *digest, char hex[DIGEST_HEX_BYTES])
{
	SHA256End(&digest->context, hex);
}

void digest_bytes(const void *bytes, size_t length, char hex[DIGEST_HEX_BYTES])
{
	SHA256_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, bytes, length);
	SHA256End(&context, hex);
}

enum prony_status digest_file(const char *path, char hex[DIGEST_HEX_BYTES], struct error *err)
{
	uint8_t chunk[DIGEST_READ_BYTES];
	SHA256_CTX context;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, errno == ENOENT ? PRONY_BAD_INPUT : PRONY_IO, errno,
				   "cannot open %s", path);
	SHA256Init(&context);
	while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		SHA256Update(&context, chunk, (size_t)got);
	}
	int errnum = errno;
	close(fd);
	if (got < 0)
		return error_errno(err, PRONY_IO, errnum, "cannot read %s", path);
	SHA256End(&context, hex);
	return PRONY_OK;
}
