/* `prony import`: imports another machine's results into this store. */
#include <stdio.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"

struct import_options {
	const char *store;
} import_options;

const struct option import_option_rows[] = {
	CLI_OPTION_STORE(struct import_options),
	{.name = NULL},
};

static void say_imported(const char *other, const struct store_imported *imported)
{
	cli_out("%s: %d new run%s", other, imported->runs, imported->runs == 1 ? "" : "s");
	if (imported->cells > 0)
		cli_out(", %lld cells of a part", (long long)imported->cells);
	if (imported->present > 0)
		cli_out(", %lld cells of a part that is here already",
			(long long)imported->present);
	cli_out("\n");
	results_say_doubled(other, imported);
}

static enum prony_status import_all(const char *file, const char **others, size_t count,
				    struct error *err)
{
	struct store *store = NULL;
	enum prony_status status = PRONY_OK;
	/* Read all arguments first, so that a wrong word neither creates an empty store nor leaves
	 * half an import. */
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct store *other = NULL;
		if (!file_exists(others[i])) {
			status = error_set(err, PRONY_BAD_INPUT, "%s: no such store", others[i]);
			break;
		}
		status = store_open(others[i], true, &other, err);
		store_close(other);
	}
	if (status == PRONY_OK)
		status = store_open(file, false, &store, err);
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		struct store_imported imported = {.runs = 0};
		status = store_import(store, others[i], &imported, err);
		if (status == PRONY_OK || imported.runs > 0)
			say_imported(others[i], &imported);
	}
	store_close(store);
	return status;
}

int command_import(const struct cli_call *call, struct error *err)
{
	if (call->count == 0)
		error_set(err, PRONY_USAGE,
			  "which store? prony import FILE copies its runs into this one");
	else
		import_all(import_options.store, call->words, call->count, err);
	return 0;
}
