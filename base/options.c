#include "base/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

enum {
	HELP_WIDTH = 80,       /* at most */
	HELP_TWO_COLUMNS = 60, /* with less, texts stand below their options */
	HELP_COLUMN = 30,
	HELP_INDENT = 8,
};
#define NAMES_MAX 128

struct parse {
	const struct command_syntax *syntax;
	int argc;
	char **argv;
	char *target; /* NULL in the first pass, which only checks */
	const char **positional;
	size_t positional_count;
	bool help_wanted;
};

static size_t option_count(const struct command_syntax *syntax)
{
	size_t count = 0;

	while (syntax->options && syntax->options[count].name)
		count++;
	return count;
}

static const struct option *find_long(const struct command_syntax *syntax, const char *name,
				      size_t length)
{
	for (size_t i = 0; i < option_count(syntax); i++) {
		const struct option *option = &syntax->options[i];
		if (strlen(option->name) == length && strncmp(option->name, name, length) == 0)
			return option;
	}
	return NULL;
}

static const struct option *find_letter(const struct command_syntax *syntax, char letter)
{
	for (size_t i = 0; i < option_count(syntax); i++)
		if (syntax->options[i].letter == letter)
			return &syntax->options[i];
	return NULL;
}

static enum prony_status unknown_long(const struct command_syntax *syntax, const char *name,
				      size_t length, struct error *err)
{
	const char *names[NAMES_MAX + 1];
	size_t count = 0;
	char typed[64];

	if (length < sizeof(typed)) {
		memcpy(typed, name, length);
		typed[length] = '\0';
		for (size_t i = 0; i < option_count(syntax) && count < NAMES_MAX; i++)
			if (!syntax->options[i].hidden)
				names[count++] = syntax->options[i].name;
		names[count++] = "help";
		const char *near = word_nearest(typed, names, count);
		if (near)
			return error_set(err, PRONY_USAGE,
					 "unknown option --%s; did you mean --%s? "
					 "(see 'prony %s --help')",
					 typed, near, syntax->name);
	}
	return error_set(err, PRONY_USAGE, "unknown option --%.*s; see 'prony %s --help'",
			 (int)(length < 200 ? length : 200), name, syntax->name);
}

static const char *metavar(const struct option *option)
{
	if (option->metavar)
		return option->metavar;
	switch (option->kind) {
	case OPTION_INT:
		return "N";
	case OPTION_MIB:
		return "MIB";
	case OPTION_LIST:
		return "LIST";
	case OPTION_CHOICE:
		return "WORD";
	case OPTION_STRING:
	case OPTION_FLAG:
		break;
	}
	return "TEXT";
}

static bool has_range(const struct option *option)
{
	return (option->kind == OPTION_INT || option->kind == OPTION_MIB) &&
	       (option->min != 0 || option->max != 0);
}

/* Number of MiB in a unit suffix; no suffix means MiB; 0 for an unknown unit. */
static long long unit_mib(const char *unit)
{
	if (!*unit || !strcmp(unit, "M") || !strcmp(unit, "MiB"))
		return 1;
	return !strcmp(unit, "G") || !strcmp(unit, "GiB") ? 1024 : 0;
}

static enum prony_status refuse_number(const struct command_syntax *syntax,
				       const struct option *option, const char *value,
				       struct error *err)
{
	if (option->kind == OPTION_MIB)
		return error_set(err, PRONY_USAGE,
				 "--%s: '%s' is not a size; write MiB as an integer (1536), or "
				 "with a unit (512MiB, 2GiB)",
				 option->name, value);
	return error_set(err, PRONY_USAGE, "--%s: '%s' is not an integer; see 'prony %s --help'",
			 option->name, value, syntax->name);
}

static enum prony_status parse_int(const struct command_syntax *syntax, const struct option *option,
				   const char *value, long long *out, struct error *err)
{
	char *end;

	errno = 0;
	long long number = strtoll(value, &end, 10);
	long long unit = option->kind == OPTION_MIB ? unit_mib(end) : *end == '\0';
	if (end == value || unit == 0)
		return refuse_number(syntax, option, value, err);
	if (errno == ERANGE || __builtin_mul_overflow(number, unit, &number) ||
	    (has_range(option) && (number < option->min || number > option->max)))
		return error_set(err, PRONY_USAGE, "--%s: %s is out of range; use %lld to %lld",
				 option->name, value, has_range(option) ? option->min : LLONG_MIN,
				 has_range(option) ? option->max : LLONG_MAX);
	*out = number;
	return PRONY_OK;
}

