/* The commands of the program: one table, one file per command. The only place that prints or
 * exits. */
#ifndef PRONY_CLI_CLI_H
#define PRONY_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/options.h"
#include "report/table.h"

struct cli_command {
	struct command_syntax syntax;
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(const struct cli_command *command, int argc, char **argv);
	bool hidden; /* of use to the program itself only: worker, guard */
};

/* Ends with a row whose run is NULL. */
extern const struct cli_command cli_commands[];
/*
 * The ways to print; no other file of the program does. What a terminal would obey instead of show
 * becomes U+FFFD (report/text.h), whatever the text and wherever it goes.
 */
void cli_out(const char *format, ...) PRONY_PRINTF(1, 2); /* to standard output */
/* Hands on what was printed; errno of the first write to standard output that failed, 0 where all
 * arrived. */
int cli_finish_output(void);
void cli_say(const char *format, ...) PRONY_PRINTF(1, 2); /* to standard error */
/* What was laid out for a terminal, in whose colours the sequences of report/text.h stay. */
void cli_page(const char *text);
/* Standard output gets the bytes as they are, unless it is a terminal. */
enum prony_status cli_bytes(const char *text, size_t length, struct error *err);
/* Writes over the last line on standard error, a terminal; "" takes it away. */
void cli_live_line(const char *text);

/* Prints "prony: text" with the remedy that the text holds; returns the exit code of its status. */
int cli_fail(const struct error *err);

/*
 * Parses a command's options; prints help or the error. Returns true when the command should go on;
 * otherwise *exit_code is what to end with. `positional` has room for argc.
 */
bool cli_parse(const struct cli_command *command, int argc, char **argv, void *target,
	       const char **positional, size_t *positional_count, int *exit_code);
/* Likewise, for commands that take no words. */
bool cli_parse_options(const struct cli_command *command, int argc, char **argv, void *target,
		       int *exit_code);

/* The row that every command with a table has: "--format table|json". */
extern const char *const cli_table_formats[]; /* table, json, NULL */
#define CLI_OPTION_FORMAT(type)                                                                    \
	{                                                                                          \
		.name = "format", .kind = OPTION_CHOICE, .offset = offsetof(type, format),         \
		.choices = cli_table_formats, .metavar = "FORMAT", .help = "how to print"          \
	}
#define CLI_OPTION_DATA(type)                                                                      \
	{                                                                                          \
		.name = "data", .kind = OPTION_STRING, .offset = offsetof(type, data),             \
		.metavar = "DIR",                                                                  \
		.help = "folder of data sets (default: $PRONY_DATA, then prony/data in the data "  \
			"folder)"                                                                  \
	}
#define CLI_OPTION_STORE(type)                                                                     \
	{                                                                                          \
		.name = "store", .kind = OPTION_STRING, .offset = offsetof(type, store),           \
		.metavar = "FILE",                                                                 \
		.help = "store of results (default: prony/prony.db in the data folder)"            \
	}

/* Whether standard output is a terminal that takes colour (NO_COLOR respected), and its width. */
bool cli_colour(void);
int cli_width(void);

/* Prints a table as text, or as a JSON array when format is "json". */
void cli_print_table(const struct table *table, const char *format);
/* Indented JSON; the caller frees. */
char *cli_json_text(const json_t *json);
/* Prints it with a newline. */
void cli_print_json(const json_t *json);

/* One runner per command file. */
int command_run(const struct cli_command *command, int argc, char **argv);
int command_list(const struct cli_command *command, int argc, char **argv);
int command_show(const struct cli_command *command, int argc, char **argv);
int command_report(const struct cli_command *command, int argc, char **argv);
int command_export(const struct cli_command *command, int argc, char **argv);
int command_profile(const struct cli_command *command, int argc, char **argv);
int command_log(const struct cli_command *command, int argc, char **argv);
int command_import(const struct cli_command *command, int argc, char **argv);
int command_delete(const struct cli_command *command, int argc, char **argv);
int command_tag(const struct cli_command *command, int argc, char **argv);
int command_compare(const struct cli_command *command, int argc, char **argv);
int command_history(const struct cli_command *command, int argc, char **argv);
int command_framework(const struct cli_command *command, int argc, char **argv);
int command_data(const struct cli_command *command, int argc, char **argv);
int command_doctor(const struct cli_command *command, int argc, char **argv);
int command_ceilings(const struct cli_command *command, int argc, char **argv);
int command_selftest(const struct cli_command *command, int argc, char **argv);
int command_network(const struct cli_command *command, int argc, char **argv);
int command_version(const struct cli_command *command, int argc, char **argv);
int command_completion(const struct cli_command *command, int argc, char **argv);
int command_worker_check(const struct cli_command *command, int argc, char **argv);
int command_worker(const struct cli_command *command, int argc, char **argv);
/* The commands of `rows`, a line each, by cli_out or cli_say; the one of a name, NULL if there is
 * none; says that there is none, with the nearest, and returns the exit code. */
void help_overview(const struct cli_command *rows, void (*print)(const char *format, ...));
const struct cli_command *help_find(const struct cli_command *rows, const char *word);
int help_unknown(const struct cli_command *rows, const char *word);
/* `prony help`, and what scripts of shells ask for. */
int help_print(const struct cli_command *command, const struct cli_command *rows, int argc,
	       char **argv);
int completion_print(const struct cli_command *rows, int argc, char **argv);
/* `prony manual`, whose page is about `rows`. */
int manual_print(const struct cli_command *command, const struct cli_command *rows, int argc,
		 char **argv);
int command_guard(const struct cli_command *command, int argc, char **argv);

#endif
