/* A set of names, numbered and found by hashing. */
#include "report/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SLOTS_FIRST = 64 };

void names_release(struct names *names)
{
	arena_release(&names->arena);
	free(names->rows);
	free(names->slots);
	*names = (struct names){.count = 0};
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_of(const unsigned char *bytes, size_t length)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

/* Returns the slot of a name, or the free slot for it; there is always a free one. */
static size_t *slot_of(const struct names *names, const void *bytes, size_t length)
{
	size_t at = (size_t)hash_of(bytes, length) & (names->slot_count - 1);

	for (; names->slots[at]; at = (at + 1) & (names->slot_count - 1)) {
		const struct name *name = &names->rows[names->slots[at] - 1];
		if (name->length == length && !memcmp(name->bytes, bytes, length))
			break;
	}
	return &names->slots[at];
}

/* Keeps at most half of the slots occupied. */
static void grow(struct names *names)
{
	if (2 * (names->count + 1) <= names->slot_count)
		return;
	size_t slots = names->slot_count ? 2 * names->slot_count : SLOTS_FIRST;
	free(names->slots);
	names->slots = memory_alloc(slots * sizeof *names->slots);
	names->slot_count = slots;
	memset(names->slots, 0, slots * sizeof *names->slots);
	for (size_t i = 0; i < names->count; i++)
		*slot_of(names, names->rows[i].bytes, names->rows[i].length) = i + 1;
}

size_t names_add(struct names *names, const void *bytes, size_t length)
{
	grow(names);
	size_t *slot = slot_of(names, bytes, length);
	if (*slot)
		return *slot - 1;
	names->rows = memory_grow(names->rows, names->count, &names->capacity, sizeof *names->rows);
	char *copy = arena_alloc(&names->arena, length + 1);
	memcpy(copy, bytes, length);
	names->rows[names->count] = (struct name){copy, length};
	*slot = ++names->count;
	return names->count - 1;
}

size_t names_find(const struct names *names, const void *bytes, size_t length)
{
	if (names->count == 0)
		return NAMES_NONE;
	const size_t *slot = slot_of(names, bytes, length);
	return *slot ? *slot - 1 : NAMES_NONE;
}
