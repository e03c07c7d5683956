/* Files out of a wheel, which is a ZIP archive. libarchive reads ZIP in 130 lines less, but loads
 * 13 more libraries into every process of prony: each start of a worker or a guard took 3.2 instead
 * of 1.4 ms of CPU, and start-up is measured. */
#include "frameworks/wheel.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/files.h"
#include "base/memory.h"

/* Signatures and sizes of the fixed parts: APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12, 4.3.16.
 */
#define LOCAL_SIGNATURE 0x04034b50u
#define LOCAL_BYTES 30u
#define CENTRAL_SIGNATURE 0x02014b50u
#define CENTRAL_BYTES 46u
#define END_SIGNATURE 0x06054b50u
#define END_BYTES 22u
#define COMMENT_BYTES_MAX 65535u
#define METHOD_STORED 0
#define METHOD_DEFLATED 8
#define FLAG_ENCRYPTED 1u
#define ZIP64_MARK 0xffffffffu
#define PATH_BYTES_MAX 1024u
#define CHUNK_BYTES ((size_t)256 * 1024)

struct archive {
	const char *path; /* for messages */
	const unsigned char *bytes;
	size_t size;
};

struct entry {
	char name[PATH_BYTES_MAX];
	unsigned flags, method;
	uint32_t crc, packed_bytes, bytes, local_offset;
};

static uint32_t get16(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const unsigned char *at)
{
	return get16(at) | get16(at + 2) << 16;
}

static enum prony_status broken(const struct archive *archive, const char *what, struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT, "%s is not a valid wheel: %s", archive->path, what);
}

static enum prony_status archive_open(const char *path, struct archive *out, struct error *err)
{
	struct archive archive = {.path = path};
	enum prony_status status = PRONY_OK;
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < (off_t)END_BYTES) {
		status = broken(&archive, "the file is too short", err);
		goto out;
	}
	archive.size = (size_t)info.st_size;
	void *map = mmap(NULL, archive.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		status = error_errno(err, PRONY_IO, errno, "cannot map %s", path);
		goto out;
	}
	archive.bytes = map;
	*out = archive;
out:
	close(fd);
	return status;
}

/* The end record is at the end of the file, followed only by a comment of unknown length. */
static const unsigned char *find_end(const struct archive *archive)
{
	size_t first = archive->size > END_BYTES + COMMENT_BYTES_MAX
			       ? archive->size - END_BYTES - COMMENT_BYTES_MAX
			       : 0;

	for (size_t at = archive->size - END_BYTES + 1; at-- > first;)
		if (get32(archive->bytes + at) == END_SIGNATURE)
			return archive->bytes + at;
	return NULL;
}

