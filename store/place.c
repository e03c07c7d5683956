/* Detects that the file of an open store was removed or replaced while a run writes to it. New
 * results would then be lost. Everything is still reachable through the open file, so it is saved
 * under another name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "store/sql_internal.h"

enum { NAMES_TRIED = 100 };

bool store_has_moved(const struct store *store)
{
	int moved = 0;

	/* File systems that cannot tell report "not moved". */
	return sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
		       SQLITE_OK &&
	       moved;
}

/* An unused file name beside `path`; the caller frees it. */
static char *free_name(const char *path)
{
	char *name = memory_printf("%s.rescued", path);

	for (int i = 2; file_exists(name) && i < NAMES_TRIED; i++) {
		free(name);
		name = memory_printf("%s.rescued-%d", path, i);
	}
	return name;
}

/* Writes the current content to the file `name`, which then becomes the store. */
static enum prony_status move_to(struct store *store, const char *name, struct error *err)
{
	struct store there = {.path = memory_strdup(name)};
	enum prony_status status = store_make_folder(name, err);

	if (status == PRONY_OK)
		status = sql_change(store, "VACUUM INTO ?1", "write it beside", NULL, err, "t",
				    name);
	if (status == PRONY_OK)
		status = store_connect(&there, "?mode=rw", SQLITE_OPEN_READWRITE, err);
	if (status == PRONY_OK)
		status = store_set_up(&there, err);
	if (status != PRONY_OK) {
		sqlite3_close(there.db);
		free(there.path);
		free(there.uri);
		return status;
	}
	/* SQLite does not touch a file that has taken the place of the closed one. */
	sqlite3_close(store->db);
	free(store->uri);
	store->lost_path = store->path;
	store->db = there.db;
	store->path = there.path;
	store->uri = there.uri;
	store_limit_steps(store, 0);
	return PRONY_OK;
}

enum prony_status store_rescue(struct store *store, struct error *err)
{
	struct error why = ERROR_INIT, none = ERROR_INIT;
	char *name = free_name(store->path), *folder = NULL;
	enum prony_status status = move_to(store, name, &why);

	free(name);
	/* The folder or its disk may be gone. */
	if (status != PRONY_OK &&
	    directory_make_temporary("prony-rescued-", &folder, &none) == PRONY_OK) {
		name = path_join(folder, "prony.db");
		error_clear(&none);
		status = move_to(store, name, &none);
		free(name);
		free(folder);
	}
	if (status != PRONY_OK)
		return error_set(err, status,
				 "%s: was removed or replaced during this run, and a copy could "
				 "not be written: %s",
				 store->path, why.text);
	return PRONY_OK;
}

enum prony_status store_say_lost(const struct store *store, struct error *err)
{
	return error_set(err, PRONY_STORE,
			 "%s: was removed or replaced during this run; a copy with all results so "
			 "far is in %s; to import it: prony import %s",
			 store->lost_path, store->path, store->path);
}
