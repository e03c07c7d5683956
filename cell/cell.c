#include "cell/cell.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"

void cell_defaults(struct cell *cell)
{
	*cell = (struct cell){.framework = ""};
	for (int id = 0; id < AXIS_COUNT; id++)
		if (id != AXIS_FRAMEWORK)
			axis_set(&axes[id], axes[id].initial, cell);
}

bool cell_not_installed(const struct cell *cell, const char *reason)
{
	size_t length = strcspn(cell->framework, "+");

	for (const char *at = reason; at && (at = strstr(at, CELL_INSTALL));) {
		at += strlen(CELL_INSTALL);
		/* Match the whole name, which may be in quotes, not just a prefix. */
		if (!strncmp(at, cell->framework, length) &&
		    (strchr(";'`,", at[length]) || !strncmp(at + length, " (", 2)))
			return true;
	}
	return false;
}

void cell_key(const struct cell *cell, char key[CELL_KEY_BYTES])
{
	size_t used = 0;

	for (int id = 0; id < AXIS_COUNT; id++) {
		const struct axis *axis = &axes[id];
		bool applies = axis_applies(axis, cell);
		char text[CELL_WORD_BYTES] = "none";

		if (axis->texts != AXIS_IN_KEY_AND_SPEC &&
		    (!applies || axis_is_default(axis, cell)))
			continue;
		if (applies)
			axis_text(axis, axis_value(axis, cell), text);
		used += (size_t)snprintf(key + used, CELL_KEY_BYTES - used, "%s%s=%s",
					 used ? " " : "", axis->name, text);
		assert(used < CELL_KEY_BYTES);
	}
}

void cell_hash(const struct cell *cell, char hash[CELL_HASH_BYTES])
{
	char key[CELL_KEY_BYTES], digest[DIGEST_HEX_BYTES];

	cell_key(cell, key);
	digest_bytes(key, strlen(key), digest);
	memcpy(hash, digest, CELL_HASH_BYTES - 1);
	hash[CELL_HASH_BYTES - 1] = '\0';
}
