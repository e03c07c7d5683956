/* Transactions, and the check that the store's file is still in place. */
#include "store/sql_internal.h"
#include "store/store.h"

enum prony_status sql_begin(struct store *store, const char *doing, struct error *err)
{
	enum prony_status status = PRONY_OK;

	if (store->depth == 0) {
		if (!store->lost_path && store_has_moved(store))
			status = store_rescue(store, err);
		if (status == PRONY_OK)
			status = sql_run(store, "BEGIN IMMEDIATE", doing, err);
	}
	if (status == PRONY_OK)
		store->depth++;
	return status;
}

enum prony_status sql_end(struct store *store, enum prony_status status, const char *doing,
			  struct error *err)
{
	if (--store->depth > 0)
		return status;
	if (status == PRONY_OK)
		status = sql_run(store, "COMMIT", doing, err);
	/* A full disk may have caused a rollback already; doing it twice is harmless. */
	if (status != PRONY_OK) {
		sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
		return status;
	}
	if (!store->lost_path && store_has_moved(store))
		status = store_rescue(store, err);
	return status == PRONY_OK && store->lost_path ? store_say_lost(store, err) : status;
}

enum prony_status store_batch_begin(struct store *store, struct error *err)
{
	return sql_begin(store, "write to it", err);
}

enum prony_status store_batch_end(struct store *store, enum prony_status status, struct error *err)
{
	return sql_end(store, status, "write to it", err);
}
