/* Opens the SQLite connection of a store. */
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "store/sql_internal.h"

#define BUSY_TIMEOUT_MS 10000

/* "file:PATH?QUERY" with special characters of a URI escaped; the caller frees it. */
static char *make_uri(const char *path, const char *query)
{
	struct strbuf uri;

	strbuf_init(&uri, 0);
	/* "./" makes ":memory:" a file name. */
	strbuf_puts(&uri, path[0] == '/' ? "file:" : "file:./");
	for (const char *c = path; *c; c++) {
		if (strchr("%?#", *c))
			strbuf_printf(&uri, "%%%02x", (unsigned)*c);
		else
			strbuf_putc(&uri, *c);
	}
	strbuf_puts(&uri, query);
	return strbuf_take(&uri);
}

/* Far more steps than any of our statements needs for one byte of file. */
#define STEPS_PER_BYTE 64
#define STEPS_LEAST 40000000
#define STEPS_COUNTED 65536

static int on_steps(void *context)
{
	struct store *store = context;

	store->steps += STEPS_COUNTED;
	return store->steps > store->steps_max;
}

void store_limit_steps(struct store *store, int64_t bytes)
{
	store->steps = 0;
	store->steps_max += STEPS_PER_BYTE * bytes;
	sqlite3_progress_handler(store->db, STEPS_COUNTED, on_steps, store);
}

enum prony_status store_connect(struct store *store, const char *query, int flags,
				struct error *err)
{
	sqlite3_close(store->db);
	free(store->uri);
	store->uri = make_uri(store->path, query);
	store->db = NULL;
	/* A single thread uses the connection; SQLite's own locking of each column read would cost
	 * more than the read. */
	flags |= SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
	if (sqlite3_open_v2(store->uri, &store->db, flags, NULL) != SQLITE_OK) {
		if (!store->db)
			return error_set(err, PRONY_NOMEM, "%s: no memory to open it", store->path);
		return sql_fail(store, err, "open it");
	}
	sqlite3_extended_result_codes(store->db, 1);
	sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
	store->steps_max = STEPS_LEAST;
	store_limit_steps(store, file_bytes(store->path));
	return PRONY_OK;
}

/* With the write-ahead log, `show` and `report` can read while a run writes. But its index is
 * shared memory, which does not work between hosts on a network file system (sqlite.org/wal.html).
 */
static bool on_network(const char *path)
{
	static const long kinds[] = {
		0x6969,	    /* NFS */ 0x517b,	    /* SMB */ 0xff534d42,    /* CIFS */
		0xfe534d42, /* SMB 2 */ 0x0bd00bd0, /* Lustre */ 0x47504653, /* GPFS */
		0x00c36400, /* Ceph */ 0x5346414f,  /* AFS */ 0x01021997,    /* 9P */
		0x19830326,						     /* BeeGFS */
	};
	struct statfs place;

	if (statfs(path, &place))
		return false;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if ((place.f_type & 0xffffffffL) == kinds[i])
			return true;
	return false;
}

enum prony_status store_set_up(struct store *store, struct error *err)
{
	const char *sql = on_network(store->path) ? "PRAGMA journal_mode = DELETE"
						  : "PRAGMA journal_mode = WAL";
	/* This fails while another connection is open, which has then chosen the mode; both modes
	 * are safe. */
	sqlite3_exec(store->db, sql, NULL, NULL, NULL);
	return sql_run(store,
		       "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
		       "PRAGMA trusted_schema = OFF",
		       "set it up", err);
}

enum prony_status store_make_folder(const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	struct error why = ERROR_INIT;

	if (!slash || slash == path)
		return PRONY_OK;
	char *folder = memory_printf("%.*s", (int)(slash - path), path);
	enum prony_status status = directory_make(folder, &why);
	free(folder);
	if (status != PRONY_OK)
		return error_set(
			err, PRONY_STORE,
			"%s: cannot make its folder: %s (use --store FILE for another store)", path,
			why.text);
	return PRONY_OK;
}
