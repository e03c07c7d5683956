#include "datasets/entries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

void file_source_close(struct data_source *base)
{
	struct file_source *source = (struct file_source *)base;

	plain_file_close(&source->file);
	free(source->entries);
	free(source);
}

enum prony_status file_source_open(const struct data_shard *shard,
				   enum prony_status (*index)(struct file_source *source,
							      struct error *err),
				   struct data_source **out, struct error *err)
{
	struct file_source *source = memory_alloc(sizeof(*source));

	*source = (struct file_source){
		.base = {.rank = 3, .dims = {3, 0, 0}, .element = DATA_U8},
		.classes = shard->classes,
	};
	enum prony_status status = plain_file_open(shard->paths[0], &source->file, err);
	if (status == PRONY_OK)
		status = index(source, err);
	if (status == PRONY_OK && source->base.count == 0)
		status = plain_file_broken(&source->file, 0, "the file contains no records", err);
	if (status == PRONY_OK)
		*out = &source->base;
	else
		file_source_close(&source->base);
	return status;
}

void file_source_add(struct file_source *source, const struct file_entry *entry)
{
	source->entries = memory_grow(source->entries, (size_t)source->base.count,
				      &source->capacity, sizeof(*source->entries));
	source->entries[source->base.count++] = *entry;
}

enum prony_status file_source_read(const struct file_source *source, int64_t at, uint8_t **bytes,
				   struct error *err)
{
	const struct file_entry *entry = &source->entries[at];

	/* The index has checked that it lies inside the file. */
	*bytes = memory_alloc((size_t)entry->length);
	enum prony_status status = plain_file_read(&source->file, entry->offset, *bytes,
						   (size_t)entry->length, "a record's bytes", err);
	if (status != PRONY_OK)
		free(*bytes);
	return status;
}

enum prony_status file_source_finish(const struct file_source *source, int64_t at,
				     struct data_record *record, struct error *err)
{
	snprintf(record->where, sizeof(record->where), "%s: offset %" PRId64 ": record %" PRId64,
		 source->file.path, source->entries[at].offset, at);
	if (record->label >= 0 && record->label < source->classes)
		return PRONY_OK;
	return data_label_error(source->file.path, source->entries[at].offset, record->label,
				source->classes, err);
}
