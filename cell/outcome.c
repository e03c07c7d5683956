/* Statuses and flags of cells as words. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cell/cell.h"

static const char *const status_words[CELL_STATUS_COUNT] = {
#define X(id, name) [CELL_##id] = name,
	CELL_STATUSES(X)
#undef X
};

static const struct {
	const char *name;
	unsigned flag;
} flag_rows[] = {
#define X(id, word, bit) {.name = word, .flag = CELL_FLAG_##id},
	CELL_FLAGS(X)
#undef X
};
static const size_t flag_count = sizeof flag_rows / sizeof flag_rows[0];

const char *cell_status_name(enum cell_status status)
{
	return (unsigned)status < CELL_STATUS_COUNT ? status_words[status] : "?";
}

bool cell_status_parse(const char *word, enum cell_status *out)
{
	for (unsigned i = 0; word && i < CELL_STATUS_COUNT; i++) {
		if (!strcmp(status_words[i], word)) {
			*out = (enum cell_status)i;
			return true;
		}
	}
	return false;
}

void cell_flags_text(unsigned flags, char *out, size_t out_bytes)
{
	size_t used = 0;

	assert(out_bytes > 0);
	out[0] = '\0';
	for (size_t i = 0; i < flag_count; i++) {
		if (!(flags & flag_rows[i].flag))
			continue;
		size_t length = strlen(flag_rows[i].name) + (used > 0);
		/* A truncated word would be a different word. */
		if (length >= out_bytes - used)
			return;
		snprintf(out + used, out_bytes - used, "%s%s", used ? "," : "", flag_rows[i].name);
		used += length;
	}
}

unsigned cell_flags_parse(const char *text)
{
	unsigned flags = 0;

	while (text && *text) {
		size_t length = strcspn(text, ",");
		for (size_t i = 0; i < flag_count; i++)
			if (strlen(flag_rows[i].name) == length &&
			    !memcmp(flag_rows[i].name, text, length))
				flags |= flag_rows[i].flag;
		text += length + (text[length] == ',');
	}
	return flags;
}

enum cell_status cell_status_from(enum prony_status status)
{
	switch (status) {
	case PRONY_OK:
		return CELL_OK;
	case PRONY_INTERRUPTED: /* not a result of the cell: it can still be run */
		return CELL_PENDING;
	case PRONY_UNSUPPORTED:
		return CELL_UNSUPPORTED;
	case PRONY_MISSING:
		return CELL_MISSING;
	case PRONY_MISMATCH:
		return CELL_MISMATCH;
	case PRONY_OUT_OF_MEMORY:
	case PRONY_NOMEM:
		return CELL_OUT_OF_MEMORY;
	case PRONY_TIMEOUT:
		return CELL_TIMEOUT;
	case PRONY_CRASHED:
	case PRONY_PROTOCOL:
		return CELL_CRASHED;
	case PRONY_USAGE:
	case PRONY_BAD_INPUT:
	case PRONY_INTERNAL:
	case PRONY_IO:
	case PRONY_STORE:
	case PRONY_INVALID:
	case PRONY_STATUS_COUNT:
		break;
	}
	return CELL_INVALID;
}
