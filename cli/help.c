/* `prony help [COMMAND]` and `prony version`: the same output as the options of that name. */
#include <string.h>

#include "base/digest.h"
#include "base/identity.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "frameworks/registry.h"
#include "report/text.h"

enum { SUMMARY_COLUMN = 17 };

void help_overview(const struct cli_command *rows, void (*print)(const char *format, ...))
{
	print("prony: a dynamometer for deep-learning frameworks\n\n"
	      "Usage: prony COMMAND [OPTIONS]\n\nCommands:\n");
	for (const struct cli_command *command = rows; command->run; command++) {
		struct strbuf summary;
		if (command->hidden)
			continue;
		strbuf_init(&summary, 0);
		text_wrap(command->syntax.summary, SUMMARY_COLUMN, cli_width(), "", "", &summary);
		print("  %-14s %s", command->syntax.name, strbuf_text(&summary) + SUMMARY_COLUMN);
		strbuf_release(&summary);
	}
	print("\n'prony help COMMAND' explains a command;\nprony(1) explains everything.\n");
}

const struct cli_command *help_find(const struct cli_command *rows, const char *word)
{
	for (const struct cli_command *command = rows; command->run; command++)
		if (!strcmp(word, command->syntax.name))
			return command;
	return NULL;
}

/* The command whose first word this is: install, fetch, verify. */
static const char *command_with(const struct cli_command *rows, const char *word)
{
	size_t length = strlen(word);
	for (const struct cli_command *command = rows; command->run; command++) {
		const char *words = command->syntax.arguments;
		for (const char *at = words; at && length > 3 && !command->hidden;) {
			at = strstr(at, word);
			if (!at)
				break;
			if ((at == words || at[-1] == ' ' || at[-1] == '[') && at[length] == ' ')
				return command->syntax.name;
			at += length;
		}
	}
	return NULL;
}

int help_unknown(const struct cli_command *rows, const char *word)
{
	const char *names[64] = {NULL};
	size_t count = 0;
	for (const struct cli_command *command = rows; command->run && count < 64; command++)
		if (!command->hidden)
			names[count++] = command->syntax.name;
	const char *owner = command_with(rows, word);
	const char *nearest = owner ? NULL : word_nearest(word, names, count);
	struct error err = ERROR_INIT;
	error_set(&err, PRONY_USAGE, "no command '%s'%s%s%s%s%s; 'prony --help' lists the commands",
		  word, nearest || owner ? " (did you mean '" : "", owner ? owner : "",
		  owner ? " " : "",
		  nearest ? nearest
		  : owner ? word
			  : "",
		  nearest || owner ? "'?)" : "");
	return cli_fail(&err);
}

int command_help(const struct cli_call *call, struct error *err)
{
	char option[] = "--help";
	if (call->count > 1) {
		error_set(err, PRONY_USAGE, "prony help takes one command, not %zu", call->count);
		return 0;
	}
	if (call->count == 0) {
		help_overview(call->rows, cli_out);
		return 0;
	}
	const struct cli_command *asked = help_find(call->rows, call->words[0]);
	if (!asked || asked->hidden)
		return help_unknown(call->rows, call->words[0]);
	char *of[] = {call->argv[1], option, NULL};
	return cli_run(call->rows, asked, 2, of);
}

/* Prints the version, the commit if it is known, and the SHA-256 of the executable and of the
 * library that native, the floor, would load. */
static void print_version(void)
{
	struct registry registry;
	struct framework_location place;
	struct arena arena;
	struct error ignored = ERROR_INIT;
	char hex[DIGEST_HEX_BYTES];
	const char *build = identity_build();
	cli_out("prony " PRONY_VERSION "%s%s%s\nexecutable sha256 %s\n", *build ? " (" : "", build,
		*build ? ")" : "", identity_sha256());
	if (registry_load(&registry, &ignored) != PRONY_OK)
		return;
	const struct framework *native = framework_find(&registry, "native", NULL);
	arena_init(&arena, 0);
	if (native && framework_locate(native, NULL, &arena, &place, &ignored) == PRONY_OK &&
	    place.library && digest_file(place.library, hex, &ignored) == PRONY_OK)
		cli_out("library of native sha256 %s  %s\n", hex, place.library);
	arena_release(&arena);
	registry_release(&registry);
}

int command_version(const struct cli_call *call, struct error *err)
{
	(void)call;
	(void)err;
	print_version();
	return 0;
}
