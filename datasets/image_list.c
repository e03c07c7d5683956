#include "datasets/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/image_list_internal.h"

/* No picture file is larger; the largest of ImageNet has 15 MB. */
#define FILE_BYTES_MAX (INT64_C(1) << 28)

static bool is_tar_name(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && strcasecmp(name + length - 4, ".tar") == 0;
}

/* Lists names in a folder except hidden ones; free each entry and the array. */
static enum prony_status scan(const char *path, struct dirent ***names, int *count,
			      struct error *err)
{
	*count = scandir(path, names, NULL, NULL);
	if (*count < 0)
		memory_check(errno);
	return *count >= 0 ? PRONY_OK
			   : error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", path);
}

/* The label file of a folder lies inside it. */
static bool is_picture_file(const char *name)
{
	return strcmp(name, "labels.txt") != 0;
}

static enum prony_status add_below(struct image_list *list, const char *path,
				   const char *class_name, bool *folders, struct error *err);

static enum prony_status add_member(struct image_list *list, const char *path,
				    const struct dirent *member, const char *class_name,
				    bool *folders, struct error *err)
{
	const char *name = member->d_name;
	char *whole = path_join(path, name);
	enum prony_status status = PRONY_OK;
	struct image_entry entry = {.class_name = class_name, .offset = -1};

	/* There may be a million files, so call stat only when the entry is not a regular file. */
	if (member->d_type != DT_REG && file_is_directory(whole)) {
		*folders = true;
		status =
			class_name
				? error_set(
					  err, PRONY_BAD_INPUT,
					  "%s: a folder inside the folder of a class; " LIST_REMEDY,
					  whole)
				: add_below(list, whole, arena_strdup(&list->arena, name), folders,
					    err);
	} else if (!class_name && is_tar_name(name)) {
		*folders = true;
		status = image_list_add_tar(
			list, whole, arena_strndup(&list->arena, name, strlen(name) - 4), err);
	} else if (is_picture_file(name)) {
		entry.name = class_name ? arena_printf(&list->arena, "%s/%s", class_name, name)
					: arena_strdup(&list->arena, name);
		image_list_add(list, &entry);
	}
	free(whole);
	return status;
}

/* Adds the pictures of a folder and its subfolders. */
static enum prony_status add_below(struct image_list *list, const char *path,
				   const char *class_name, bool *folders, struct error *err)
{
	struct dirent **names;
	int count;
	enum prony_status status = scan(path, &names, &count, err);

	if (status != PRONY_OK)
		return status;
	for (int i = 0; i < count; i++) {
		if (status == PRONY_OK && names[i]->d_name[0] != '.')
			status = add_member(list, path, names[i], class_name, folders, err);
		free(names[i]);
	}
	free(names);
	return status;
}

static int compare_entries(const void *left, const void *right)
{
	const struct image_entry *a = left, *b = right;
	int classes = a->class_name && b->class_name ? strcmp(a->class_name, b->class_name) : 0;

	return classes != 0 ? classes : strcmp(a->name, b->name);
}

/* Numbers classes in the order of their names; the entries are already sorted. */
static enum prony_status label_by_class(struct image_list *list, int64_t classes, struct error *err)
{
	list->classes = memory_alloc((list->count + 1) * sizeof(*list->classes));
	for (size_t i = 0; i < list->count; i++) {
		struct image_entry *entry = &list->entries[i];

		if (!entry->class_name)
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: %s is not in the folder of a class; " LIST_REMEDY,
					 list->path, entry->name);
		if (i == 0 || strcmp(entry->class_name, entry[-1].class_name) != 0)
			list->classes[list->class_count++] = entry->class_name;
		entry->label = (int32_t)list->class_count - 1;
	}
	if ((int64_t)list->class_count > classes)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: it contains %zu classes, the last one %s, but the data set "
				 "has %" PRId64 "; " LIST_REMEDY,
				 list->path, list->class_count,
				 list->classes[list->class_count - 1], classes);
	return PRONY_OK;
}