static void list_choices(const struct option *option, struct strbuf *out)
{
	for (size_t i = 0; option->choices[i]; i++)
		strbuf_printf(out, "%s%s", i > 0 ? ", " : "", option->choices[i]);
}

static enum prony_status parse_choice(const struct option *option, const char *value,
				      const char **out, struct error *err)
{
	size_t count = 0;

	for (; option->choices[count]; count++) {
		if (strcmp(option->choices[count], value) == 0) {
			*out = option->choices[count];
			return PRONY_OK;
		}
	}
	const char *near = word_nearest(value, option->choices, count);
	struct strbuf known;
	strbuf_init(&known, 0);
	list_choices(option, &known);
	enum prony_status status =
		error_set(err, PRONY_USAGE, "--%s: unknown value '%s'%s%s%s; use one of %s",
			  option->name, value, near ? " (did you mean '" : "", near ? near : "",
			  near ? "'?)" : "", strbuf_text(&known));
	strbuf_release(&known);
	return status;
}

static enum prony_status add_to_list(const struct option *option, const char *value,
				     struct option_list *list, struct error *err)
{
	if (list->count >= OPTION_LIST_MAX)
		return error_set(err, PRONY_USAGE,
				 "--%s is used more than %d times; separate values with commas",
				 option->name, OPTION_LIST_MAX);
	list->values[list->count++] = value;
	return PRONY_OK;
}

/* Checks the value and, in the second pass, stores it; `value` is NULL for flags. */
static enum prony_status accept(struct parse *parse, const struct option *option, const char *value,
				struct error *err)
{
	void *member = parse->target ? parse->target + option->offset : NULL;
	const char *word = value;
	long long number = 0;
	enum prony_status status = PRONY_OK;

	switch (option->kind) {
	case OPTION_FLAG:
		if (member)
			*(bool *)member = true;
		return PRONY_OK;
	case OPTION_LIST:
		return member ? add_to_list(option, value, member, err) : PRONY_OK;
	case OPTION_INT:
	case OPTION_MIB:
		status = parse_int(parse->syntax, option, value, &number, err);
		if (member && status == PRONY_OK)
			*(long long *)member = number;
		return status;
	case OPTION_CHOICE:
		status = parse_choice(option, value, &word, err);
		break;
	case OPTION_STRING:
		break;
	}
	if (member && status == PRONY_OK)
		*(const char **)member = word;
	return status;
}

/* The value of an option: `attached`, or the next argument. An argument that looks like a long
 * option is not used as a value; the value is reported as missing. */
static enum prony_status take_value(const struct parse *parse, const struct option *option,
				    const char *attached, int *at, const char **out,
				    struct error *err)
{
	const char *next = *at + 1 < parse->argc ? parse->argv[*at + 1] : NULL;

	if (attached) {
		*out = attached;
		return PRONY_OK;
	}
	if (next && strncmp(next, "--", 2) != 0) {
		*out = next;
		++*at;
		return PRONY_OK;
	}
	return error_set(err, PRONY_USAGE, "--%s needs a value: --%s %s%s%s", option->name,
			 option->name, metavar(option), next && next[2] ? "; found " : "",
			 next && next[2] ? next : "");
}

static enum prony_status parse_long(struct parse *parse, int *at, struct error *err)
{
	const char *name = parse->argv[*at] + 2;
	size_t length = strcspn(name, "=");
	const char *attached = name[length] == '=' ? name + length + 1 : NULL;
	const struct option *option = find_long(parse->syntax, name, length);
	const char *value = NULL;

	if (!option && !attached && strcmp(name, "help") == 0) {
		parse->help_wanted = true;
		return PRONY_OK;
	}
	if (!option)
		return unknown_long(parse->syntax, name, length, err);
	if (option->kind == OPTION_FLAG && attached)
		return error_set(err, PRONY_USAGE, "--%s takes no value; remove '=%s'",
				 option->name, attached);
	if (option->kind != OPTION_FLAG) {
		enum prony_status status = take_value(parse, option, attached, at, &value, err);
		if (status != PRONY_OK)
			return status;
	}
	return accept(parse, option, value, err);
}

/* -x, -xvalue, -x value, and several flags in one argument. */
static enum prony_status parse_letters(struct parse *parse, int *at, struct error *err)
{
	enum prony_status status = PRONY_OK;

