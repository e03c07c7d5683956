/* `prony framework`: installs, removes and lists environments of frameworks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/framework_word.h"
#include "cli/listing.h"
#include "cli/machine_lock.h"
#include "frameworks/registry.h"

#define NAMES_MAX 64
#define JOBS_MAX 16
/* An installation waits for the registry half of the time and for the disk the other half. */
#define JOBS_USUAL 4

struct framework_options {
	const char *format, *own;
	bool full;
	long long jobs; /* 0: one per core, at most JOBS_USUAL */
} framework_options = {.format = "table"};

const struct option framework_option_rows[] = {
	{TEXT_OPTION(struct framework_options, own, "own", "PATH",
		     "with install NAME: use your own environment (an interpreter, a library, or "
		     "its folder) instead of installing one")},
	{INT_OPTION(struct framework_options, jobs, "jobs", 1, JOBS_MAX, "N",
		    "with install: number of parallel installations, if the disk has room "
		    "(default: one per core, at most 4)")},
	{FLAG_OPTION(struct framework_options, full, "full",
		     "with list: also where missing frameworks were searched")},
	CLI_OPTION_FORMAT(struct framework_options),
	{.name = NULL},
};

/* Progress goes to standard error, so that standard output has only the result. */
static void print_line(void *context, const char *text)
{
	(void)context;
	cli_say("%s\n", text);
}

static enum prony_status remove_one(struct registry *registry, const char *word, struct error *err)
{
	const struct framework *framework = NULL;
	const char *environment = "";
	enum prony_status status = framework_word(registry, word, &framework, &environment, err);

	if (status == PRONY_OK)
		status = framework_remove(framework, environment, err);
	if (status == PRONY_OK)
		cli_say("%s: removed\n", word);
	return status;
}

/* Continues after a failure, so that one framework does not block the others. */
static int remove_all(struct registry *registry, const char *const *words, size_t count)
{
	int exit_code = 0;

	for (size_t i = 0; i < count; i++) {
		struct error err = ERROR_INIT;
		if (remove_one(registry, words[i], &err) != PRONY_OK) {
			int code = cli_fail(&err);
			exit_code = exit_code ? exit_code : code;
		}
	}
	return exit_code;
}

static int take_own(struct registry *registry, const char *word, const char *path)
{
	const struct install_sink sink = {.line = print_line, .stop = &stop_wanted};
	const struct framework *framework = NULL;
	const char *environment = "";
	struct error err = ERROR_INIT;

	catch_signals();
	enum prony_status status = framework_word(registry, word, &framework, &environment, &err);
	if (status == PRONY_OK)
		status = framework_own(framework, environment, path, &sink, &err);
	return status == PRONY_OK ? 0 : cli_fail(&err);
}

static int install_all(struct registry *registry, const char *const *words, size_t count,
		       long long jobs)
{
	const struct install_sink sink = {.line = print_line, .stop = &stop_wanted};
	struct install_item *items = memory_alloc(count * sizeof(*items));
	struct error err = ERROR_INIT;
	enum prony_status status = PRONY_OK;
	bool reported = false;

	if (jobs == 0)
		jobs = parallel_cores() < JOBS_USUAL ? parallel_cores() : JOBS_USUAL;
	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		items[i] = (struct install_item){.error = ERROR_INIT};
		status = framework_word(registry, words[i], &items[i].framework,
					&items[i].environment, &err);
	}
	if (status != PRONY_OK) {
		free(items);
		return cli_fail(&err);
	}
	catch_signals();
	status = framework_install_many(items, count, (size_t)jobs, &sink);
	/* Repeat failures at the end, where users see them; report an interruption once. */
	for (size_t i = 0; i < count; i++) {
		bool interrupted = items[i].error.code == PRONY_INTERRUPTED;
		if (items[i].error.code != PRONY_OK && !(interrupted && reported))
			cli_fail(&items[i].error);
		reported = reported || interrupted;
	}
	free(items);
	return prony_status_exit(status);
}

static bool can_be_installed(const struct framework *row)
{
	return row->kind == FRAMEWORK_LIBRARY || row->kind == FRAMEWORK_PYTHON;
}

/* "all" means every framework that can be installed. */
static size_t expand_all(struct registry *registry, const char *const *words, size_t count,
			 const char **out)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], "all") != 0) {
			if (used < NAMES_MAX)
				out[used++] = words[i];
			continue;
		}
		for (size_t k = 0; k < registry->count && used < NAMES_MAX; k++)
			if (can_be_installed(&registry->rows[k]))
				out[used++] = framework_spelling(&registry->rows[k], NULL,
								 &registry->arena);
	}
	return used;
}

/* Report a mistyped name before the first download. */
static enum prony_status check_words(struct registry *registry, const char *const *words,
				     size_t count, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		const struct framework *framework;
		const char *environment;
		status = framework_word(registry, words[i], &framework, &environment, err);
	}
	return status;
}

/* Checks the words and options together. */
static enum prony_status check_call(const struct cli_call *call, struct error *err)
{
	const char *verb = call->count ? call->words[0] : "", *own = framework_options.own;
	bool list = !strcmp(verb, "list"), install = !strcmp(verb, "install");
	if (call->count > NAMES_MAX)
		return error_set(err, PRONY_USAGE, "too many arguments");
	if (!list && !install && strcmp(verb, "remove") != 0)
		return error_set(
			err, PRONY_USAGE,
			"%s%s%s; use prony framework install NAME..., remove NAME... or list",
			*verb ? "unknown action '" : "the action is missing", verb,
			*verb ? "'" : "");
	if (!list && call->count == 1)
		return error_set(err, PRONY_USAGE,
				 "prony framework %s needs names of frameworks, or all; 'prony "
				 "framework list' shows them",
				 verb);
	if (own && (!*own || !install || call->count != 2 || !strcmp(call->words[1], "all")))
		return error_set(err, PRONY_USAGE,
				 "--own needs one framework and a path: prony framework install "
				 "NAME --own PATH");
	return PRONY_OK;
}

int command_framework(const struct cli_call *call, struct error *err)
{
	const char *words[NAMES_MAX];
	struct registry registry;
	int exit_code = 0;

	if (check_call(call, err) != PRONY_OK || cli_registry(&registry, err) != PRONY_OK)
		return 0;
	size_t count = expand_all(&registry, call->words + 1, call->count - 1, words);
	if (check_words(&registry, words, count, err) != PRONY_OK)
		;
	else if (!strcmp(call->words[0], "list"))
		exit_code = listing_frameworks(&registry, words, count, framework_options.format,
					       framework_options.full);
	else if (framework_options.own)
		exit_code = take_own(&registry, words[0], framework_options.own);
	else if (!strcmp(call->words[0], "install"))
		exit_code = install_all(&registry, words, count, framework_options.jobs);
	else
		exit_code = remove_all(&registry, words, count);
	registry_release(&registry);
	return exit_code;
}