static enum prony_status fill(struct image_list *list, int64_t classes, struct error *err)
{
	bool by_class = false;
	enum prony_status status = file_is_directory(list->path)
					   ? add_below(list, list->path, NULL, &by_class, err)
					   : image_list_add_tar(list, list->path, NULL, err);

	if (status != PRONY_OK)
		return status;
	if (list->count == 0)
		return error_set(err, PRONY_BAD_INPUT, "%s: it contains no images; " LIST_REMEDY,
				 list->path);
	if (list->count > INT32_MAX)
		return error_set(err, PRONY_BAD_INPUT, "%s: more than %d images", list->path,
				 INT32_MAX);
	for (size_t i = 0; i < list->count; i++)
		by_class |= list->entries[i].class_name != NULL;
	qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
	return by_class ? label_by_class(list, classes, err) : image_list_label(list, classes, err);
}

enum prony_status image_list_open(const char *path, int64_t classes, struct image_list **out,
				  struct error *err)
{
	struct image_list *list = memory_alloc(sizeof(*list));

	memset(list, 0, sizeof(*list));
	list->path = memory_strdup(path);
	arena_init(&list->arena, 0);
	enum prony_status status = fill(list, classes, err);
	if (status == PRONY_OK)
		*out = list;
	else
		image_list_close(list);
	return status;
}

void image_list_close(struct image_list *list)
{
	if (!list)
		return;
	for (int i = 0; i < list->tar_count; i++)
		close(list->tars[i]);
	arena_release(&list->arena);
	free(list->entries);
	free(list->classes);
	free(list->path);
	free(list);
}

char *image_list_name(const struct image_list *list, size_t at)
{
	const struct image_entry *entry = &list->entries[at];

	return entry->offset < 0
		       ? path_join(list->path, entry->name)
		       : memory_printf("%s: %s", list->tar_paths[entry->tar], entry->name);
}

static enum prony_status read_from(int fd, int64_t offset, int64_t length, bool cold,
				   const char *name, uint8_t **bytes, size_t *capacity, size_t *got,
				   struct error *err)
{
	if (cold)
		posix_fadvise(fd, offset, length, POSIX_FADV_DONTNEED);
	if (length > FILE_BYTES_MAX)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: too large: %" PRId64 " bytes; at most %" PRId64
				 " are supported; remove it",
				 name, length, FILE_BYTES_MAX);
	if (*capacity < (size_t)length) {
		*capacity = (size_t)length + (size_t)length / 2;
		*bytes = memory_realloc(*bytes, *capacity);
	}
	ssize_t read_bytes = file_read_at(fd, offset, *bytes, (size_t)length);
	if (read_bytes < 0)
		return error_errno(err, PRONY_IO, errno, "%s: cannot be read", name);
	*got = (size_t)read_bytes;
	return PRONY_OK;
}

static enum prony_status read_file(const char *name, bool cold, uint8_t **bytes, size_t *capacity,
				   size_t *length, struct error *err)
{
	struct stat info;
	/* O_NONBLOCK: opening a pipe would block. */
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum prony_status status;

	if (fd < 0)
		return error_errno(err, PRONY_BAD_INPUT, errno, "cannot open %s", name);
	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
		status = error_set(err, PRONY_BAD_INPUT, "%s: not a regular file", name);
	else
		status = read_from(fd, 0, info.st_size, cold, name, bytes, capacity, length, err);
	close(fd);
	return status;
}

enum prony_status image_list_read(const struct image_list *list, size_t at, bool cold,
				  uint8_t **bytes, size_t *capacity, size_t *length,
				  struct error *err)
{
	const struct image_entry *entry = &list->entries[at];
	char *name = image_list_name(list, at);
	enum prony_status status =
		entry->offset < 0 ? read_file(name, cold, bytes, capacity, length, err)
				  : read_from(list->tars[entry->tar], entry->offset, entry->length,
					      cold, name, bytes, capacity, length, err);

	free(name);
	return status;
}
