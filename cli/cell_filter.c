#include "cli/cell_filter.h"

#include <string.h>

#include "base/strbuf.h"

enum { HASH_WORD_MIN = 4 };

/* Otherwise `prony log native` would match every framework that loads its own batches. */
static const char hidden[] = "input=native";

/* Whether `word` is a word of the key, whole or after its "=". */
static bool key_has(const char *key, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = key; *at; at += strspn(at, " ")) {
		size_t end = strcspn(at, " ");
		const char *value = memchr(at, '=', end);
		value = value ? value + 1 : at;
		bool bare = end != strlen(hidden) || strncmp(at, hidden, end) != 0;
		if ((end == length && !strncmp(at, word, length)) ||
		    (bare && (size_t)(at + end - value) == length && !strncmp(value, word, length)))
			return true;
		at += end;
	}
	return false;
}

static bool matches(const char *key, const char *hash, const char *word)
{
	size_t length = strlen(word);
	if (length >= HASH_WORD_MIN && !strncmp(hash, word, length))
		return true;
	/* A whole key in one argument, as other commands print it. */
	return key_has(key, word) || (strchr(word, ' ') && strstr(key, word));
}

bool cell_filter_match(const char *key, const char *hash, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!matches(key, hash, words[i]))
			return false;
	return true;
}

char *cell_filter_text(const char *const *words, size_t count)
{
	struct strbuf text;
	strbuf_init(&text, 0);
	for (size_t i = 0; i < count; i++)
		strbuf_printf(&text, "%s%s", i ? " " : "", words[i]);
	return strbuf_take(&text);
}
