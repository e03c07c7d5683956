/* Reads LMDB files (OpenLDAP's liblmdb 0.9; see its lmdb.h and mdb.c) of Caffe's Datum messages.
 * This is our own reader, because liblmdb trusts the mapped file and crashes on a damaged one. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/datum.h"
#include "datasets/entries.h"
#include "datasets/writer.h"

enum {
	PAGE_HEAD = 16,
	PAGE_MIN = 256,
	PAGE_MAX = 32768,
	DEPTH_MAX = 32,
	NODE_HEAD = 8,
	KEY_MAX = 511,
};

/* Page types. */
enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META = 8 };

/* Node flags: data in overflow pages; a sub-database or duplicates. */
enum { BIG = 1, OTHER = 6 };

/* Offsets in a meta page after its header. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_PAGE_BYTES = 24, AT_MAIN = 72, AT_ROOT = 40, AT_TXN = 128 };
#define MAGIC 0xbeefc0deu

struct walk {
	struct file_source *source;
	size_t page_bytes;
	int64_t pages, seen; /* more pages visited than exist: a cycle */
};

static uint16_t u16_at(const uint8_t *bytes)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return le16toh(value);
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

static uint64_t u64_at(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return le64toh(value);
}

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	if (length == 0) {
		char *file = path_join(path, "data.mdb");
		bool is = file_is_directory(path) && file_exists(file);

		free(file);
		return is;
	}
	return length >= PAGE_HEAD + 8 && u32_at(head + PAGE_HEAD) == MAGIC;
}

static enum prony_status broken(const struct walk *walk, int64_t page, const char *what,
				struct error *err)
{
	return plain_file_broken(&walk->source->file, page * (int64_t)walk->page_bytes, what, err);
}

/* The root of the newest state: the meta page with the higher transaction number. */
static enum prony_status read_metas(struct walk *walk, uint64_t *root, struct error *err)
{
	uint64_t newest = 0;
	bool found = false;

	for (int i = 0; i < 2; i++) {
		uint8_t meta[PAGE_HEAD + AT_TXN + 8];
		enum prony_status status =
			plain_file_read(&walk->source->file, i * (int64_t)walk->page_bytes, meta,
					sizeof(meta), "the meta pages", err);

		if (status != PRONY_OK)
			return status;
		const uint8_t *body = meta + PAGE_HEAD;
		if (u32_at(body + AT_MAGIC) != MAGIC || u32_at(body + AT_VERSION) != 1)
			return broken(walk, i, "it is not a meta page of LMDB version 1", err);
		walk->page_bytes = u32_at(body + AT_PAGE_BYTES);
		if (walk->page_bytes < PAGE_MIN || walk->page_bytes > PAGE_MAX)
			return plain_file_broken(&walk->source->file, 0, "invalid page size", err);
		if (!found || u64_at(body + AT_TXN) > newest) {
			newest = u64_at(body + AT_TXN);
			*root = u64_at(body + AT_MAIN + AT_ROOT);
			found = true;
		}
	}
	walk->pages = walk->source->file.bytes / (int64_t)walk->page_bytes;
	return PRONY_OK;
}

/* Adds the entry of a leaf node, which lies within its page. */
static enum prony_status add_leaf(struct walk *walk, int64_t page, const uint8_t *bytes,
				  size_t offset, struct error *err)
{
	const uint8_t *node = bytes + offset;
	uint32_t length = u16_at(node) | (uint32_t)u16_at(node + 2) << 16;
	uint16_t flags = u16_at(node + 4), key = u16_at(node + 6);
	size_t data = offset + NODE_HEAD + key;
	int64_t at = page * (int64_t)walk->page_bytes;
	struct file_entry entry = {.length = length,
				   .key_offset = at + (int64_t)offset + NODE_HEAD,
				   .key_length = key,
				   .offset = at + (int64_t)data};

	if (flags & OTHER || key > KEY_MAX)
		return broken(walk, page, "an entry that Caffe does not write", err);
	if (data + (flags & BIG ? 8 : length) > walk->page_bytes)
		return broken(walk, page, "an entry extends beyond its page", err);
	if (flags & BIG) {
		uint64_t first = u64_at(bytes + data);

		if (first >= (uint64_t)walk->pages)
			return broken(walk, page,
				      "truncated: an entry extends beyond the end of the file",
				      err);
		entry.offset = (int64_t)first * (int64_t)walk->page_bytes + PAGE_HEAD;
	}
	if (length > walk->source->file.bytes - entry.offset)
		return broken(walk, page, "truncated: an entry extends beyond the end of the file",
			      err);
	file_source_add(walk->source, &entry);
	return PRONY_OK;
}

