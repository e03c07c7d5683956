/* Plans memory: an offset for each buffer. */
#include "adapters/native/program.h"

#include <stdlib.h>

#define ALIGNMENT_BYTES 64

static int by_size(const void *a, const void *b)
{
	const struct buffer *x = *(struct buffer *const *)a, *y = *(struct buffer *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Inserts a buffer into the placed buffers, which are sorted by offset. */
static void insert(struct buffer **placed, size_t count, struct buffer *buffer)
{
	size_t i = count;

	for (; i > 0 && placed[i - 1]->offset > buffer->offset; i--)
		placed[i] = placed[i - 1];
	placed[i] = buffer;
}

static size_t first_fit(struct buffer *const *placed, size_t count, const struct buffer *buffer)
{
	size_t offset = 0;

	for (size_t i = 0; i < count; i++) {
		const struct buffer *other = placed[i];

		if (other->last < buffer->first || other->first > buffer->last)
			continue;
		if (offset + buffer->bytes <= other->offset)
			break;
		if (other->offset + other->bytes > offset)
			offset = other->offset + other->bytes;
	}
	return offset;
}

size_t memory_plan(struct buffer *buffers, size_t count, struct arena *arena)
{
	struct buffer **order = arena_array(arena, count + 1, sizeof(struct buffer *));
	struct buffer **placed = arena_array(arena, count + 1, sizeof(struct buffer *));
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		buffers[i].bytes = (buffers[i].bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES *
				   ALIGNMENT_BYTES;
		order[i] = &buffers[i];
	}
	qsort(order, count, sizeof(struct buffer *), by_size);
	for (size_t i = 0; i < count; i++) {
		order[i]->offset = first_fit(placed, i, order[i]);
		insert(placed, i, order[i]);
		if (order[i]->offset + order[i]->bytes > total)
			total = order[i]->offset + order[i]->bytes;
	}
	return total;
}
