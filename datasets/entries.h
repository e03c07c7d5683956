/* Where the records of a file lie: what the formats of one file have in common. */
#ifndef PRONY_DATASETS_ENTRIES_H
#define PRONY_DATASETS_ENTRIES_H

#include "datasets/format.h"
#include "datasets/plain_file.h"

struct file_entry {
	int64_t offset, length; /* of the record's bytes */
	int64_t key_offset;	/* of its key, where it has one */
	int32_t key_length;
};

/* A source of one file. */
struct file_source {
	struct data_source base;
	struct plain_file file;
	struct file_entry *entries;
	size_t capacity;
	int64_t classes;
};

/* Opens the file of the shard; `index` then adds all records with file_source_add. */
enum prony_status file_source_open(const struct data_shard *shard,
				   enum prony_status (*index)(struct file_source *source,
							      struct error *err),
				   struct data_source **out, struct error *err);
void file_source_add(struct file_source *source, const struct file_entry *entry);
void file_source_close(struct data_source *base);

/* The bytes of an entry in a new buffer, caller frees. */
enum prony_status file_source_read(const struct file_source *source, int64_t at, uint8_t **bytes,
				   struct error *err);

/* Says where the record lies, and checks its label. */
enum prony_status file_source_finish(const struct file_source *source, int64_t at,
				     struct data_record *record, struct error *err);

#endif
