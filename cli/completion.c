/* `prony completion SHELL`: prints scripts that call `prony complete WORD...` for the candidates of
 * the last word. The answers come from the parser's own tables: one "word<TAB>description" per
 * line, and :files or :folders when the shell should complete paths. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "cell/axes.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "datasets/dataset.h"
#include "frameworks/registry.h"
#include "spec/spec.h"
#include "store/store.h"
#include "zoo/zoo.h"

#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char bash_script[] =
	"# prony(1) in bash; the program itself knows the words.\n"
	"_prony()\n"
	"{\n"
	"	local line=${COMP_LINE:0:COMP_POINT} words candidate help\n"
	"	line=${line//\\\\ /$'\\37'}\n" /* a space of a file's name */
	"	read -ra words <<< \"$line\"\n"
	"	[[ $line == *[[:space:]] ]] && words+=(\"\")\n"
	"	words=(\"${words[@]//\\\\/}\")\n"
	"	words=(\"${words[@]//$'\\37'/ }\")\n"
	"	local word=${words[${#words[@]}-1]}\n"
	"	# bash replaces what stands behind the last colon or equals sign only.\n"
	"	local before=${word%\"${word##*[:=]}\"}\n"
	"	words=(\"${words[@]/#\\~\\//$HOME/}\")\n"
	"	COMPREPLY=()\n"
	"	while IFS=$'\\t' read -r candidate help; do\n"
	"		case $candidate in\n"
	"		:files | :folders)\n"
	"			compopt -o filenames 2>/dev/null\n"
	"			local IFS=$'\\n' kind=-f\n"
	"			[[ $candidate == :folders ]] && kind=-d\n"
	"			COMPREPLY+=($(compgen $kind -- \"${word#\"$before\"}\"))\n"
	"			;;\n"
	"		*)\n"
	"			COMPREPLY+=(\"${candidate#\"$before\"}\")\n"
	"			;;\n"
	"		esac\n"
	"	done < <(\"${words[0]}\" complete \"${words[@]:1}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _prony prony\n";

static const char zsh_script[] =
	"#compdef prony\n"
	"# prony(1) in zsh; the program itself knows the words.\n"
	"_prony()\n"
	"{\n"
	"	local line\n"
	"	local -a candidates\n"
	"	for line in \"${(@f)$(\"$words[1]\" complete \"${(@Q)words[2,CURRENT]}\" "
	"2>/dev/null)}\"; do\n"
	"		case $line in\n"
	"		:files) _files ;;\n"
	"		:folders) _files -/ ;;\n"
	"		?*) candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"		esac\n"
	"	done\n"
	"	_describe prony candidates\n"
	"}\n"
	/* In a folder of $fpath this file is the function itself. */
	"if [[ $funcstack[1] == _prony ]]; then _prony \"$@\"; else compdef _prony prony; fi\n";

static const char fish_script[] =
	"# prony(1) in fish; the program itself knows the words.\n"
	"function __prony_complete\n"
	"	set -l words (commandline -opc)\n"
	"	set -l token (commandline -ct)\n"
	"	test (count $token) -eq 0; and set token ''\n"
	"	for line in ($words[1] complete $words[2..-1] $token 2>/dev/null)\n"
	"		switch $line\n"
	"			case :files\n"
	"				__fish_complete_path $token\n"
	"			case :folders\n"
	"				__fish_complete_directories $token ''\n"
	"			case '*'\n"
	"				echo $line\n"
	"		end\n"
	"	end\n"
	"end\n"
	"complete -c prony -f -a '(__prony_complete)'\n";

static const struct {
	const char *shell, *script;
} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

/* The word to complete: `before` is kept, candidates begin with `begun`. */
struct word {
	const char *begun;
	int before_bytes;
	const char *before;
	const char *store; /* that the line names; NULL: the default one */
};

static void offer(const struct word *word, const char *candidate, const char *help)
{
	if (!strncmp(candidate, word->begun, strlen(word->begun)))
		cli_out("%.*s%s\t%s\n", word->before_bytes, word->before, candidate,
			help ? help : "");
}

static void offer_frameworks(const struct word *word)
{
	struct registry registry;
	struct error none = ERROR_INIT;
	struct arena arena;
	if (registry_load(&registry, &none) != PRONY_OK)
		return;
	arena_init(&arena, 0);
	for (size_t i = 0; i < registry.count; i++)
		offer(word, framework_spelling(&registry.rows[i], NULL, &arena),
		      registry.rows[i].summary);
	offer(word, "all", "all of them");
	arena_release(&arena);
	registry_release(&registry);
}

static void offer_networks(const struct word *word)
{
	for (size_t i = 0; i < zoo_network_count; i++)
		offer(word, zoo_networks[i]->name, zoo_networks[i]->summary);
}

