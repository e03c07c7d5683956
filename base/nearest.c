#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define NEAREST_MAX_DISTANCE 3
#define NEAREST_MAX_LENGTH 63
#define PART_MIN_LENGTH 4 /* with fewer letters too many words would match */

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edit distance with insertions, deletions, substitutions and transpositions (Damerau), ignoring
 * case. Both lengths are at most NEAREST_MAX_LENGTH. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][NEAREST_MAX_LENGTH + 1];
	size_t columns = strlen(b), i = 0;

	for (size_t j = 0; j <= columns; j++)
		rows[0][j] = j;
	for (; a[i]; i++) {
		const size_t *above = rows[i % 3], *before = rows[(i + 2) % 3];
		size_t *row = rows[(i + 1) % 3];

		row[0] = i + 1;
		for (size_t j = 0; j < columns; j++) {
			size_t best = above[j] + (same_letter(a[i], b[j]) ? 0 : 1);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (above[j + 1] + 1 < best)
				best = above[j + 1] + 1;
			if (i > 0 && j > 0 && same_letter(a[i], b[j - 1]) &&
			    same_letter(a[i - 1], b[j]) && before[j - 1] + 1 < best)
				best = before[j - 1] + 1;
			row[j + 1] = best;
		}
	}
	return rows[i % 3][columns];
}

/*
 * The first word that begins with the typed one or, if there is none, the first that ends with it.
 */
static const char *longer_word(const char *word, size_t length, const char *const *words,
			       size_t count)
{
	const char *ending = NULL;

	for (size_t i = 0; length >= PART_MIN_LENGTH && i < count; i++) {
		size_t whole = words[i] ? strlen(words[i]) : 0;
		if (whole > length && !strncasecmp(words[i], word, length))
			return words[i];
		if (whole > length && !ending && !strcasecmp(words[i] + whole - length, word))
			ending = words[i];
	}
	return ending;
}

const char *word_nearest(const char *word, const char *const *words, size_t count)
{
	const char *nearest = NULL;
	size_t length = word ? strlen(word) : 0;
	size_t limit = (length + 2) / 3 + 1; /* a third of the letters, and less than all */

	if (limit > NEAREST_MAX_DISTANCE + 1)
		limit = NEAREST_MAX_DISTANCE + 1;
	if (limit > length)
		limit = length;

	if (length > NEAREST_MAX_LENGTH)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (!words[i] || strlen(words[i]) > NEAREST_MAX_LENGTH)
			continue;
		size_t distance = edit_distance(word ? word : "", words[i]);
		if (distance < limit) {
			limit = distance;
			nearest = words[i];
		}
	}
	const char *longer = nearest && limit <= 1 ? NULL : longer_word(word, length, words, count);
	return longer ? longer : nearest;
}
