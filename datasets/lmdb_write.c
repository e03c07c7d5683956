/* Writes LMDB databases of Caffe's Datum messages with liblmdb: ascending keys NNNNNNNN_NAME, as
 * Caffe's convert_imageset makes them. */
#include <errno.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/datum.h"
#include "datasets/writer.h"

/* Address space, not disk: the largest size of a database. */
#define MAP_BYTES ((size_t)1 << 40)

#define DATA_FILE "data.mdb"

struct lmdb_sink {
	struct data_sink base;
	MDB_env *environment;
	MDB_txn *transaction; /* NULL between commits */
	MDB_dbi database;
	int64_t there; /* entries committed by an earlier conversion */
	struct byte_buffer datum;
};

static enum prony_status failed(const struct lmdb_sink *sink, int code, struct error *err)
{
	/* LMDB reports "Input/output error" for a short write. */
	return error_set(err, code == ENOMEM ? PRONY_NOMEM : PRONY_IO, "%s/" DATA_FILE ": %s%s",
			 sink->base.folder, mdb_strerror(code),
			 code == EIO ? " (the disk is full, or the limit of ulimit -f is reached)"
				     : "");
}

static void close_environment(struct lmdb_sink *sink)
{
	if (sink->transaction)
		mdb_txn_abort(sink->transaction);
	if (sink->environment)
		mdb_env_close(sink->environment);
	sink->transaction = NULL;
	sink->environment = NULL;
}

static int open_environment(struct lmdb_sink *sink)
{
	int code = mdb_env_create(&sink->environment);

	if (code == 0)
		code = mdb_env_set_mapsize(sink->environment, MAP_BYTES);
	/* Nobody else has it open, so remove the lock file. */
	if (code == 0)
		code = mdb_env_open(sink->environment, sink->base.folder, MDB_NOLOCK | MDB_NOTLS,
				    0664);
	return code;
}

/* Open a new environment for each commit: an environment that continues reuses pages in memory with
 * their old content where a new one has zeros, and then a resumed conversion would end with
 * different bytes. */
static int begin(struct lmdb_sink *sink)
{
	int code = sink->environment ? 0 : open_environment(sink);

	if (code == 0)
		code = mdb_txn_begin(sink->environment, NULL, 0, &sink->transaction);
	return code == 0 ? mdb_dbi_open(sink->transaction, NULL, 0, &sink->database) : code;
}

static void close_sink(struct data_sink *base)
{
	struct lmdb_sink *sink = (struct lmdb_sink *)base;

	close_environment(sink);
	byte_buffer_release(&sink->datum);
}

/* The number of samples on disk according to a state: "lmdb N ". */
static int64_t noted_samples(const struct byte_buffer *state)
{
	char text[64] = "";
	int64_t samples = 0;

	if (state && state->length < sizeof(text))
		memcpy(text, state->bytes, state->length);
	return sscanf(text, "lmdb %" SCNd64, &samples) == 1 ? samples : 0;
}

static enum prony_status open_sink(struct data_sink *base, const struct byte_buffer *state,
				   struct error *err)
{
	struct lmdb_sink *sink = (struct lmdb_sink *)base;
	const char *folder = base->folder;
	MDB_stat stat = {0};
	int code = open_environment(sink);
	if (code == MDB_INVALID && !state) {
		/* The conversion was killed while its first pages were written. */
		char *path = path_join(folder, DATA_FILE);

		close_environment(sink);
		unlink(path);
		free(path);
		code = open_environment(sink);
	}
	if (code == 0)
		code = begin(sink);
	if (code == 0)
		code = mdb_stat(sink->transaction, sink->database, &stat);
	sink->there = (int64_t)stat.ms_entries;
	close_environment(sink);
	int64_t noted = noted_samples(state);
	if (code != 0)
		return failed(sink, code, err);
	if (sink->there < noted)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s/" DATA_FILE ": has %" PRId64 " of the %" PRId64
				 " samples that were written; remove the folder and convert again",
				 folder, sink->there, noted);
	return PRONY_OK;
}

/* Entries committed before the journal recorded them exist already, with the same bytes. */
static enum prony_status put(struct data_sink *base, const struct data_record *record,
			     struct error *err)
{
	struct lmdb_sink *sink = (struct lmdb_sink *)base;
	char text[DATA_NAME_BYTES + 32];
	int code = 0;

	if (base->written < sink->there)
		return PRONY_OK;
	if (!sink->transaction)
		code = begin(sink);
	snprintf(text, sizeof(text), "%08" PRId64 "%s%s", base->written, *record->name ? "_" : "",
		 record->name);
	sink->datum.length = 0;
	datum_write(record, &sink->datum);
	MDB_val key = {strlen(text), text}, data = {sink->datum.length, sink->datum.bytes};
	if (code == 0)
		code = mdb_put(sink->transaction, sink->database, &key, &data, MDB_APPEND);
	return code == 0 ? PRONY_OK : failed(sink, code, err);
}

static enum prony_status commit(struct data_sink *base, struct byte_buffer *state,
				struct error *err)
{
	struct lmdb_sink *sink = (struct lmdb_sink *)base;
	MDB_txn *transaction = sink->transaction;

	char note[40];
	snprintf(note, sizeof(note), "lmdb %" PRId64 "\n", base->written);
	byte_buffer_add(state, note, strlen(note));
	sink->transaction = NULL;
	int code = transaction ? mdb_txn_commit(transaction) : 0;
	close_environment(sink);
	return code == 0 ? PRONY_OK : failed(sink, code, err);
}

static enum prony_status finish(struct data_sink *base, struct error *err)
{
	static const char *const names[] = {DATA_FILE};

	close_environment((struct lmdb_sink *)base);
	return writer_write_sums(base->folder, names, 1, err);
}

const struct data_writer lmdb_writer = {
	.sink_bytes = sizeof(struct lmdb_sink),
	.raw = true,
	.read_in_one_size = true,
	.open = open_sink,
	.put = put,
	.commit = commit,
	.finish = finish,
	.close = close_sink,
};
