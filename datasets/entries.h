/* An index of the records in a file, shared by the single-file formats. */
#ifndef PRONY_DATASETS_ENTRIES_H
#define PRONY_DATASETS_ENTRIES_H

#include "datasets/format.h"
#include "datasets/plain_file.h"

struct file_entry {
	int64_t offset, length; /* of the record's content */
	int64_t key_offset;	/* of its key, if there is one */
	int32_t key_length;
};

/* A source with a single file. */
struct file_source {
	struct data_source base;
	struct plain_file file;
	struct file_entry *entries;
	size_t capacity;
	int64_t classes;
};

/* Opens the shard's file; `index` then adds all records with file_source_add. */
enum prony_status file_source_open(const struct data_shard *shard,
				   enum prony_status (*index)(struct file_source *source,
							      struct error *err),
				   struct data_source **out, struct error *err);
void file_source_add(struct file_source *source, const struct file_entry *entry);
void file_source_close(struct data_source *base);

/* Reads an entry into a new buffer; the caller frees it. */
enum prony_status file_source_read(const struct file_source *source, int64_t at, uint8_t **bytes,
				   struct error *err);

/* Sets the record's position text and checks its label. */
enum prony_status file_source_finish(const struct file_source *source, int64_t at,
				     struct data_record *record, struct error *err);

#endif
