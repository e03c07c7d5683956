/* Option tables: one row per option yields the parser, --help and the manual page. */
#ifndef PRONY_BASE_OPTIONS_H
#define PRONY_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_STRING, /* const char *, borrowed from argv */
	OPTION_LIST,   /* struct option_list: repeatable, each value split at commas later */
	OPTION_INT,    /* long long within [min, max] */
	OPTION_MIB,    /* long long in MiB within [min, max]: 1024, 512MiB, 2GiB */
	OPTION_CHOICE, /* const char * among `choices` */
};

#define OPTION_LIST_MAX 64
struct option_list {
	const char *values[OPTION_LIST_MAX]; /* as given, borrowed from argv */
	size_t count;
};

struct option {
	const char *name; /* long name without dashes; NULL ends a table */
	char letter;	  /* short name or 0 */
	enum option_kind kind;
	size_t offset; /* of the member in the caller's struct */
	const char *metavar;
	const char *help;	    /* one sentence, no full stop */
	const char *const *choices; /* OPTION_CHOICE: NULL-terminated, the default first */
	const char *const *initial; /* OPTION_LIST: the default that help shows; NULL or "": none */
	long long min, max;	    /* OPTION_INT, OPTION_MIB; both 0: any */
	bool hidden;
};

/* The members of a row by its kind: {TEXT_OPTION(struct my_options, output, "output", "FILE",
 * "...")}. */
#define FLAG_OPTION(type, member, flag, text)                                                      \
	.name = (flag), .kind = OPTION_FLAG, .offset = offsetof(type, member), .help = (text)
#define TEXT_OPTION(type, member, flag, what, text)                                                \
	.name = (flag), .kind = OPTION_STRING, .offset = offsetof(type, member),                   \
	.metavar = (what), .help = (text)
#define CHOICE_OPTION(type, member, flag, words, what, text)                                       \
	.name = (flag), .kind = OPTION_CHOICE, .offset = offsetof(type, member),                   \
	.choices = (words), .metavar = (what), .help = (text)
#define INT_OPTION(type, member, flag, low, high, what, text)                                      \
	.name = (flag), .kind = OPTION_INT, .offset = offsetof(type, member), .min = (low),        \
	.max = (high), .metavar = (what), .help = (text)

struct command_syntax {
	const char *name;	 /* "run" */
	const char *arguments;	 /* "[SUITE|FILE.yaml ...]" */
	const char *summary;	 /* one line for the list of commands */
	const char *description; /* paragraphs for help and the manual page; may be NULL */
	const struct option *options;
};

/*
 * Parses argv[1..] into the struct at `target` (defaults set by the caller). Accepts --name value,
 * --name=value, -x value, -xvalue, combined flags, "--". Positional arguments end up in
 * positional[0..*positional_count-1] (room for argc). PRONY_USAGE names the option, what was wrong,
 * the nearest known option, and the remedy. --help sets *help_wanted and returns PRONY_OK.
 */
enum prony_status options_parse(const struct command_syntax *syntax, int argc, char **argv,
				void *target, const char **positional, size_t *positional_count,
				bool *help_wanted, struct error *err);

/* The --help text of a command in lines of at most `width` columns, or 80 if that is less. */
void options_help(const struct command_syntax *syntax, int width, struct strbuf *out);

/* The section of the manual page (roff man macros) of a command. */
void options_manual(const struct command_syntax *syntax, struct strbuf *out);

#endif
