/* Placeholders in braces in commands and variables. */
#include <string.h>

#include "base/strbuf.h"
#include "frameworks/descriptor.h"

const char *const placeholder_names[PLACEHOLDER_COUNT] = {
#define X(id, name) name,
	PLACEHOLDERS(X)
#undef X
};

enum placeholder placeholder_at(const char *text, size_t *length)
{
	for (int i = 0; i < PLACEHOLDER_COUNT; i++) {
		size_t name = strlen(placeholder_names[i]);

		if (strncmp(text + 1, placeholder_names[i], name) == 0 && text[name + 1] == '}') {
			*length = name + 2;
			return (enum placeholder)i;
		}
	}
	return PLACEHOLDER_COUNT;
}

const char *placeholders_replace(const char *text, const char *const values[PLACEHOLDER_COUNT],
				 struct arena *arena)
{
	struct strbuf out;
	size_t length;

	strbuf_init(&out, 0);
	while (*text) {
		enum placeholder which =
			*text == '{' ? placeholder_at(text, &length) : PLACEHOLDER_COUNT;

		if (which != PLACEHOLDER_COUNT) {
			strbuf_puts(&out, values[which]);
			text += length;
		} else {
			strbuf_putc(&out, *text++);
		}
	}
	const char *kept = arena_strdup(arena, strbuf_text(&out));
	strbuf_release(&out);
	return kept;
}
