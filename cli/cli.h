/*
 * The commands of the program: one table, one file per command. Only this folder prints or exits.
 */
#ifndef PRONY_CLI_CLI_H
#define PRONY_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"
#include "report/table.h"

struct cli_command;

/* A command line. argv[0] is the command's name; words: the positional arguments; rows: the table
 * of commands. */
struct cli_call {
	const struct cli_command *rows, *command;
	int argc;
	char **argv;
	const char **words;
	size_t count;
};

struct cli_command {
	struct command_syntax syntax; /* without arguments, words are an error */
	void *target;		      /* the struct of its options, with their defaults */
	/* Returns the exit code; an error in err is printed, and its exit code counts. */
	int (*run)(const struct cli_call *call, struct error *err);
	bool hidden; /* internal: worker, guard */
	bool raw;    /* parses argv itself */
};

/* Ends with a row whose run is NULL. */
extern const struct cli_command cli_commands[];
/* The only functions of the program that print. Characters that a terminal would interpret become
 * U+FFFD (report/text.h), whatever the text and the target. */
void cli_out(const char *format, ...) PRONY_PRINTF(1, 2); /* to standard output */
/* Flushes standard output. Returns the errno of the first failed write, 0 if all succeeded. */
int cli_finish_output(void);
void cli_say(const char *format, ...) PRONY_PRINTF(1, 2); /* to standard error */
/* Prints text that was laid out for a terminal; the colour sequences of report/text.h are kept. */
void cli_page(const char *text);
/* Writes bytes unchanged to standard output, unless it is a terminal. */
enum prony_status cli_bytes(const char *text, size_t length, struct error *err);
/* Whether standard error is a terminal that can rewrite a line. In CI it may be one too, but what
 * is written there is kept as a log. */
bool cli_is_live(void);
/* Replaces the last line on standard error, if cli_is_live; "" removes it. */
void cli_live_line(const char *text);

/* Prints "prony: text"; the text includes the remedy. Returns the exit code of its status. */
int cli_fail(const struct error *err);

/* Parses a command's options into its target; prints help or the error. Returns true when the
 * command should continue; otherwise *exit_code is the exit code. `words` has room for argc. */
bool cli_parse(const struct cli_command *command, int argc, char **argv, const char **words,
	       size_t *count, int *exit_code);
/* Parses a command line and runs the command. Returns the exit code. */
int cli_run(const struct cli_command *rows, const struct cli_command *command, int argc,
	    char **argv);

/* The option of every command with a table: "--format table|json". */
extern const char *const cli_table_formats[]; /* table, json, NULL */
#define CLI_OPTION_FORMAT(type)                                                                    \
	{                                                                                          \
		CHOICE_OPTION(type, format, "format", cli_table_formats, "FORMAT",                 \
			      "output format")                                                     \
	}
#define CLI_OPTION_DATA(type)                                                                      \
	{                                                                                          \
		TEXT_OPTION(type, data, "data", "DIR",                                             \
			    "folder of data sets (default: $PRONY_DATA, then prony/data in the "   \
			    "data folder)")                                                        \
	}
#define CLI_OPTION_PUBLIC(type)                                                                    \
	{                                                                                          \
		FLAG_OPTION(type, public, "public",                                                \
			    "leave out host names, users, command lines and absolute paths")       \
	}
#define CLI_OPTION_STORE(type)                                                                     \
	{                                                                                          \
		TEXT_OPTION(type, store, "store", "FILE",                                          \
			    "store of results (default: prony/prony.db in the data folder)")       \
	}

/* Whether standard output is a terminal with colour (NO_COLOR is respected), and its width. */
bool cli_colour(void);
int cli_width(void);

/* Prints a table as text, or as a JSON array when format is "json". */
void cli_print_table(const struct table *table, const char *format);
/* Indented JSON; the caller frees. */
char *cli_json_text(const json_t *json);
/* Prints JSON and a newline. */
void cli_print_json(const json_t *json);

/* The list of commands, printed with cli_out or cli_say; the command of a name, NULL if there is
 * none; the message for an unknown command, with the nearest name, and its exit code. */
void help_overview(const struct cli_command *rows, void (*print)(const char *format, ...));
const struct cli_command *help_find(const struct cli_command *rows, const char *word);
int help_unknown(const struct cli_command *rows, const char *word);

#endif