	for (const char *c = parse->argv[*at] + 1; *c && status == PRONY_OK; c++) {
		const struct option *option = find_letter(parse->syntax, *c);
		const char *value = NULL;

		if (!option && *c == 'h') {
			parse->help_wanted = true;
			return PRONY_OK;
		}
		if (!option)
			return error_set(err, PRONY_USAGE,
					 "unknown option -%c in '%s'; see 'prony %s --help'", *c,
					 parse->argv[*at], parse->syntax->name);
		if (option->kind == OPTION_FLAG) {
			status = accept(parse, option, NULL, err);
			continue;
		}
		status = take_value(parse, option, c[1] ? c + 1 : NULL, at, &value, err);
		return status == PRONY_OK ? accept(parse, option, value, err) : status;
	}
	return status;
}

static enum prony_status parse_all(struct parse *parse, struct error *err)
{
	bool options_over = false;

	parse->positional_count = 0;
	for (int at = 1; at < parse->argc && !parse->help_wanted; at++) {
		const char *argument = parse->argv[at];
		enum prony_status status = PRONY_OK;

		if (options_over || argument[0] != '-' || argument[1] == '\0')
			parse->positional[parse->positional_count++] = argument;
		else if (strcmp(argument, "--") == 0)
			options_over = true;
		else if (argument[1] == '-')
			status = parse_long(parse, &at, err);
		else
			status = parse_letters(parse, &at, err);
		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}

enum prony_status options_parse(const struct command_syntax *syntax, int argc, char **argv,
				void *target, const char **positional, size_t *positional_count,
				bool *help_wanted, struct error *err)
{
	struct parse parse = {
		.syntax = syntax, .argc = argc, .argv = argv, .positional = positional};
	/* The first pass stores nothing, so that a wrong command line leaves *target alone. */
	enum prony_status status = parse_all(&parse, err);

	if (status == PRONY_OK && !parse.help_wanted) {
		parse.target = target;
		status = parse_all(&parse, err);
	}
	if (status != PRONY_OK)
		return status;
	*positional_count = parse.positional_count;
	*help_wanted = parse.help_wanted;
	return PRONY_OK;
}

/* Wraps a paragraph that starts at `indent`, as its later lines do. */
static void fill(struct strbuf *out, const char *text, size_t length, size_t indent, size_t width)
{
	size_t column = indent;
	size_t at = 0;
	bool line_empty = true;

	while (at < length) {
		while (at < length && (text[at] == ' ' || text[at] == '\n'))
			at++;
		size_t word = at;
		while (word < length && text[word] != ' ' && text[word] != '\n')
			word++;
		if (word == at)
			break;
		if (!line_empty && column + 1 + (word - at) > width) {
			strbuf_printf(out, "\n%*s", (int)indent, "");
			column = indent;
			line_empty = true;
		}
		if (!line_empty) {
			strbuf_putc(out, ' ');
			column++;
		}
		strbuf_add(out, text + at, word - at);
		column += word - at;
		line_empty = false;
		at = word;
	}
	strbuf_putc(out, '\n');
}

/* Length of the paragraph at `text`, up to an empty line or the end; *next points behind it. */
static size_t paragraph(const char *text, const char **next)
{
	const char *end = strstr(text, "\n\n");
	size_t length = end ? (size_t)(end - text) : strlen(text);

	*next = text + length;
	while (**next == '\n')
		++*next;
	return length;
}

/* The help sentence of an option with its choices, range or default. */
static void full_help(const struct option *option, struct strbuf *out)
{
	strbuf_puts(out, option->help ? option->help : "");
	if (option->kind == OPTION_CHOICE) {
		strbuf_printf(out, ": %s (default)", option->choices[0]);
		for (const char *const *word = option->choices + 1; *word; word++)
			strbuf_printf(out, ", %s", *word);
	} else if (has_range(option)) {
		strbuf_printf(out, " (%lld to %lld)", option->min, option->max);
	} else if (option->kind == OPTION_LIST) {
		bool known = option->initial && **option->initial;

		strbuf_printf(out, " (%s%s%srepeatable)", known ? "default: " : "",
			      known ? *option->initial : "", known ? "; " : "");
	}
}

static void help_row(const struct option *option, size_t width, struct strbuf *out)
{
	size_t column = width < HELP_TWO_COLUMNS ? HELP_INDENT : HELP_COLUMN;
	struct strbuf left, right;

	strbuf_init(&left, 0);
	strbuf_init(&right, 0);
	if (option->letter)
		strbuf_printf(&left, "  -%c, --%s", option->letter, option->name);
	else
		strbuf_printf(&left, "      --%s", option->name);
	if (option->kind != OPTION_FLAG)
		strbuf_printf(&left, " %s", metavar(option));
	full_help(option, &right);

	strbuf_puts(out, strbuf_text(&left));
	if (left.length + 2 > column)
		strbuf_printf(out, "\n%*s", (int)column, "");
	else
		strbuf_printf(out, "%*s", (int)(column - left.length), "");
	fill(out, strbuf_text(&right), right.length, column, width);
	strbuf_release(&left);
	strbuf_release(&right);
}

void options_help(const struct command_syntax *syntax, int width, struct strbuf *out)
{
	static const struct option help = {.name = "help", .letter = 'h', .help = "show this help"};
	static const struct option help_long = {.name = "help", .help = "show this help"};
	size_t columns = width < HELP_WIDTH ? (size_t)width : HELP_WIDTH;
	struct strbuf usage;

	strbuf_init(&usage, 0);
	strbuf_printf(&usage, "Usage: prony %s [options] %s", syntax->name,
		      syntax->arguments ? syntax->arguments : "");
	fill(out, strbuf_text(&usage), usage.length, 0, columns);
	strbuf_release(&usage);
	strbuf_putc(out, '\n');
	fill(out, syntax->summary, strlen(syntax->summary), 0, columns);
	for (const char *text = syntax->description; text && *text;) {
		const char *next;
		size_t length = paragraph(text, &next);

		strbuf_putc(out, '\n');
		if (*text == ' ') { /* an example: printed verbatim */
			strbuf_add(out, text, length);
			strbuf_putc(out, '\n');
		} else {
			fill(out, text, length, 0, columns);
		}
		text = next;
	}
	strbuf_puts(out, "\nOptions:\n");
	for (size_t i = 0; i < option_count(syntax); i++)
		if (!syntax->options[i].hidden)
			help_row(&syntax->options[i], columns, out);
	help_row(find_letter(syntax, 'h') ? &help_long : &help, columns, out);
}

/* Escapes text for roff, so that no character is read as a request or an escape (man(7),
 * groff_char(7)). */
static void roff_text(struct strbuf *out, const char *text, size_t length)
{
	bool line_start = true;

	for (size_t i = 0; i < length; i++) {
		if (line_start && (text[i] == '.' || text[i] == '\''))
			strbuf_puts(out, "\\&");
		line_start = text[i] == '\n';
		if (text[i] == '\\')
			strbuf_puts(out, "\\e");
		else if (text[i] == '-')
			strbuf_puts(out, "\\-");
		else
			strbuf_putc(out, text[i]);
	}
}

static void manual_row(const struct option *option, struct strbuf *out)
{
	struct strbuf sentence;

	strbuf_puts(out, ".TP\n");
	if (option->letter)
		strbuf_printf(out, "\\fB\\-%c\\fR, ", option->letter);
	strbuf_puts(out, "\\fB\\-\\-");
	roff_text(out, option->name, strlen(option->name));
	strbuf_puts(out, "\\fR");
	if (option->kind != OPTION_FLAG) {
		strbuf_puts(out, " \\fI");
		roff_text(out, metavar(option), strlen(metavar(option)));
		strbuf_puts(out, "\\fR");
	}
	strbuf_putc(out, '\n');
	strbuf_init(&sentence, 0);
	full_help(option, &sentence);
	roff_text(out, strbuf_text(&sentence), sentence.length);
	strbuf_puts(out, ".\n");
	strbuf_release(&sentence);
}

void options_manual(const struct command_syntax *syntax, struct strbuf *out)
{
	const char *arguments = syntax->arguments ? syntax->arguments : "";

	strbuf_puts(out, ".SS prony ");
	roff_text(out, syntax->name, strlen(syntax->name));
	strbuf_puts(out, " [options]");
	if (*arguments) {
		strbuf_putc(out, ' ');
		roff_text(out, arguments, strlen(arguments));
	}
	strbuf_putc(out, '\n');
	roff_text(out, syntax->summary, strlen(syntax->summary));
	strbuf_puts(out, ".\n");
	for (const char *text = syntax->description; text && *text;) {
		const char *next;
		size_t length = paragraph(text, &next);
		bool example = *text == ' ';

		strbuf_puts(out, example ? ".PP\n.nf\n" : ".PP\n");
		roff_text(out, text, length);
		strbuf_puts(out, example ? "\n.fi\n" : "\n");
		text = next;
	}
	for (size_t i = 0; i < option_count(syntax); i++)
		if (!syntax->options[i].hidden)
			manual_row(&syntax->options[i], out);
}
