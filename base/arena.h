/* Memory that is freed together: specs, plans, graphs. Never used in a timed region. */
#ifndef PRONY_BASE_ARENA_H
#define PRONY_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/error.h"

struct arena_block;

struct arena {
	struct arena_block *blocks;
	size_t used_bytes, limit_bytes; /* total handed out; 0 = no limit */
};

/* A limit makes hostile input end in an error instead of in exhausted memory. */
void arena_init(struct arena *arena, size_t limit_bytes);
void arena_release(struct arena *arena);

/* Zeroed memory aligned for any object (64 bytes). Bookkeeping this small has no useful recovery:
 * when the limit or the host is exhausted the process ends with a message and exit code 70. For
 * sizes that come from files use arena_try_array. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_array(struct arena *arena, size_t count, size_t element_bytes);
/* Returns the array with room for one more element: copied to one twice as large when `count` has
 * reached *capacity. */
void *arena_grow(struct arena *arena, void *array, size_t count, size_t *capacity,
		 size_t element_bytes);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) PRONY_PRINTF(2, 3);

/* NULL, with PRONY_NOMEM in err, when count * element_bytes overflows or memory runs out. */
void *arena_try_array(struct arena *arena, size_t count, size_t element_bytes, struct error *err);

#endif
