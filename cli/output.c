/* Output functions of all commands: errors, options, tables, JSON. No other file prints, because
 * text from frameworks, files and other people's stores must be made safe for a terminal first. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "report/text.h"

#define ERASE_LINE "\r\033[K" /* ECMA-48, 8.3.41 */

const char *const cli_table_formats[] = {"table", "json", NULL};

/* errno of the first failed write to standard output; a later write may succeed. */
static int output_errnum;

static void put(const char *text, FILE *to)
{
	errno = 0;
	if (fputs(text, to) == EOF && to == stdout && !output_errnum)
		output_errnum = errno;
}

int cli_finish_output(void)
{
	errno = 0;
	if (fflush(stdout) != 0 && !output_errnum)
		output_errnum = errno;
	if (ferror(stdout) && !output_errnum)
		output_errnum = EIO;
	return output_errnum;
}

/* Narrower terminals break the lines themselves. */
enum { WIDTH_MIN = 40 };

static int width_of(int fd)
{
	struct winsize size;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col > 0)
		return size.ws_col > WIDTH_MIN ? size.ws_col : WIDTH_MIN;
	const char *columns = getenv("COLUMNS");
	long width = columns ? strtol(columns, NULL, 10) : 0;
	return width >= WIDTH_MIN && width <= 1000 ? (int)width : 120;
}

int cli_width(void)
{
	return width_of(STDOUT_FILENO);
}

/* Wraps lines at words; each keeps its indentation. A question, which has no line feed, stays. */
static char *wrap_lines(const char *text, int width)
{
	struct strbuf out;
	strbuf_init(&out, 0);
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		size_t length = (size_t)(end - text), indent = strspn(text, " ");
		char *line = memory_printf("%.*s", (int)length, text);
		if (indent == length || text_columns(line) <= (size_t)width)
			strbuf_printf(&out, "%s\n", line);
		else
			text_wrap(line + indent, (int)indent, width, "", "", &out);
		free(line);
	}
	strbuf_puts(&out, text);
	return strbuf_take(&out);
}

static void print_to(FILE *to, const char *format, va_list arguments)
{
	char *text = NULL;
	if (vasprintf(&text, format, arguments) < 0)
		return; /* without memory the message is lost, but the exit code remains */
	char *harmless = text_block(text);
	if (to == stderr && isatty(STDERR_FILENO)) {
		char *wrapped = wrap_lines(harmless, width_of(STDERR_FILENO));
		free(harmless);
		harmless = wrapped;
	}
	put(harmless, to);
	free(harmless);
	free(text);
}

void cli_out(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_to(stdout, format, arguments);
	va_end(arguments);
}

void cli_say(const char *format, ...)
{
	va_list arguments;
	/* Both streams may go to one file: flush first, so that messages do not end up inside a
	 * table. */
	cli_finish_output();
	va_start(arguments, format);
	print_to(stderr, format, arguments);
	va_end(arguments);
}

void cli_page(const char *text)
{
	char *harmless = text_page(text);
	put(harmless, stdout);
	free(harmless);
}

enum prony_status cli_bytes(const char *text, size_t length, struct error *err)
{
	/* Files and pipes get the bytes unchanged. */
	char *harmless = isatty(STDOUT_FILENO) ? text_block(text) : NULL;
	if (harmless) {
		text = harmless;
		length = strlen(harmless);
	}
	size_t written = fwrite(text, 1, length, stdout);
	int errnum = errno;
	bool whole = written == length && fflush(stdout) == 0;
	free(harmless);
	return whole ? PRONY_OK
		     : error_errno(err, PRONY_IO, errno ? errno : errnum,
				   "writing to standard output");
}

/* A terminal of unknown kind may show control sequences as text. */
static bool is_dumb(void)
{
	const char *term = getenv("TERM");
	return !term || !*term || !strcmp(term, "dumb");
}

bool cli_is_live(void)
{
	const char *ci = getenv("CI");
	bool job = ci && *ci && strcmp(ci, "false") != 0 && strcmp(ci, "0") != 0;
	return isatty(STDERR_FILENO) && !job && !is_dumb();
}

void cli_live_line(const char *text)
{
	char *line = text_line(text);
	/* A line that wraps could not be erased again. */
	struct winsize size;
	bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
	size_t bytes = text_fit(line, (known ? size.ws_col : (size_t)cli_width()) - 1);
	fprintf(stderr, ERASE_LINE "%.*s", (int)bytes, line);
	fflush(stderr);
	free(line);
}

int cli_fail(const struct error *err)
{
	fflush(stdout);
	cli_say("prony: %s\n", err->text);
	return prony_status_exit(err->code);
}

bool cli_parse(const struct cli_command *command, int argc, char **argv, const char **words,
	       size_t *count, int *exit_code)
{
	struct error err = ERROR_INIT;
	bool help = false;
	if (options_parse(&command->syntax, argc, argv, command->target, words, count, &help,
			  &err)) {
		*exit_code = cli_fail(&err);
		return false;
	}
	if (!help)
		return true;
	struct strbuf text;
	strbuf_init(&text, 0);
	options_help(&command->syntax, cli_width(), &text);
	cli_page(strbuf_text(&text));
	strbuf_release(&text);
	*exit_code = 0;
	return false;
}

int cli_run(const struct cli_command *rows, const struct cli_command *command, int argc,
	    char **argv)
{
	struct error err = ERROR_INIT;
	const char **words = memory_alloc(((size_t)argc + 1) * sizeof *words);
	struct cli_call call = {rows, command, argc, argv, words, 0};
	int exit_code = 0;
	if (command->raw || cli_parse(command, argc, argv, words, &call.count, &exit_code)) {
		if (call.count > 0 && !command->syntax.arguments)
			error_set(&err, PRONY_USAGE,
				  "prony %s takes no arguments, but got '%s'; see prony %s --help",
				  command->syntax.name, words[0], command->syntax.name);
		else
			exit_code = command->run(&call, &err);
		if (err.code)
			exit_code = cli_fail(&err);
	}
	free(words);
	return exit_code;
}

bool cli_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) && !(no && *no) && !is_dumb();
}

char *cli_json_text(const json_t *json)
{
	return text_of_json(json, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

void cli_print_json(const json_t *json)
{
	char *text = cli_json_text(json);
	put(text, stdout);
	put("\n", stdout);
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
	cli_page(strbuf_text(&text));
	strbuf_release(&text);
}
