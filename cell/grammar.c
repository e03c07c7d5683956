/* The spellings of frameworks and devices. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cell/cell.h"

#define DEVICES_MAX 64
#define THREADS_MAX 65536

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define LOWER LETTERS "0123456789"
#define NAME_BYTES LOWER "_-"
#define ENVIRONMENT_BYTES NAME_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZ."
#define OPTION_BYTES ENVIRONMENT_BYTES "="

static enum prony_status bad_framework(const char *spelling, const char *what, struct error *err)
{
	return error_set(err, PRONY_USAGE,
			 "framework '%s': %s; write NAME[@ENV][:BACKEND][+OPTION...] with at most "
			 "%d bytes, as in pytorch, pytorch@1.13+channels_last or keras3:jax",
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
		return bad_framework(spelling, "no name of an environment after '@'", err);
	if (*rest == ':' && (rest++, !take_word(&rest, NAME_BYTES, parsed.backend)))
		return bad_framework(spelling, "no backend after ':'", err);
	while (*rest == '+')
		if (rest++, !take_word(&rest, OPTION_BYTES, options[count++]))
			return bad_framework(spelling, "no option after '+'", err);
	if (*rest) {
		char what[64];
		snprintf(what, sizeof what, "did not expect '%.40s'", rest);
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

static enum prony_status bad_device(const char *spelling, const char *what, struct error *err)
{
	return error_set(err, PRONY_USAGE,
			 "device '%s': %s; write cpu (all cores), cpu:4 (four of them), cuda:0, "
			 "cuda:0+1 (two GPUs), or what a framework's library calls another one, as "
			 "in gpu.1 or tpu:0",
			 spelling, what);
}

/* A decimal number without sign or leading zero: one spelling for one device. */
static bool take_number(const char **text, long limit, long *out)
{
	size_t length = strspn(*text, "0123456789");
	long value = 0;

	if (length == 0 || length > 9 || (length > 1 && **text == '0'))
		return false;
	for (size_t i = 0; i < length; i++)
		value = 10 * value + ((*text)[i] - '0');
	if (value > limit)
		return false;
	*text += length;
	*out = value;
	return true;
}

/* One GPU or several: what follows "cuda:". */
static enum prony_status parse_gpus(const char *spelling, const char *rest, struct error *err)
{
	uint64_t seen = 0;
	long number = 0;

	for (bool first = true; first || *rest == '+'; first = false) {
		rest += !first;
		if (!take_number(&rest, DEVICES_MAX - 1, &number))
			return bad_device(spelling, "no number of a GPU after ':' or '+'", err);
		if (seen & (UINT64_C(1) << number))
			return bad_device(spelling, "a GPU is named twice", err);
		seen |= UINT64_C(1) << number;
	}
	if (*rest)
		return bad_device(spelling, "did not expect what follows the number", err);
	return PRONY_OK;
}

/*
 * A library's own word for one: NAME, NAME:N or NAME.N. Whether there is one only the library
 * knows, so a slip in one of our words has to be caught here; gpu, tpu, npu and their like are
 * none.
 */
static enum prony_status parse_other_device(const char *spelling, struct error *err)
{
	static const char *const ours[] = {"cpu", "cuda"};
	char name[CELL_WORD_BYTES], what[64];
	const char *rest = spelling;
	long number = 0;

	if (!take_word(&rest, LOWER "_", name) || !strchr(LETTERS, name[0]))
		return bad_device(spelling, "the name is missing or not in lower case", err);
	const char *near = word_nearest(name, ours, 2);
	if (!strcmp(name, "cuda") || !strcmp(name, "cpu"))
		return bad_device(spelling, "no number after ':'", err);
	for (size_t i = 0; i < 2; i++)
		if (strncmp(name, ours[i], strlen(ours[i])) == 0)
			near = ours[i];
	if (near && (strlen(name) != 3 || strcmp(name + 1, "pu") != 0 || name[0] == 'c')) {
		snprintf(what, sizeof(what), "unknown; did you mean %s?", near);
		return bad_device(spelling, what, err);
	}
	if (*rest && ((*rest != ':' && *rest != '.') ||
		      (rest++, !take_number(&rest, DEVICES_MAX - 1, &number)) || *rest))
		return bad_device(spelling, "no number after the name", err);
	return PRONY_OK;
}

bool device_is_cpu(const char *spelling)
{
	return strncmp(spelling, "cpu", 3) == 0;
}

enum prony_status device_parse(const char *spelling, int *threads, struct error *err)
{
	enum prony_status status = PRONY_OK;
	long number = 0;

	if (strlen(spelling) >= CELL_WORD_BYTES)
		return bad_device(spelling, "too long", err);
	if (!strncmp(spelling, "cpu:", 4)) {
		const char *rest = spelling + 4;
		if (!take_number(&rest, THREADS_MAX, &number) || *rest || number == 0)
			return bad_device(spelling, "no number of cores after 'cpu:'", err);
	} else if (!strncmp(spelling, "cuda:", 5)) {
		status = parse_gpus(spelling, spelling + 5, err);
	} else if (strcmp(spelling, "cpu") != 0) {
		status = parse_other_device(spelling, err);
	}
	if (status == PRONY_OK)
		*threads = (int)number;
	return status;
}