/* Offers the runs of the store, the newest first. */
static void offer_runs(const struct word *word)
{
	struct store *store = NULL;
	struct run_extent *runs = NULL;
	size_t count = 0;
	struct arena arena;
	struct error ignored = ERROR_INIT;
	arena_init(&arena, 0);
	if (store_open(word->store, true, &store, &ignored) == PRONY_OK &&
	    store_list_runs(store, NULL, &arena, &runs, &count, &ignored) == PRONY_OK && count > 0)
		offer(word, "latest", "the newest run");
	for (size_t i = 0; i < count; i++) {
		char number[24], when[32];
		clock_format_utc(runs[i].meta.started_wall_ns, when, sizeof when);
		snprintf(number, sizeof number, "%lld", (long long)runs[i].meta.id);
		if (*runs[i].meta.name)
			offer(word, runs[i].meta.name, when);
		offer(word, number, *runs[i].meta.name ? runs[i].meta.name : when);
	}
	store_close(store);
	arena_release(&arena);
}

static void offer_datasets(const struct word *word)
{
	for (size_t i = 0; i < dataset_count; i++)
		offer(word, dataset_table[i].name, dataset_table[i].summary);
}

static void offer_suites(const struct word *word)
{
	struct arena arena;
	const char *const *names = NULL;
	size_t count = 0;
	arena_init(&arena, 0);
	if (spec_list_suites(&arena, &names, &count, NULL) == PRONY_OK)
		for (size_t i = 0; i < count; i++)
			offer(word, names[i], "suite");
	arena_release(&arena);
}

static void offer_commands(const struct cli_command *rows, const struct word *word)
{
	for (const struct cli_command *row = rows; row->run; row++)
		if (!row->hidden)
			offer(word, row->syntax.name, row->syntax.summary);
}

/* Offers words of an axis; only the last word of a list is incomplete. */
static void offer_axis(const struct axis *axis, const struct word *word)
{
	struct word last = *word;
	const char *comma = strrchr(word->begun, ',');
	char before[512];
	if (comma) {
		last.before_bytes =
			snprintf(before, sizeof before, "%.*s%.*s", word->before_bytes,
				 word->before, (int)(comma + 1 - word->begun), word->begun);
		if (last.before_bytes >= (int)sizeof before)
			return;
		last.before = before;
		last.begun = comma + 1;
	}
	if (axis == &axes[AXIS_FRAMEWORK])
		offer_frameworks(&last);
	else if (axis == &axes[AXIS_NETWORK]) {
		offer_networks(&last);
		offer(&last, "all", "all of them");
		cli_out(":files\n");
	} else if (axis == &axes[AXIS_DATASET])
		offer_datasets(&last);
	else if (axis == &axes[AXIS_DEVICE])
		offer(&last, "cpu", "all cores");
	else if (axis->type == AXIS_SWITCH) {
		offer(&last, "on", NULL);
		offer(&last, "off", NULL);
	}
	for (int i = 0; axis->vocabulary && i < axis->vocabulary->count; i++)
		offer(&last, axis->vocabulary->words[i], NULL);
}

static void offer_values(const struct option *option, const struct word *word)
{
	for (size_t i = 0; option->choices && option->choices[i]; i++)
		offer(word, option->choices[i], NULL);
	for (int id = 0; option->kind == OPTION_LIST && id < AXIS_COUNT; id++)
		if (!strcmp(option->name, axes[id].option))
			offer_axis(&axes[id], word);
	if (option->metavar && !strcmp(option->metavar, "FILE"))
		cli_out(":files\n");
	if (option->metavar && !strcmp(option->metavar, "DIR"))
		cli_out(":folders\n");
	if (option->metavar && !strcmp(option->metavar, "RUN"))
		offer_runs(word);
}

static void offer_options(const struct command_syntax *syntax, const struct word *word)
{
	for (const struct option *option = syntax->options; option && option->name; option++) {
		char text[80];
		snprintf(text, sizeof text, "--%s", option->name);
		if (!option->hidden)
			offer(word, text, option->help);
	}
	offer(word, "--help", "show what the command does");
}

/* Whether the placeholder at this place takes a run: RUN, RUN..., or A and B of `compare`. */
static bool takes_run(const char *kind, size_t length, size_t place)
{
	if (length == 1)
		return place == (size_t)(*kind - 'A');
	return length == 3 && !memcmp(kind, "RUN", 3) &&
	       (place == 0 || !strncmp(kind + 3, "...", 3));
}