static enum prony_status read_page(struct walk *walk, uint64_t number, int depth, uint8_t *bytes,
				   struct error *err)
{
	if (number >= (uint64_t)walk->pages)
		return plain_file_broken(&walk->source->file, walk->source->file.bytes,
					 "truncated: a page is beyond the end of the file", err);
	if (depth > DEPTH_MAX || walk->seen++ > walk->pages)
		return broken(walk, (int64_t)number, "the pages form a cycle", err);
	return plain_file_read(&walk->source->file, (int64_t)number * (int64_t)walk->page_bytes,
			       bytes, walk->page_bytes, "a page", err);
}

static enum prony_status visit(struct walk *walk, uint64_t number, int depth, struct error *err)
{
	uint8_t *bytes = memory_alloc(walk->page_bytes);
	int64_t page = (int64_t)number;
	enum prony_status status = read_page(walk, number, depth, bytes, err);
	size_t lower = 0;
	uint16_t kind = 0;

	if (status == PRONY_OK) {
		lower = u16_at(bytes + 12);
		kind = u16_at(bytes + 10) & (BRANCH | LEAF | OVERFLOW | META);
		if ((kind != BRANCH && kind != LEAF) || lower < PAGE_HEAD ||
		    lower > walk->page_bytes)
			status = broken(walk, page, "the page is neither a branch nor a leaf", err);
	}
	for (size_t at = PAGE_HEAD; status == PRONY_OK && at + 2 <= lower; at += 2) {
		size_t node = u16_at(bytes + at);

		if (node + NODE_HEAD > walk->page_bytes)
			status = broken(walk, page, "an entry extends beyond its page", err);
		else if (kind == LEAF)
			status = add_leaf(walk, page, bytes, node, err);
		else
			status = visit(walk,
				       u16_at(bytes + node) |
					       (uint64_t)u16_at(bytes + node + 2) << 16 |
					       (uint64_t)u16_at(bytes + node + 4) << 32,
				       depth + 1, err);
	}
	free(bytes);
	return status;
}

static enum prony_status index_file(struct file_source *source, struct error *err)
{
	struct walk walk = {.source = source, .page_bytes = 4096};
	uint64_t root = UINT64_MAX;
	enum prony_status status = read_metas(&walk, &root, err);

	/* An empty database has no root. */
	if (status != PRONY_OK || root == UINT64_MAX)
		return status;
	return visit(&walk, root, 0, err);
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	char *file = path_join(shard->paths[0], "data.mdb");
	const char *path = file_exists(file) ? file : shard->paths[0];
	const struct data_shard inner = {.paths = &path, .classes = shard->classes};
	enum prony_status status = file_source_open(&inner, index_file, out, err);

	free(file);
	return status;
}

static enum prony_status record(const struct data_source *base, int64_t at, struct data_record *out,
				struct error *err)
{
	const struct file_source *source = (const struct file_source *)base;
	const struct file_entry *entry = &source->entries[at];
	char key[KEY_MAX + 1];
	uint8_t *bytes;
	enum prony_status status = file_source_read(source, at, &bytes, err);

	if (status != PRONY_OK)
		return status;
	status = plain_file_read(&source->file, entry->key_offset, key, (size_t)entry->key_length,
				 "a key", err);
	key[entry->key_length] = '\0';
	snprintf(out->name, sizeof(out->name), "%.200s", key);
	if (status == PRONY_OK && !datum_read(bytes, (size_t)entry->length, out))
		status = plain_file_broken(&source->file, entry->offset,
					   "the entry is not a Caffe Datum with pixels or an image",
					   err);
	free(bytes);
	return status == PRONY_OK ? file_source_finish(source, at, out, err) : status;
}

extern const struct data_writer lmdb_writer;

const struct data_format lmdb_format = {
	.name = "lmdb",
	.summary = "Caffe's LMDB of Datum messages: data.mdb or its folder",
	.shard_files = 1,
	.recognises = recognises,
	.open = open_source,
	.record = record,
	.close = file_source_close,
	.writer = &lmdb_writer,
};
