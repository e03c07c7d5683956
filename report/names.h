/* A set of names, numbered in order of first appearance. */
#ifndef PRONY_REPORT_NAMES_H
#define PRONY_REPORT_NAMES_H

#include <stddef.h>

#include "base/arena.h"

#define NAMES_NONE ((size_t)-1)

struct name {
	const void *bytes;
	size_t length;
};

/* A zeroed set is empty. Names are copied. */
struct names {
	struct arena arena;
	struct name *rows; /* by number */
	size_t count, capacity;
	size_t *slots; /* by hash: number + 1, or 0 */
	size_t slot_count;
};

void names_release(struct names *names);

/* Returns the number of a name, which is added if new. Constant time on average. */
size_t names_add(struct names *names, const void *bytes, size_t length);

/* Returns NAMES_NONE if the name is not in the set. */
size_t names_find(const struct names *names, const void *bytes, size_t length);

#endif
