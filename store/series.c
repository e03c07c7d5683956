/* Stores sensor series, one row per sensor of a process. */
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"

static const char doing_write[] = "store sensor data";
static const char doing_read[] = "read sensor data";

/* Packs the samples: time, then a value per channel, each 64 bits little-endian. The caller frees
 * it. */
static uint64_t *pack(const struct series *series, size_t *bytes)
{
	size_t width = 1 + series->channel_count, words = series->count * width;
	uint64_t *blob = memory_alloc(words * sizeof *blob);

	for (size_t i = 0; i < series->count; i++) {
		blob[i * width] = htole64((uint64_t)series->times_ns[i]);
		for (size_t c = 0; c < series->channel_count; c++) {
			uint64_t bits;
			memcpy(&bits, &series->values[i * series->channel_count + c], sizeof bits);
			blob[i * width + 1 + c] = htole64(bits);
		}
	}
	*bytes = words * sizeof *blob;
	return blob;
}

static enum prony_status insert_one(struct store *store, int64_t process,
				    const struct series *series, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	struct strbuf channels;
	size_t bytes;
	bool row = false;

	strbuf_init(&channels, 0);
	for (size_t c = 0; c < series->channel_count; c++)
		strbuf_printf(&channels, "%s%s", c ? " " : "", series->channels[c]);
	uint64_t *blob = pack(series, &bytes);
	enum prony_status status =
		sql_prepare(store,
			    "INSERT INTO process_series (process, " SERIES_COLUMNS
			    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			    doing_write, &statement, err, "ntttttt", process, series->sensor,
			    series_kind_name(series->kind), series->unit, series->rate_unit,
			    series->absent, strbuf_text(&channels));
	if (status == PRONY_OK &&
	    sqlite3_bind_blob64(statement, 8, blob, bytes, SQLITE_STATIC) != SQLITE_OK)
		status = sql_fail(store, err, doing_write);
	if (status == PRONY_OK)
		status = sql_step(store, statement, doing_write, &row, err);
	sqlite3_finalize(statement);
	strbuf_release(&channels);
	free(blob);
	return status;
}

enum prony_status series_insert(struct store *store, int64_t process,
				const struct process_record *record, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < record->series_count && status == PRONY_OK; i++)
		status = insert_one(store, process, &record->series[i], err);
	return status;
}

/* Splits words separated by single spaces. */
static bool unpack_channels(const char *text, struct series *series)
{
	size_t words = *text ? 1 : 0;

	for (const char *at = text; *at; at++)
		words += *at == ' ';
	series->channels = memory_alloc(words * sizeof *series->channels);
	for (; *text; series->channel_count++) {
		size_t length = strcspn(text, " ");
		if (length == 0 || length >= SERIES_WORD_BYTES)
			return false;
		memcpy(series->channels[series->channel_count], text, length);
		series->channels[series->channel_count][length] = '\0';
		text += length + (text[length] == ' ');
	}
	return true;
}

static bool unpack_samples(const unsigned char *blob, size_t bytes, struct series *series)
{
	size_t width = 1 + series->channel_count, count = bytes / (width * sizeof(uint64_t));

	if (bytes % (width * sizeof(uint64_t)) || (count > 0 && width == 1))
		return false;
	series->times_ns = memory_alloc(count * sizeof *series->times_ns);
	series->values = memory_alloc(count * series->channel_count * sizeof *series->values);
	series->count = count;
	for (size_t i = 0; i < count * width; i++) {
		uint64_t word;
		memcpy(&word, blob + i * sizeof word, sizeof word);
		word = le64toh(word);
		size_t sample = i / width, column = i % width;
		if (column == 0) {
			series->times_ns[sample] = (int64_t)word;
			if (sample > 0 && series->times_ns[sample] < series->times_ns[sample - 1])
				return false;
			continue;
		}
		double *value = &series->values[sample * series->channel_count + column - 1];
		memcpy(value, &word, sizeof *value);
		if (isinf(*value))
			return false;
	}
	return true;
}

static bool read_one(sqlite3_stmt *statement, struct series *series)
{
	sql_copy(statement, 0, series->sensor, sizeof series->sensor);
	sql_copy(statement, 2, series->unit, sizeof series->unit);
	sql_copy(statement, 3, series->rate_unit, sizeof series->rate_unit);
	sql_copy(statement, 4, series->absent, sizeof series->absent);
	return series_kind_parse(sql_text(statement, 1), &series->kind) &&
	       unpack_channels(sql_text(statement, 5), series) &&
	       unpack_samples(sqlite3_column_blob(statement, 6),
			      (size_t)sqlite3_column_bytes(statement, 6), series);
}

enum prony_status series_load(struct store *store, int64_t process, struct process_record *record,
			      struct error *err)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	enum prony_status status = sql_prepare(
		store,
		"SELECT " SERIES_COLUMNS " FROM process_series WHERE process = ?1 ORDER BY rowid",
		doing_read, &statement, err, "n", process);

	while (status == PRONY_OK) {
		status = sql_step(store, statement, doing_read, &row, err);
		if (status != PRONY_OK || !row)
			break;
		record->series = memory_realloc(record->series, (record->series_count + 1) *
									sizeof *record->series);
		/* Count it first, so that it is released even when reading fails half-way. */
		struct series *series = &record->series[record->series_count++];
		*series = (struct series){.count = 0};
		if (!read_one(statement, series))
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s: damaged series '%.*s' of process %lld", store->path,
					   SERIES_WORD_BYTES, series->sensor,
					   (long long)record->replicate);
	}
	sqlite3_finalize(statement);
	return status;
}
