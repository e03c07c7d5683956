/* The spellings of frameworks. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell/cell.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define LOWER LETTERS "0123456789"
#define NAME_BYTES LOWER "_-"
#define ENVIRONMENT_BYTES NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZ."
#define OPTION_BYTES ENVIRONMENT_BYTES "="

static enum prony_status bad_framework(const char *spelling, const char *what, struct error *err)
{
	return error_set(err, PRONY_USAGE,
			 "framework '%s': %s; write NAME[@ENV][:BACKEND][+OPTION...] in at most %d "
			 "bytes, such as pytorch, pytorch@1.13+channels_last or keras3:jax",
			 spelling, what, CELL_WORD_BYTES - 1);
}

/* Takes the bytes of `allowed` from *text into out, which has room for a whole spelling; false for
 * none. */
static bool take_word(const char **text, const char *allowed, char out[CELL_WORD_BYTES])
{
	size_t length = strspn(*text, allowed);

	/* A dash in front would make the word an option of some command line. */
	if (length == 0 || length >= CELL_WORD_BYTES || **text == '-' || **text == '=')
		return false;
	memcpy(out, *text, length);
	out[length] = '\0';
	*text += length;
	return true;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Joins words that are sorted, each once. */
static void join_options(const char (*words)[CELL_WORD_BYTES], size_t count, char separator,
			 bool leading, char *out, size_t out_bytes)
{
	size_t used = strlen(out);

	for (size_t i = 0; i < count; i++) {
		if (i > 0 && !strcmp(words[i - 1], words[i]))
			continue;
		if ((leading || i > 0) && used + 1 < out_bytes)
			out[used++] = separator;
		int added = snprintf(out + used, out_bytes - used, "%s", words[i]);
		used += (size_t)added;
		assert(used < out_bytes);
	}
}

enum prony_status cell_parse_framework(const char *spelling, struct cell *cell, struct error *err)
{
	/* Each option takes two bytes of a spelling at least. */
	char options[CELL_WORD_BYTES / 2][CELL_WORD_BYTES];
	struct cell parsed = {.framework = ""};
	const char *rest = spelling;
	size_t count = 0;

	if (strlen(spelling) >= CELL_WORD_BYTES)
		return bad_framework(spelling, "too long", err);
	if (!take_word(&rest, NAME_BYTES, parsed.name))
		return bad_framework(spelling, "the name is missing or not in lower case", err);
	if (*rest == '@' && (rest++, !take_word(&rest, ENVIRONMENT_BYTES, parsed.environment)))
		return bad_framework(spelling, "the environment is missing after '@'", err);
	if (*rest == ':' && (rest++, !take_word(&rest, NAME_BYTES, parsed.backend)))
		return bad_framework(spelling, "the backend is missing after ':'", err);
	while (*rest == '+')
		if (rest++, !take_word(&rest, OPTION_BYTES, options[count++]))
			return bad_framework(spelling, "an option is missing after '+'", err);
	if (*rest) {
		char what[64];
		snprintf(what, sizeof what, "unexpected '%.40s'", rest);
		return bad_framework(spelling, what, err);
	}
	qsort(options, count, sizeof options[0], compare_words);
	join_options((const char(*)[CELL_WORD_BYTES])options, count, ',', false, parsed.options,
		     sizeof parsed.options);
	snprintf(parsed.framework, sizeof parsed.framework, "%s", parsed.name);
	size_t used = strlen(parsed.framework);
	if (*parsed.environment)
		used += (size_t)snprintf(parsed.framework + used, sizeof parsed.framework - used,
					 "@%s", parsed.environment);
	if (*parsed.backend)
		snprintf(parsed.framework + used, sizeof parsed.framework - used, ":%s",
			 parsed.backend);
	join_options((const char(*)[CELL_WORD_BYTES])options, count, '+', true, parsed.framework,
		     sizeof parsed.framework);
	memcpy(cell->framework, parsed.framework, sizeof cell->framework);
	memcpy(cell->name, parsed.name, sizeof cell->name);
	memcpy(cell->environment, parsed.environment, sizeof cell->environment);
	memcpy(cell->backend, parsed.backend, sizeof cell->backend);
	memcpy(cell->options, parsed.options, sizeof cell->options);
	return PRONY_OK;
}
