/* Names and their numbers, in the order in which they first appeared. */
#ifndef PRONY_REPORT_NAMES_H
#define PRONY_REPORT_NAMES_H

#include <stddef.h>

#include "base/arena.h"

#define NAMES_NONE ((size_t)-1)

struct name {
	const void *bytes;
	size_t length;
};

/* All-zero: empty. Names are copied. */
struct names {
	struct arena arena;
	struct name *rows; /* by number */
	size_t count, capacity;
	size_t *slots; /* by hash: number + 1, or 0 */
	size_t slot_count;
};

void names_release(struct names *names);

/* The number of a name, which is added when it is new. Constant time on average. */
size_t names_add(struct names *names, const void *bytes, size_t length);

/* NAMES_NONE when it is not there. */
size_t names_find(const struct names *names, const void *bytes, size_t length);

#endif
