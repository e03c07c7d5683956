/* `prony framework`: private environments of frameworks. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/listing.h"
#include "frameworks/registry.h"

#define NAMES_MAX 64

struct framework_options {
	const char *format;
};

const struct option framework_option_rows[] = {
	CLI_OPTION_FORMAT(struct framework_options),
	{.name = NULL},
};

static volatile int stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* Progress goes to standard error, so that output stays what was asked for. */
static void print_line(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "%s\n", text);
}

static enum prony_status unknown_name(const char *name, struct error *err)
{
	const char *nearest = framework_nearest(name);
	char names[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < framework_count && used < sizeof(names); i++)
		if (!framework_registry[i].harness_only)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", framework_registry[i].name);
	return error_set(err, PRONY_USAGE, "no framework '%s'%s%s%s; there are: %s", name,
			 nearest ? " (did you mean '" : "", nearest ? nearest : "",
			 nearest ? "'?)" : "", names);
}

enum prony_status framework_word(const char *word, const struct framework **framework,
				 const char **environment, struct error *err)
{
	char name[64];
	size_t length = strcspn(word, "@:+");

	if (word[length] == ':' || word[length] == '+' || strpbrk(word + length, ":+"))
		return error_set(
			err, PRONY_USAGE,
			"'%s': what is installed is NAME or NAME@ENV; a backend or an option is "
			"chosen with prony run",
			word);
	snprintf(name, sizeof(name), "%.*s", (int)length, word);
	*framework = framework_find(name);
	*environment = word[length] == '@' ? word + length + 1 : "";
	if (!*framework)
		return unknown_name(name, err);
	if (word[length] == '@' && !**environment)
		return error_set(err, PRONY_USAGE,
				 "'%s': the name of the environment after @ is missing", word);
	return PRONY_OK;
}

static enum prony_status act_on(const char *verb, const char *word, struct error *err)
{
	const struct install_sink sink = {.line = print_line, .stop = &stop};
	const struct framework *framework = NULL;
	const char *environment = "";
	enum prony_status status = framework_word(word, &framework, &environment, err);

	if (status != PRONY_OK)
		return status;
	if (strcmp(verb, "install") == 0)
		return framework_install(framework, environment, &sink, err);
	status = framework_remove(framework, environment, err);
	if (status == PRONY_OK)
		fprintf(stderr, "%s: removed\n", word);
	return status;
}

/* An installation cleans up when it is interrupted. */
static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Goes on after a failure: one framework that cannot be had must not keep the rest away. */
static int act_on_all(const char *verb, const char *const *words, size_t count)
{
	int exit_code = 0;

	if (strcmp(verb, "install") == 0)
		catch_signals();
	for (size_t i = 0; i < count && !stop; i++) {
		struct error err = ERROR_INIT;
		if (act_on(verb, words[i], &err) != PRONY_OK) {
			int code = cli_fail(&err);
			exit_code = exit_code ? exit_code : code;
		}
	}
	return stop ? prony_status_exit(PRONY_INTERRUPTED) : exit_code;
}

/* "all" stands for what can be installed. */
static size_t expand_all(const char *const *words, size_t count, const char **out)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], "all") != 0) {
			if (used < NAMES_MAX)
				out[used++] = words[i];
			continue;
		}
		for (size_t k = 0; k < framework_count && used < NAMES_MAX; k++)
			if (framework_registry[k].kind != FRAMEWORK_BUILTIN)
				out[used++] = framework_registry[k].name;
	}
	return used;
}

/* A mistyped name is said before the first of the others is downloaded. */
static enum prony_status check_words(const char *const *words, size_t count, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (size_t i = 0; i < count && status == PRONY_OK; i++) {
		const struct framework *framework;
		const char *environment;
		status = framework_word(words[i], &framework, &environment, err);
	}
	return status;
}

int command_framework(const struct cli_command *command, int argc, char **argv)
{
	struct framework_options options = {.format = "table"};
	const char *positional[NAMES_MAX], *words[NAMES_MAX];
	struct error err = ERROR_INIT;
	size_t count = 0;
	int exit_code = 0;

	if (argc > NAMES_MAX)
		return cli_fail((error_set(&err, PRONY_USAGE, "too many arguments"), &err));
	if (!cli_parse(command, argc, argv, &options, positional, &count, &exit_code))
		return exit_code;
	const char *verb = count ? positional[0] : "";
	bool list = strcmp(verb, "list") == 0;
	if (!list && strcmp(verb, "install") != 0 && strcmp(verb, "remove") != 0)
		return cli_fail((error_set(&err, PRONY_USAGE,
					   "%s%s%s; say prony framework install NAME..., remove "
					   "NAME... or list",
					   *verb ? "no action '" : "what to do is missing", verb,
					   *verb ? "'" : ""),
				 &err));
	if (!list && count == 1)
		return cli_fail(
			(error_set(&err, PRONY_USAGE,
				   "prony framework %s takes the names of frameworks, or all; "
				   "'prony framework list' shows them",
				   verb),
			 &err));
	size_t word_count = expand_all(positional + 1, count - 1, words);
	if (check_words(words, word_count, &err) != PRONY_OK)
		return cli_fail(&err);
	if (list)
		return listing_frameworks(words, word_count, options.format);
	return act_on_all(verb, words, word_count);
}