/* Whether the path is relative and without "..", so that it stays below the target folder. */
static bool name_is_safe(const char *name)
{
	if (name[0] == '/' || strchr(name, '\\'))
		return false;
	for (const char *part = name; *part;) {
		size_t length = strcspn(part, "/");
		if (length == 0 || (length == 1 && part[0] == '.') ||
		    (length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part += length + (part[length] == '/');
	}
	return name[0] != '\0';
}

/* Reads the entry of the central directory at *at and advances to the next. */
static enum prony_status next_entry(const struct archive *archive, size_t *at, struct entry *out,
				    struct error *err)
{
	if (archive->size - *at < CENTRAL_BYTES)
		return broken(archive, "its directory is truncated", err);
	const unsigned char *head = archive->bytes + *at;
	size_t name_bytes = get16(head + 28);
	size_t all = CENTRAL_BYTES + name_bytes + get16(head + 30) + get16(head + 32);

	if (get32(head) != CENTRAL_SIGNATURE || archive->size - *at < all)
		return broken(archive, "its directory is damaged", err);
	if (name_bytes >= PATH_BYTES_MAX || memchr(head + CENTRAL_BYTES, 0, name_bytes))
		return broken(archive, "a file in it has an invalid name", err);
	out->flags = get16(head + 8);
	out->method = get16(head + 10);
	out->crc = get32(head + 16);
	out->packed_bytes = get32(head + 20);
	out->bytes = get32(head + 24);
	out->local_offset = get32(head + 42);
	memcpy(out->name, head + CENTRAL_BYTES, name_bytes);
	out->name[name_bytes] = '\0';
	if (!name_is_safe(out->name))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s contains the path %s, which is outside its folder",
				 archive->path, out->name);
	*at += all;
	return PRONY_OK;
}

/* The compressed bytes of an entry; NULL when they are out of range or of an unsupported kind. */
static const unsigned char *entry_data(const struct archive *archive, const struct entry *entry,
				       const char **why)
{
	*why = "the offset of a file is beyond its end";
	if (entry->packed_bytes == ZIP64_MARK || entry->bytes == ZIP64_MARK ||
	    entry->local_offset == ZIP64_MARK) {
		*why = "a file of 4 GiB or more is not supported";
		return NULL;
	}
	if (entry->flags & FLAG_ENCRYPTED ||
	    (entry->method != METHOD_STORED && entry->method != METHOD_DEFLATED)) {
		*why = "a file uses a compression other than deflate";
		return NULL;
	}
	if (entry->local_offset > archive->size ||
	    archive->size - entry->local_offset < LOCAL_BYTES)
		return NULL;
	const unsigned char *head = archive->bytes + entry->local_offset;
	size_t skip = LOCAL_BYTES + get16(head + 26) + get16(head + 28);
	size_t room = archive->size - entry->local_offset;
	if (get32(head) != LOCAL_SIGNATURE || room < skip || room - skip < entry->packed_bytes ||
	    (entry->method == METHOD_STORED && entry->packed_bytes != entry->bytes))
		return NULL;
	return head + skip;
}

/* False with errno from writing, or 0 when the data is bad. Never writes more than entry->bytes. */
static bool inflate_to(int fd, const unsigned char *data, const struct entry *entry, uint32_t *crc)
{
	unsigned char *chunk = memory_alloc(CHUNK_BYTES);
	z_stream stream = {.next_in = data, .avail_in = entry->packed_bytes};
	uint64_t total = 0;
	bool good = false;
	int result = inflateInit2(&stream, -MAX_WBITS);

	errno = 0;
	while (result == Z_OK) {
		stream.next_out = chunk;
		stream.avail_out = (uInt)CHUNK_BYTES;
		result = inflate(&stream, Z_NO_FLUSH);
		size_t got = CHUNK_BYTES - stream.avail_out;
		total += got;
		if ((result != Z_OK && result != Z_STREAM_END) || total > entry->bytes ||
		    (result == Z_OK && got == 0))
			break;
		*crc = (uint32_t)crc32(*crc, chunk, (uInt)got);
		errno = 0;
		if (!file_write_all(fd, chunk, got))
			break;
		good = result == Z_STREAM_END && total == entry->bytes;
	}
	int failure = errno;
	if (result == Z_MEM_ERROR)
		memory_exhausted("host memory");
	inflateEnd(&stream);
	free(chunk);
	errno = good ? 0 : failure;
	return good;
}

static bool copy_to(int fd, const unsigned char *data, const struct entry *entry, uint32_t *crc)
{
	*crc = (uint32_t)crc32(*crc, data, entry->bytes);
	errno = 0;
	return file_write_all(fd, data, entry->bytes);
}

static enum prony_status extract_entry(const struct archive *archive, const struct entry *entry,
				       const char *folder, struct error *err)
{
	const char *why = NULL;
	const unsigned char *data = entry_data(archive, entry, &why);
	uint32_t crc = 0;

	if (!data)
		return error_set(err, PRONY_BAD_INPUT, "%s: %s: %s", archive->path, entry->name,
				 why);
	char *target = path_join(folder, entry->name);
	char *parent = memory_printf("%.*s", (int)(strrchr(target, '/') - target), target);
	enum prony_status status = directory_make(parent, err);
	int fd = -1;
	if (status != PRONY_OK)
		goto out;
	fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0) {
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", target);
		goto out;
	}
	bool good = entry->method == METHOD_DEFLATED ? inflate_to(fd, data, entry, &crc)
						     : copy_to(fd, data, entry, &crc);
	if (!good && errno)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", target);
	else if (!good || crc != entry->crc)
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: %s is damaged (its length or CRC-32 is wrong)",
				   archive->path, entry->name);
out:
	if (fd >= 0 && close(fd) != 0 && status == PRONY_OK)
		status = error_errno(err, PRONY_IO, errno, "cannot write %s", target);
	free(parent);
	free(target);
	return status;
}

static bool wanted(const char *name, const char *const *patterns, size_t count)
{
	size_t length = strlen(name);

	if (length == 0 || name[length - 1] == '/')
		return false;
	for (size_t i = 0; i < count; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* The whole directory is checked before the first file is written. */
static enum prony_status walk(const struct archive *archive, const char *const *patterns,
			      size_t pattern_count, const char *folder, size_t *extracted,
			      struct error *err)
{
	const unsigned char *end = find_end(archive);

	if (!end)
		return broken(archive, "it has no directory of files", err);
	size_t count = get16(end + 10);
	size_t start = get32(end + 16);
	if (start > archive->size)
		return broken(archive, "the offset of its directory is beyond its end", err);
	for (int pass = 0; pass < 2; pass++) {
		size_t at = start;
		for (size_t i = 0; i < count; i++) {
			struct entry entry;
			enum prony_status status = next_entry(archive, &at, &entry, err);
			if (status == PRONY_OK && pass &&
			    wanted(entry.name, patterns, pattern_count)) {
				status = extract_entry(archive, &entry, folder, err);
				(*extracted)++;
			}
			if (status != PRONY_OK)
				return status;
		}
	}
	return PRONY_OK;
}

enum prony_status wheel_extract(const char *path, const char *const *patterns, size_t pattern_count,
				const char *folder, size_t *extracted, struct error *err)
{
	struct archive archive = {.bytes = NULL};
	size_t count = 0;
	enum prony_status status = archive_open(path, &archive, err);

	if (status != PRONY_OK)
		return status;
	status = walk(&archive, patterns, pattern_count, folder, &count, err);
	munmap((void *)archive.bytes, archive.size);
	if (status == PRONY_OK && extracted)
		*extracted = count;
	return status;
}
