#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "store/sql_internal.h"
#include "store/store.h"

static enum prony_status open_to_write(struct store *store, struct error *err)
{
	int64_t version = 0;
	enum prony_status status = store_make_folder(store->path, err);

	/* SQLite would never let the group write; users who share a store set umask 002. */
	int file = status == PRONY_OK
			   ? open(store->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0664)
			   : -1;
	if (file >= 0)
		close(file);
	if (status == PRONY_OK)
		status = store_connect(store, "?mode=rwc",
				       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
	/*
	 * SQLite silently opens a write-protected file read-only and reports that only on a write.
	 */
	if (status == PRONY_OK && sqlite3_db_readonly(store->db, "main") == 1)
		return error_set(
			err, PRONY_STORE,
			"%s: no write permission; change it, or use --store FILE for another store",
			store->path);
	if (status == PRONY_OK)
		status = schema_version(store, &version, err);
	if (status == PRONY_OK)
		status = store_set_up(store, err);
	if (status == PRONY_OK)
		status = schema_migrate(store, err);
	return status;
}

/* Whether recently committed data may still be in the write-ahead log beside the file. */
static bool log_is_left(const char *path)
{
	struct stat there;
	char *log = memory_printf("%s-wal", path);
	bool left = stat(log, &there) == 0 && there.st_size > 0;

	free(log);
	return left;
}

static enum prony_status finish_reading(struct store *store, int64_t version, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (version == 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: contains no runs yet; `prony run` adds one", store->path);
	if (version < STORE_SCHEMA)
		return error_set(
			err, PRONY_STORE,
			"%s: was written by an older prony; `prony run --store %s` updates it",
			store->path, store->path);
	status = sql_run(store, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF", "set it up",
			 err);
	return status == PRONY_OK ? schema_find(store, err) : status;
}

/* On a full disk the index of the write-ahead log cannot be made. A connection that locks out all
 * others keeps it in memory. */
static enum prony_status open_alone(struct store *store, int64_t *version, struct error *err)
{
	enum prony_status status = store_connect(store, "?mode=rw", SQLITE_OPEN_READWRITE, err);

	if (status == PRONY_OK)
		status = sql_run(store, "PRAGMA locking_mode = EXCLUSIVE", "set it up", err);
	return status == PRONY_OK ? schema_version(store, version, err) : status;
}

static enum prony_status open_to_read(struct store *store, struct error *err)
{
	struct error first = ERROR_INIT;
	int64_t version = 0;

	if (!file_exists(store->path))
		return error_set(
			err, PRONY_BAD_INPUT,
			"%s: no such store; `prony run` creates it, --store FILE opens another one",
			store->path);
	/* Open for writing, because the last connection to close cleans up the log. Fall back to
	 * read-only without permission. */
	enum prony_status status = store_connect(store, "?mode=rw", SQLITE_OPEN_READWRITE, &first);
	if (status == PRONY_OK)
		status = schema_version(store, &version, &first);
	if (status != PRONY_OK) {
		int code = store->db ? sqlite3_errcode(store->db) & 0xff : SQLITE_NOMEM;
		bool unwritable = code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
		bool full = code == SQLITE_IOERR && sql_disk_is_full(store);
		bool left = log_is_left(store->path);
		if (!full && (!unwritable || left))
			return error_set(err, status, "%s", first.text);
		if (left) {
			status = open_alone(store, &version, err);
		} else {
			/* In a write-protected folder, or on a full disk, the log's index cannot be
			 * created; then nobody else writes either. */
			status = store_connect(store, "?mode=ro&immutable=1", SQLITE_OPEN_READONLY,
					       err);
			if (status == PRONY_OK)
				status = schema_version(store, &version, err);
		}
	}
	return status == PRONY_OK ? finish_reading(store, version, err) : status;
}

char *store_file(const char *path)
{
	if (path)
		return memory_strdup(path);
	char *home = path_data_home(), *file = path_join(home, "prony.db");
	free(home);
	return file;
}

enum prony_status store_open(const char *path, bool read_only, struct store **out,
			     struct error *err)
{
	struct store *store = memory_alloc(sizeof *store);
	enum prony_status status;
	struct stat there;

	*store = (struct store){.db = NULL};
	store->columns = memory_alloc(process_field_count * sizeof *store->columns);
	store->path = store_file(path);
	if (file_is_directory(store->path))
		status =
			error_set(err, PRONY_STORE,
				  "%s: is a folder; --store takes the name of a file", store->path);
	else if (stat(store->path, &there) == 0 && !S_ISREG(there.st_mode))
		status = error_set(err, PRONY_STORE,
				   "%s: is a device or a pipe; --store takes the name of a file",
				   store->path);
	else
		status = read_only ? open_to_read(store, err) : open_to_write(store, err);
	if (status != PRONY_OK) {
		store_close(store);
		return status;
	}
	*out = store;
	return PRONY_OK;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	free(store->columns);
	free(store->path);
	free(store->lost_path);
	free(store->uri);
	free(store);
}
