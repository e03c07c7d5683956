/* What every command shares: errors, options, tables, JSON on standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cli/cli.h"

const char *const cli_table_formats[] = {"table", "json", NULL};

int cli_fail(const struct error *err)
{
	fflush(stdout);
	fprintf(stderr, "prony: %s\n", err->text);
	return prony_status_exit(err->code);
}

bool cli_parse(const struct cli_command *command, int argc, char **argv, void *target,
	       const char **positional, size_t *positional_count, int *exit_code)
{
	struct error err = ERROR_INIT;
	bool help = false;
	if (options_parse(&command->syntax, argc, argv, target, positional, positional_count, &help,
			  &err)) {
		*exit_code = cli_fail(&err);
		return false;
	}
	if (!help)
		return true;
	struct strbuf text;
	strbuf_init(&text, 0);
	options_help(&command->syntax, &text);
	fputs(strbuf_text(&text), stdout);
	strbuf_release(&text);
	*exit_code = 0;
	return false;
}

bool cli_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int cli_width(void)
{
	struct winsize size;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= 40)
		return size.ws_col;
	const char *columns = getenv("COLUMNS");
	long width = columns ? strtol(columns, NULL, 10) : 0;
	return width >= 40 && width <= 1000 ? (int)width : 120;
}

void cli_print_json(const json_t *json)
{
	char *text = json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	if (text)
		puts(text);
	free(text);
}

void cli_print_table(const struct table *table, const char *format)
{
	if (!strcmp(format, "json")) {
		json_t *json = table_to_json(table);
		cli_print_json(json);
		json_decref(json);
		return;
	}
	struct strbuf text;
	strbuf_init(&text, 0);
	table_render_text(table, cli_colour(), cli_width(), &text);
	fputs(strbuf_text(&text), stdout);
	strbuf_release(&text);
}
