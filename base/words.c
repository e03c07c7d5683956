#include "base/words.h"

#include <ctype.h>
#include <string.h>

#define NEAREST_MAX_DISTANCE 3
#define NEAREST_MAX_LENGTH 63

static const char *const stage_words[STAGE_COUNT] = {
	[STAGE_FORWARD] = "forward",
	[STAGE_FORWARD_BACKWARD] = "forward-backward",
	[STAGE_TRAIN] = "train",
	[STAGE_LOAD] = "load",
};

static const char *const precision_words[PRECISION_COUNT] = {
	[PRECISION_FP32] = "fp32",
	[PRECISION_TF32] = "tf32",
	[PRECISION_FP16] = "fp16",
	[PRECISION_BF16] = "bf16",
};

static const char *const sync_words[SYNC_COUNT] = {
	[SYNC_END] = "end",
	[SYNC_STEP] = "step",
	[SYNC_BLOCKS] = "blocks",
};

static const char *const optimiser_words[OPTIMISER_COUNT] = {
	[OPTIMISER_SGD] = "sgd",
	[OPTIMISER_MOMENTUM] = "momentum",
	[OPTIMISER_RMSPROP] = "rmsprop",
};

static const char *const input_words[INPUT_COUNT] = {
	[INPUT_RESIDENT] = "resident",
	[INPUT_STREAM] = "stream",
	[INPUT_NATIVE] = "native",
};

static const char *word_of(const char *const *words, size_t count, size_t value)
{
	return value < count ? words[value] : "?";
}

static bool find_word(const char *const *words, size_t count, const char *word, size_t *out)
{
	for (size_t i = 0; word && i < count; i++) {
		if (strcmp(words[i], word) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

const char *stage_name(enum stage stage)
{
	return word_of(stage_words, STAGE_COUNT, (size_t)stage);
}

const char *precision_name(enum precision precision)
{
	return word_of(precision_words, PRECISION_COUNT, (size_t)precision);
}

const char *sync_mode_name(enum sync_mode mode)
{
	return word_of(sync_words, SYNC_COUNT, (size_t)mode);
}

const char *optimiser_name(enum optimiser optimiser)
{
	return word_of(optimiser_words, OPTIMISER_COUNT, (size_t)optimiser);
}

const char *input_mode_name(enum input_mode mode)
{
	return word_of(input_words, INPUT_COUNT, (size_t)mode);
}

bool stage_parse(const char *word, enum stage *out)
{
	size_t value;

	if (word && (strcmp(word, "eval") == 0 || strcmp(word, "infer") == 0))
		value = STAGE_FORWARD;
	else if (!find_word(stage_words, STAGE_COUNT, word, &value))
		return false;
	*out = (enum stage)value;
	return true;
}

bool precision_parse(const char *word, enum precision *out)
{
	size_t value;

	if (!find_word(precision_words, PRECISION_COUNT, word, &value))
		return false;
	*out = (enum precision)value;
	return true;
}

bool sync_mode_parse(const char *word, enum sync_mode *out)
{
	size_t value;

	if (!find_word(sync_words, SYNC_COUNT, word, &value))
		return false;
	*out = (enum sync_mode)value;
	return true;
}

bool optimiser_parse(const char *word, enum optimiser *out)
{
	size_t value;

	if (!find_word(optimiser_words, OPTIMISER_COUNT, word, &value))
		return false;
	*out = (enum optimiser)value;
	return true;
}

bool input_mode_parse(const char *word, enum input_mode *out)
{
	size_t value;

	if (!find_word(input_words, INPUT_COUNT, word, &value))
		return false;
	*out = (enum input_mode)value;
	return true;
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Letters to add, leave out, change or exchange with the next one (Damerau's four kinds of error),
 * without regard to case; both lengths <= NEAREST_MAX_LENGTH.
 */
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
	return nearest;
}
