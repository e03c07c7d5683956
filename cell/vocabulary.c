#include "cell/vocabulary.h"

#include <string.h>

/* Other spellings of a word, whichever vocabulary it stands in. */
static const struct {
	const char *alias, *word;
} aliases[] = {{"eval", "forward"}, {"infer", "forward"}};

const char *vocabulary_word(const struct vocabulary *vocabulary, int value)
{
	return value >= 0 && value < vocabulary->count ? vocabulary->words[value] : "?";
}

int vocabulary_find(const struct vocabulary *vocabulary, const char *word)
{
	for (size_t i = 0; word && i < sizeof aliases / sizeof *aliases; i++)
		if (!strcmp(aliases[i].alias, word))
			word = aliases[i].word;
	for (int i = 0; word && i < vocabulary->count; i++)
		if (!strcmp(vocabulary->words[i], word))
			return i;
	return -1;
}

#define WORD(id, word) [id] = (word),
#define VOCABULARY(name, rows, count_)                                                             \
	static const char *const name##_words[] = {rows(WORD)};                                    \
	const struct vocabulary name##_vocabulary = {.words = name##_words, .count = (count_)};    \
	const char *name##_name(enum name value)                                                   \
	{                                                                                          \
		return vocabulary_word(&name##_vocabulary, (int)value);                            \
	}                                                                                          \
	bool name##_parse(const char *word, enum name *out)                                        \
	{                                                                                          \
		int value = vocabulary_find(&name##_vocabulary, word);                             \
		if (value >= 0)                                                                    \
			*out = (enum name)value;                                                   \
		return value >= 0;                                                                 \
	}
VOCABULARY(stage, STAGES, STAGE_COUNT)
VOCABULARY(precision, PRECISIONS, PRECISION_COUNT)
VOCABULARY(sync_mode, SYNC_MODES, SYNC_COUNT)
VOCABULARY(optimiser, OPTIMISERS, OPTIMISER_COUNT)
VOCABULARY(input_mode, INPUT_MODES, INPUT_COUNT)
