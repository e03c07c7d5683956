/* Tar files (POSIX.1-1988 ustar, with GNU's and pax' long names) of pictures, and of tar files of
 * pictures, of which only the heads are read. Threads read members where they lie in the file;
 * libarchive does not say where that is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "datasets/byte_stream.h"
#include "datasets/image_list_internal.h"

enum { BLOCK = 512, NAME_BYTES = 1024 };

/* Places in a head. */
enum { AT_SIZE = 124, AT_SUM = 148, AT_TYPE = 156, AT_MAGIC = 257, AT_PREFIX = 345 };

struct tar {
	struct image_list *list;
	struct byte_stream *bytes;
	const char *path;
	int number;
	char long_name[NAME_BYTES]; /* of the next member; "" = none */
};

static bool is_tar_head(const uint8_t *block)
{
	return memcmp(block + AT_MAGIC, "ustar", 5) == 0;
}

/* A number in octal, or, where the first bit is set, in binary (GNU). -1: none. */
static int64_t number_in(const uint8_t *field, size_t length)
{
	int64_t value = 0;
	size_t i = 0;

	if (field[0] & 0x80) {
		for (i = 1; i < length; i++) {
			if (value > INT64_MAX >> 9)
				return -1;
			value = value << 8 | field[i];
		}
		return value;
	}
	while (i < length && field[i] == ' ')
		i++;
	for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) {
		if (value > INT64_MAX >> 4)
			return -1;
		value = value << 3 | (field[i] - '0');
	}
	return i == length || field[i] == '\0' || field[i] == ' ' ? value : -1;
}

