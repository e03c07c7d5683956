#include "base/words.h"

#include <string.h>

#include "base/strbuf.h"

const char *words_next(const char **text, struct arena *arena, bool *wrong)
{
	const char *at = *text + strspn(*text, " \t\n");
	struct strbuf word;
	char quote = '\0';

	if (!*at)
		return NULL;
	strbuf_init(&word, 0);
	for (; *at && (quote || !strchr(" \t\n", *at)); at++) {
		if (quote ? *at == quote : *at == '\'' || *at == '"')
			quote = quote ? '\0' : *at;
		else if (*at == '\\' && quote != '\'' && at[1])
			strbuf_putc(&word, *++at);
		else
			strbuf_putc(&word, *at);
	}
	*wrong = quote != '\0';
	*text = at;
	const char *kept = arena_strdup(arena, strbuf_text(&word));
	strbuf_release(&word);
	return kept;
}
