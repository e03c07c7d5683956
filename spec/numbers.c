/* Words of the axes: lists and numeric ranges. */
#include "spec/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec_internal.h"

#define NUMBERS_MAX 4096
#define NUMBER_LIMIT 16777216 /* keeps batch x elements of a sample far from overflow */

#define REMEDY "write 64, a list 16,32, or a range 1..64*2 (doubling) or 16..64+16 (adding 16)"

void spec_list_add(struct spec *spec, struct spec_list *list, const char *text, const char *origin)
{
	/* Doubles the capacity at powers of two; the old array stays in the arena. */
	if ((list->count & (list->count - 1)) == 0) {
		size_t capacity = list->count == 0 ? 1 : list->count * 2;
		struct spec_word *words = arena_array(&spec->arena, capacity, sizeof(*words));

		if (list->count > 0)
			memcpy(words, list->words, list->count * sizeof(*words));
		list->words = words;
	}
	list->words[list->count++] =
		(struct spec_word){.text = arena_strdup(&spec->arena, text), .origin = origin};
}

bool origin_is_option(const char *origin)
{
	return origin != NULL && origin[0] == '-';
}

enum prony_status origin_status(const char *origin)
{
	return origin_is_option(origin) ? PRONY_USAGE : PRONY_BAD_INPUT;
}

/* Accepts digits only: strtoll would also accept signs and leading spaces. Advances *text. */
static bool take_number(const char **text, int64_t *out)
{
	size_t digits = strspn(*text, "0123456789");

	if (digits == 0 || digits > 9)
		return false;
	*out = strtoll(*text, NULL, 10);
	*text += digits;
	return *out >= 1 && *out <= NUMBER_LIMIT;
}

struct range {
	int64_t first, last, change;
	bool multiply;
};

/* Returns an error message; NULL when the text is a number, a list item or a range. */
static const char *parse_range(const char *text, struct range *range)
{
	const char *at = text + (*text == 'b'); /* prony prints "b64" */

	if (!take_number(&at, &range->first))
		return "is not a whole number from 1 to 16777216";
	range->last = range->first;
	range->change = 1;
	range->multiply = false;
	if (*at == '\0')
		return NULL;
	if (strncmp(at, "..", 2) != 0)
		return "is not a number";
	at += 2;
	if (!take_number(&at, &range->last))
		return "has no end from 1 to 16777216";
	if (*at != '*' && *at != '+')
		return "has no step";
	range->multiply = *at++ == '*';
	if (!take_number(&at, &range->change) || *at != '\0')
		return "has a step that is not a whole number";
	if (range->multiply && range->change < 2)
		return "never grows";
	if (range->last < range->first)
		return "ends before it starts";
	return NULL;
}

enum prony_status spec_expand_numbers(struct spec *spec, const char *text, const char *origin,
				      struct spec_list *out, struct error *err)
{
	struct spec_list list = *out;

	for (const char *item = text;;) {
		size_t length = strcspn(item, ",");
		char *part = arena_strndup(&spec->arena, item, length);
		struct range range;
		const char *wrong = parse_range(part, &range);

		if (wrong != NULL)
			return error_set(err, origin_status(origin), "%s: \"%.80s\" %s: " REMEDY,
					 origin, part, wrong);
		for (int64_t n = range.first; n <= range.last;
		     n = range.multiply ? n * range.change : n + range.change) {
			char word[24];

			if (list.count >= NUMBERS_MAX)
				return error_set(err, origin_status(origin),
						 "%s: \"%.80s\" gives more than %d numbers: use a "
						 "larger step",
						 origin, part, NUMBERS_MAX);
			snprintf(word, sizeof(word), "%lld", (long long)n);
			spec_list_add(spec, &list, word, origin);
		}
		if (item[length] == '\0')
			break;
		item += length + 1;
	}
	*out = list;
	return PRONY_OK;
}

/* Adds a word of an axis of numbers or switches; plan/ checks other words. */
static enum prony_status add_word(struct spec *spec, const struct axis *axis, const char *word,
				  const char *origin, struct spec_list *list, struct error *err)
{
	char canonical[CELL_WORD_BYTES];
	struct error wrong = ERROR_INIT;

	if (axis->needs == NULL) {
		spec_list_add(spec, list, word, origin);
		return PRONY_OK;
	}
	if (axis_canonical(axis, word, canonical, &wrong) != PRONY_OK)
		return error_set(err, origin_status(origin), "%s: %s", origin, wrong.text);
	spec_list_add(spec, list, canonical, origin);
	return PRONY_OK;
}

enum prony_status spec_list_add_words(struct spec *spec, enum axis_id axis, const char *text,
				      const char *origin, struct spec_list *list, struct error *err)
{
	enum prony_status status = PRONY_OK;

	/* The default of an axis is a word of it: "0", the network's own number of tokens. */
	if (axes[axis].type == AXIS_INT && strcmp(text, axes[axis].initial) == 0)
		return add_word(spec, &axes[axis], text, origin, list, err);
	if (axes[axis].type == AXIS_INT)
		return spec_expand_numbers(spec, text, origin, list, err);
	for (const char *word = text; status == PRONY_OK;) {
		size_t length = strcspn(word, ",");

		if (length == 0)
			return error_set(
				err, origin_status(origin),
				"%s: \"%.200s\" has an empty word: put one comma between two words",
				origin, text);
		status = add_word(spec, &axes[axis], arena_strndup(&spec->arena, word, length),
				  origin, list, err);
		if (word[length] == '\0')
			break;
		word += length + 1;
	}
	return status;
}
