/* `prony delete`: deletes runs from the store permanently. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/results.h"
#include "cli/run_text.h"
#include "report/summary.h"

struct delete_options {
	const char *store;
	bool yes;
} delete_options;

const struct option delete_option_rows[] = {
	{.letter = 'y',
	 FLAG_OPTION(struct delete_options, yes, "yes", "do not ask for confirmation")},
	CLI_OPTION_STORE(struct delete_options),
	{.name = NULL},
};

/* Resolves the words to runs, without repetitions. */
static enum prony_status find_all(struct store *store, const char **words, size_t count,
				  struct run_extent *runs, size_t *found, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		enum prony_status status = store_find_run(store, words[i], &runs[*found], err);
		bool again = false;
		if (status != PRONY_OK)
			return status;
		for (size_t k = 0; k < *found; k++)
			again = again || runs[k].meta.id == runs[*found].meta.id;
		*found += !again;
	}
	return PRONY_OK;
}

/* Only "y" and "yes" confirm. Without a terminal the question is a usage error. */
static enum prony_status ask(size_t count, bool *yes, struct error *err)
{
	char *line = NULL;
	size_t capacity = 0;
	if (!isatty(STDIN_FILENO))
		return error_set(err, PRONY_USAGE,
				 "prony delete asks for confirmation, but there is no terminal; "
				 "use --yes to delete without it");
	cli_say("Delete %s permanently? [y/N] ", count == 1 ? "it" : "them");
	ssize_t length = getline(&line, &capacity, stdin);
	while (length > 0 && isspace((unsigned char)line[length - 1]))
		line[--length] = '\0';
	*yes = length > 0 && (!strcasecmp(line, "y") || !strcasecmp(line, "yes"));
	free(line);
	return PRONY_OK;
}

/* The runs are deleted even if the file cannot be made smaller now. */
static void give_space_back(struct store *store)
{
	struct error why = ERROR_INIT;
	int64_t bytes = 0;
	char size[32];
	if (store_compact(store, &bytes, &why) != PRONY_OK) {
		cli_say("prony: the file did not shrink; later runs use the space: %s\n", why.text);
		return;
	}
	format_bytes(bytes > 0 ? (double)bytes : 0, size, sizeof size);
	cli_out("%s freed\n", size);
}

static enum prony_status delete_runs(const struct delete_options *options, const char **words,
				     size_t count, struct error *err)
{
	struct store *store = NULL;
	struct run_extent *runs = memory_alloc(count * sizeof *runs);
	int64_t *ids = memory_alloc(count * sizeof *ids);
	size_t found = 0;
	bool yes = options->yes;
	enum prony_status status = results_open_existing(options->store, &store, err);
	if (status == PRONY_OK)
		status = find_all(store, words, count, runs, &found, err);
	for (size_t i = 0; i < found && status == PRONY_OK; i++) {
		run_say(&runs[i]);
		ids[i] = runs[i].meta.id;
	}
	if (status == PRONY_OK && !yes)
		status = ask(found, &yes, err);
	if (status == PRONY_OK && !yes) {
		status = error_set(err, PRONY_INTERRUPTED, "nothing was deleted");
	} else if (status == PRONY_OK) {
		status = store_delete_runs(store, ids, found, err);
		for (size_t i = 0; i < found && status == PRONY_OK; i++)
			cli_out("run %lld (%.8s) deleted\n", (long long)ids[i], runs[i].meta.uid);
		if (status == PRONY_OK)
			give_space_back(store);
	}
	store_close(store);
	free(ids);
	free(runs);
	return status;
}

int command_delete(const struct cli_call *call, struct error *err)
{
	if (call->count == 0)
		error_set(err, PRONY_USAGE,
			  "which run? prony delete RUN... takes names, numbers or the first digits "
			  "of uids");
	else
		delete_runs(&delete_options, call->words, call->count, err);
	return 0;
}
