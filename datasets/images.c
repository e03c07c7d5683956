/* The format of picture folders and tar files: each sample is a JPEG or PNG file of any size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/format.h"
#include "datasets/image.h"
#include "datasets/image_list.h"

struct images_source {
	struct data_source base;
	struct image_list *list;
};

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	if (file_is_directory(path))
		return true;
	return length >= 262 && memcmp(head + 257, "ustar", 5) == 0;
}

static void close_source(struct data_source *base)
{
	struct images_source *source = (struct images_source *)base;

	image_list_close(source->list);
	free(source);
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	struct images_source *source = memory_alloc(sizeof(*source));

	*source = (struct images_source){
		.base = {.rank = 3, .dims = {IMAGE_CHANNELS, 0, 0}, .element = DATA_U8}};
	enum prony_status status =
		image_list_open(shard->paths[0], shard->classes, &source->list, err);
	if (status != PRONY_OK) {
		free(source);
		return status;
	}
	source->base.count = (int64_t)source->list->count;
	*out = &source->base;
	return PRONY_OK;
}

static enum prony_status record(const struct data_source *base, int64_t at, struct data_record *out,
				struct error *err)
{
	const struct image_list *list = ((const struct images_source *)base)->list;
	const struct image_entry *entry = &list->entries[at];

	out->encoded = true;
	out->dims[0] = IMAGE_CHANNELS;
	out->dims[1] = out->dims[2] = 0;
	out->label = entry->label;
	snprintf(out->name, sizeof(out->name), "%s", entry->name);
	char *where = image_list_name(list, (size_t)at);
	snprintf(out->where, sizeof(out->where), "%s", where);
	free(where);
	return image_list_read(list, (size_t)at, out->cold, &out->bytes, &out->capacity,
			       &out->length, err);
}

const struct data_format images_format = {
	.name = "images",
	.summary = "JPEG and PNG files in one folder for each class, in one folder with labels, or "
		   "in tar files",
	.shard_files = 1,
	.recognises = recognises,
	.open = open_source,
	.record = record,
	.close = close_source,
};