/* The sum of the head's bytes, those of the sum itself being spaces. */
static bool sum_is_right(const uint8_t *block)
{
	int64_t sum = 0;

	for (int i = 0; i < BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : block[i];
	return sum == number_in(block + AT_SUM, 8);
}

static enum prony_status broken(const struct tar *tar, int64_t offset, const char *what,
				struct error *err)
{
	return error_set(err, PRONY_BAD_INPUT, "%s: offset %" PRId64 ": %s; replace the file",
			 tar->path, offset, what);
}

/* The name of a long-named member, which stands in a body of its own: the text, or pax' record
 * "LENGTH path=NAME". */
static enum prony_status read_long_name(struct tar *tar, int64_t offset, int64_t size, char type,
					struct error *err)
{
	char text[NAME_BYTES];
	size_t length = size < NAME_BYTES ? (size_t)size : NAME_BYTES - 1;
	enum prony_status status =
		byte_stream_read(tar->bytes, offset, text, length, "a long name", err);

	if (status != PRONY_OK)
		return status;
	text[length] = '\0';
	const char *name = text;
	if (type == 'x') {
		name = strstr(text, " path=");
		if (!name)
			return PRONY_OK;
		name += strlen(" path=");
	}
	snprintf(tar->long_name, sizeof(tar->long_name), "%.*s", (int)strcspn(name, "\n"), name);
	return PRONY_OK;
}

static void take_name(struct tar *tar, const uint8_t *block, char name[NAME_BYTES])
{
	int first = (int)strnlen((const char *)block, 100);
	int prefix = (int)strnlen((const char *)block + AT_PREFIX, 155);

	if (*tar->long_name)
		snprintf(name, NAME_BYTES, "%s", tar->long_name);
	else if (prefix > 0 && block[AT_MAGIC + 5] == '\0')
		snprintf(name, NAME_BYTES, "%.*s/%.*s", prefix, block + AT_PREFIX, first, block);
	else
		snprintf(name, NAME_BYTES, "%.*s", first, block);
	tar->long_name[0] = '\0';
}

/* The last name, and in *folder the one before it, "" where there is none. */
static const char *split_name(char *name, const char **folder)
{
	char *slash = strrchr(name, '/');

	*folder = "";
	if (!slash)
		return name;
	*slash = '\0';
	char *before = strrchr(name, '/');
	*folder = before ? before + 1 : name;
	if (strcmp(*folder, ".") == 0)
		*folder = "";
	return slash + 1;
}

static enum prony_status add_members(struct tar *tar, int64_t from, int64_t to,
				     const char *class_name, struct error *err);

static enum prony_status add_member(struct tar *tar, char *path, int64_t offset, int64_t size,
				    const char *class_name, struct error *err)
{
	struct arena *arena = &tar->list->arena;
	const char *folder, *name = split_name(path, &folder);
	size_t length = strlen(name);
	struct image_entry entry = {.offset = offset, .length = size, .tar = tar->number};

	if (*name == '\0' || *name == '.')
		return PRONY_OK;
	if (length > 4 && strcmp(name + length - 4, ".tar") == 0) {
		if (class_name)
			return broken(tar, offset, "a tar file inside the tar file of a class",
				      err);
		return add_members(tar, offset, offset + size,
				   arena_strndup(arena, name, length - 4), err);
	}
	if (class_name)
		entry.class_name = class_name;
	else if (*folder)
		entry.class_name = arena_strdup(arena, folder);
	entry.name = entry.class_name ? arena_printf(arena, "%s/%s", entry.class_name, name)
				      : arena_strdup(arena, name);
	image_list_add(tar->list, &entry);
	return PRONY_OK;
}

/* Members between two offsets of the file, up to the block of zeros that ends them. */
static enum prony_status add_members(struct tar *tar, int64_t from, int64_t to,
				     const char *class_name, struct error *err)
{
	uint8_t block[BLOCK];
	char name[NAME_BYTES];
	enum prony_status status = PRONY_OK;

	while (status == PRONY_OK && from + BLOCK <= to) {
		status = byte_stream_read(tar->bytes, from, block, BLOCK, "the header of a member",
					  err);
		if (status != PRONY_OK || block[0] == '\0')
			return status;
		int64_t size = number_in(block + AT_SIZE, 12), body = from + BLOCK;
		if (!is_tar_head(block) || !sum_is_right(block) || size < 0)
			return broken(tar, from, "there is no tar header here", err);
		if (size > to - body)
			return broken(tar, from, "truncated: the member is longer than the file",
				      err);
		char type = (char)block[AT_TYPE];
		if (type == 'L' || type == 'x') {
			status = read_long_name(tar, body, size, type, err);
		} else {
			take_name(tar, block, name);
			if (type == '0' || type == '\0')
				status = add_member(tar, name, body, size, class_name, err);
		}
		from = body + (size + BLOCK - 1) / BLOCK * BLOCK;
	}
	if (status == PRONY_OK && from > to)
		return broken(tar, to, "truncated: the last member is incomplete", err);
	return status;
}

static bool is_compressed(int fd)
{
	uint8_t head[2];

	return pread(fd, head, 2, 0) == 2 && head[0] == 0x1f && head[1] == 0x8b;
}

enum prony_status image_list_add_tar(struct image_list *list, const char *path,
				     const char *class_name, struct error *err)
{
	struct tar tar = {
		.list = list, .path = arena_strdup(&list->arena, path), .number = list->tar_count};
	struct stat info;

	if (list->tar_count == IMAGE_TARS_MAX)
		return error_set(err, PRONY_BAD_INPUT, "%s: it contains more than %d tar files",
				 path, IMAGE_TARS_MAX);
	enum prony_status status = byte_stream_open(path, &tar.bytes, err);
	if (status != PRONY_OK)
		return status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &info) == 0) {
		list->tar_paths[list->tar_count] = tar.path;
		list->tars[list->tar_count++] = fd;
		status = is_compressed(fd)
				 ? error_set(err, PRONY_BAD_INPUT,
					     "%s: compressed tar files are not supported, because "
					     "images are read at random; decompress it with gunzip",
					     path)
				 : add_members(&tar, 0, info.st_size, class_name, err);
	} else {
		status = error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
		if (fd >= 0)
			close(fd);
	}
	byte_stream_close(tar.bytes);
	return status;
}
