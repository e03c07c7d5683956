#include "store/sql_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/memory.h"
#include "samples/record.h"

/* Less than this cannot hold the index of the write-ahead log. */
#define SPACE_LEAST_BYTES 65536

/* SQLite reports a full disk as an input or output error where it cannot make its index, and does
 * not always keep errno. */
bool sql_disk_is_full(const struct store *store)
{
	struct statvfs space;
	int why = sqlite3_system_errno(store->db);

	return why == ENOSPC || why == EDQUOT ||
	       (statvfs(store->path, &space) == 0 &&
		space.f_bavail < SPACE_LEAST_BYTES / (space.f_frsize ? space.f_frsize : 1));
}

static const char *remedy_of(const struct store *store, int code)
{
	if ((code & 0xff) == SQLITE_IOERR && sqlite3_system_errno(store->db) == EFBIG)
		return "the size of files is limited: ulimit -f; use --store FILE for another "
		       "store";
	if (sqlite3_system_errno(store->db) == EMFILE)
		return "too many files are open: ulimit -n limits their number";
	switch (code & 0xff) {
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return "it and its folder must be writable; use --store FILE for another store";
	case SQLITE_FULL:
		return "free space there, then continue with --resume; earlier results are safe";
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "another program uses it; wait until it ends, or use --store FILE for "
		       "another store";
	case SQLITE_NOTADB:
		return "it is not an SQLite file; use --store FILE for another store";
	case SQLITE_CORRUPT:
		return "it is damaged; move it away to start a new one, or try `sqlite3 FILE "
		       ".recover`";
	case SQLITE_INTERRUPT:
		return "it is damaged: reading takes too many steps for its size; use --store FILE "
		       "for another store";
	case SQLITE_IOERR:
		return "its disk reports an error; use --store FILE for another store";
	default:
		return "use --store FILE for another store";
	}
}

enum prony_status sql_fail(const struct store *store, struct error *err, const char *doing)
{
	int code = sqlite3_extended_errcode(store->db);

	if ((code & 0xff) == SQLITE_NOMEM)
		return error_set(err, PRONY_NOMEM, "%s: no memory to %s", store->path, doing);
	if ((code & 0xff) == SQLITE_FULL ||
	    ((code & 0xff) == SQLITE_IOERR && sql_disk_is_full(store)))
		return error_set(err, PRONY_STORE, "%s: cannot %s: its disk is full (%s)",
				 store->path, doing, remedy_of(store, SQLITE_FULL));
	return error_set(err, PRONY_STORE, "%s: cannot %s: %s (%s)", store->path, doing,
			 sqlite3_errmsg(store->db), remedy_of(store, code));
}

enum prony_status sql_run(struct store *store, const char *sql, const char *doing,
			  struct error *err)
{
	store->steps = 0;
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return sql_fail(store, err, doing);
	return PRONY_OK;
}

static int bind_one(sqlite3_stmt *statement, int index, char type, va_list *arguments)
{
	if (type == 'n' || type == 'i') {
		int64_t value = va_arg(*arguments, int64_t);
		return type == 'i' && value == RECORD_NONE
			       ? sqlite3_bind_null(statement, index)
			       : sqlite3_bind_int64(statement, index, value);
	}
	assert(type == 't');
	return sqlite3_bind_text(statement, index, va_arg(*arguments, const char *), -1,
				 SQLITE_STATIC);
}

static enum prony_status prepare(struct store *store, const char *sql, const char *doing,
				 sqlite3_stmt **out, struct error *err, const char *types,
				 va_list *arguments)
{
	sqlite3_stmt *statement = NULL;
	store->steps = 0;
	int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

	for (int i = 0; code == SQLITE_OK && types[i]; i++)
		code = bind_one(statement, i + 1, types[i], arguments);
	if (code != SQLITE_OK) {
		enum prony_status status = sql_fail(store, err, doing);
		sqlite3_finalize(statement);
		return status;
	}
	*out = statement;
	return PRONY_OK;
}

enum prony_status sql_prepare(struct store *store, const char *sql, const char *doing,
			      sqlite3_stmt **out, struct error *err, const char *types, ...)
{
	va_list arguments;

	va_start(arguments, types);
	enum prony_status status = prepare(store, sql, doing, out, err, types, &arguments);
	va_end(arguments);
	return status;
}

enum prony_status sql_step(struct store *store, sqlite3_stmt *statement, const char *doing,
			   bool *row, struct error *err)
{
	int code = sqlite3_step(statement);

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return sql_fail(store, err, doing);
	*row = code == SQLITE_ROW;
	return PRONY_OK;
}

enum prony_status sql_change(struct store *store, const char *sql, const char *doing, int *changes,
			     struct error *err, const char *types, ...)
{
	sqlite3_stmt *statement = NULL;
	bool row = true;
	va_list arguments;

	va_start(arguments, types);
	enum prony_status status = prepare(store, sql, doing, &statement, err, types, &arguments);
	va_end(arguments);
	while (status == PRONY_OK && row)
		status = sql_step(store, statement, doing, &row, err);
	if (status == PRONY_OK && changes)
		*changes = sqlite3_changes(store->db);
	sqlite3_finalize(statement);
	return status;
}

enum prony_status sql_int(struct store *store, const char *sql, const char *doing,
			  int64_t otherwise, int64_t *out, struct error *err, const char *types,
			  ...)
{
	sqlite3_stmt *statement = NULL;
	bool row = false;
	va_list arguments;

	va_start(arguments, types);
	enum prony_status status = prepare(store, sql, doing, &statement, err, types, &arguments);
	va_end(arguments);
	if (status == PRONY_OK)
		status = sql_step(store, statement, doing, &row, err);
	if (status == PRONY_OK)
		*out = row && sqlite3_column_type(statement, 0) != SQLITE_NULL
			       ? sqlite3_column_int64(statement, 0)
			       : otherwise;
	sqlite3_finalize(statement);
	return status;
}

const char *sql_text(sqlite3_stmt *statement, int column)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	/*
	 * SQLite also returns NULL when memory runs out; do not confuse that with an absent value.
	 */
	if (!text && sqlite3_errcode(sqlite3_db_handle(statement)) == SQLITE_NOMEM)
		memory_exhausted("host memory");
	return text ? (const char *)text : "";
}

int64_t sql_integer(sqlite3_stmt *statement, int column)
{
	return sqlite3_column_type(statement, column) == SQLITE_NULL
		       ? RECORD_NONE
		       : sqlite3_column_int64(statement, column);
}

void sql_copy(sqlite3_stmt *statement, int column, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s", sql_text(statement, column));
}
