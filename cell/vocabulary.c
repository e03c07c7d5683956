#include "cell/vocabulary.h"

#include <string.h>

/* Aliases of words in any vocabulary. */
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
#define X(name, rows, prefix)                                                                      \
	static const char *const name##_words[] = {rows(WORD)};                                    \
	const struct vocabulary name##_vocabulary = {.words = name##_words,                        \
						     .count = prefix##_COUNT};                     \
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
VOCABULARIES(X)
#undef X