/* Offers candidates for a placeholder in capitals in a command's arguments. */
static void offer_kind(const struct command_syntax *syntax, const char *kind, size_t length,
		       size_t place, const struct word *word)
{
	if (length == 4 && !memcmp(kind, "NAME", 4)) {
		if (!strcmp(syntax->name, "framework"))
			offer_frameworks(word);
		else if (!strcmp(syntax->name, "data"))
			offer_datasets(word);
		else
			offer_networks(word);
	} else if (length == 5 && !memcmp(kind, "SUITE", 5)) {
		offer_suites(word);
	} else if (takes_run(kind, length, place)) {
		offer_runs(word);
	} else if (length >= 4 && (!memcmp(kind, "FILE", 4) || !memcmp(kind, "STORE", 4) ||
				   !memcmp(kind, "COMM", 4))) {
		cli_out(":files\n");
	}
}

/* Parses "list | verify [NAME|FILE...]": lower-case words come first, placeholders in capitals
 * follow. */
static void offer_arguments(const struct command_syntax *syntax, size_t place,
			    const struct word *word)
{
	const char *text = syntax->arguments ? syntax->arguments : "";
	const char *first;
	bool small = text[strcspn(text, SMALL)] && !strcspn(text + strspn(text, "[ "), SMALL);
	for (const char *c = text; *c;) {
		size_t length = strspn(c, SMALL CAPITALS);
		char token[64];
		if (length == 0) {
			c++;
			continue;
		}
		snprintf(token, sizeof token, "%.*s", (int)length, c);
		bool suffix = c > text && c[-1] == '.'; /* of FILE.yaml */
		if (islower((unsigned char)*c) && !suffix && (place == 0 || strstr(text, " ...]")))
			offer(word, token, NULL);
		/* Offer arguments that several actions share only once. */
		else if (isupper((unsigned char)*c) && (place > 0 || !small) &&
			 (!(first = strstr(text, token)) || first == c))
			offer_kind(syntax, c, length, place, word);
		c += length;
	}
}

static const struct option *option_of_word(const struct command_syntax *syntax, const char *text)
{
	bool is_long = !strncmp(text, "--", 2);
	if (text[0] != '-')
		return NULL;
	for (const struct option *option = syntax->options; option && option->name; option++)
		if (is_long ? !strcmp(option->name, text + 2)
			    : option->letter && text[strlen(text) - 1] == option->letter)
			return option;
	return NULL;
}

static bool wants_value(const struct option *option)
{
	return option && option->kind != OPTION_FLAG;
}

static void offer_for(const struct command_syntax *syntax, size_t count, char **words)
{
	const char *last = words[count - 1], *equals = strchr(last, '=');
	const struct option *waiting = NULL;
	struct word word = {.begun = last, .before = last};
	size_t place = 0;
	for (size_t i = 0; i + 1 < count; i++) {
		bool value = wants_value(waiting);
		if (value && !strcmp(waiting->name, "store"))
			word.store = words[i];
		else if (!strncmp(words[i], "--store=", 8))
			word.store = words[i] + 8;
		waiting = value ? NULL : option_of_word(syntax, words[i]);
		place += !value && words[i][0] != '-';
	}
	if (wants_value(waiting)) {
		offer_values(waiting, &word);
	} else if (!strncmp(last, "--", 2) && equals) {
		char name[80];
		snprintf(name, sizeof name, "%.*s", (int)(equals - last), last);
		const struct option *option = option_of_word(syntax, name);
		word.before_bytes = (int)(equals + 1 - last);
		word.begun = equals + 1;
		if (wants_value(option))
			offer_values(option, &word);
	} else if (last[0] == '-') {
		offer_options(syntax, &word);
	} else {
		offer_arguments(syntax, place, &word);
	}
}

int command_complete(const struct cli_call *call, struct error *err)
{
	int argc = call->argc;
	char **argv = call->argv;
	(void)err;
	if (argc < 2)
		return 0;
	const struct cli_command *row = argc > 2 ? help_find(call->rows, argv[1]) : NULL;
	if (argc == 2 || (row && !strcmp(row->syntax.name, "help")))
		offer_commands(call->rows, &(struct word){.begun = argv[argc - 1], .before = ""});
	else if (row)
		offer_for(&row->syntax, (size_t)argc - 2, argv + 2);
	return 0;
}

int command_completion(const struct cli_call *call, struct error *err)
{
	const char *word = call->count ? call->words[0] : "";
	size_t i = 0, known = sizeof shells / sizeof *shells;
	while (i < known && strcmp(shells[i].shell, word) != 0)
		i++;
	if (call->count > 1)
		error_set(err, PRONY_USAGE, "prony completion takes one shell, not %zu",
			  call->count);
	else if (i == known)
		error_set(err, PRONY_USAGE, "%s%s%s: use bash, zsh or fish",
			  *word ? "no shell '" : "prony completion", word, *word ? "'" : "");
	else
		cli_bytes(shells[i].script, strlen(shells[i].script), err);
	return 0;
}
