#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ARENA_ALIGN 64
#define ARENA_BLOCK_BYTES ((size_t)64 * 1024)

/* The header takes one aligned slot, so that the payload behind it is aligned too. */
struct arena_block {
	struct arena_block *next;
	size_t used_bytes, capacity_bytes; /* header included */
};

_Static_assert(sizeof(struct arena_block) <= ARENA_ALIGN, "the header fits its slot");

void arena_init(struct arena *arena, size_t limit_bytes)
{
	*arena = (struct arena){.limit_bytes = limit_bytes};
}

void arena_release(struct arena *arena)
{
	if (!arena)
		return;
	struct arena_block *block = arena->blocks;
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	arena->blocks = NULL;
	arena->used_bytes = 0;
}

static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
	bool own = bytes > ARENA_BLOCK_BYTES / 4;
	size_t capacity = own ? ARENA_ALIGN + bytes : ARENA_BLOCK_BYTES;
	struct arena_block *block = aligned_alloc(ARENA_ALIGN, capacity);

	if (!block && capacity <= MEMORY_SMALL_BYTES)
		memory_exhausted("host memory");
	if (!block)
		return NULL;
	*block = (struct arena_block){.used_bytes = ARENA_ALIGN, .capacity_bytes = capacity};
	if (own && arena->blocks) {
		/* A large object gets a block of its own behind the one still being filled. */
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	} else {
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return block;
}

/* NULL when the size overflows, passes the limit or the host has no memory. */
static void *try_alloc(struct arena *arena, size_t bytes)
{
	if (bytes > SIZE_MAX / 2)
		return NULL;
	size_t rounded =
		bytes > 0 ? (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN : ARENA_ALIGN;
	if (arena->limit_bytes > 0 &&
	    (rounded > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - rounded))
		return NULL;

	struct arena_block *block = arena->blocks;
	if (!block || block->capacity_bytes - block->used_bytes < rounded)
		block = add_block(arena, rounded);
	if (!block)
		return NULL;
	void *memory = (char *)block + block->used_bytes;
	block->used_bytes += rounded;
	arena->used_bytes += rounded;
	return memset(memory, 0, rounded);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	void *memory = try_alloc(arena, bytes);

	if (!memory)
		memory_exhausted(arena->limit_bytes > 0 ? "the memory limit of an arena"
							: "host memory");
	return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t element_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, element_bytes, &bytes))
		memory_exhausted("address space");
	return arena_alloc(arena, bytes);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	size_t present = strnlen(text, length);
	char *copy = arena_alloc(arena, present + 1);

	memcpy(copy, text, present);
	return copy;
}

void *arena_grow(struct arena *arena, void *array, size_t count, size_t *capacity,
		 size_t element_bytes)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity ? 2 * *capacity : 16;
	void *larger = arena_array(arena, *capacity, element_bytes);

	return count ? memcpy(larger, array, count * element_bytes) : larger;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list arguments, again;

	va_start(arguments, format);
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	assert(length >= 0);
	char *text = arena_alloc(arena, (size_t)length + 1);
	vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

void *arena_try_array(struct arena *arena, size_t count, size_t element_bytes, struct error *err)
{
	size_t bytes;
	void *memory = NULL;

	if (!__builtin_mul_overflow(count, element_bytes, &bytes))
		memory = try_alloc(arena, bytes);
	if (!memory) {
		if (arena->limit_bytes > 0)
			error_set(err, PRONY_NOMEM,
				  "%zu elements of %zu bytes exceed the limit of %zu bytes", count,
				  element_bytes, arena->limit_bytes);
		else
			error_set(err, PRONY_NOMEM,
				  "not enough memory for %zu elements of %zu bytes", count,
				  element_bytes);
	}
	return memory;
}
