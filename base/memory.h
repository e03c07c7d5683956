/* Small allocations whose failure has no useful recovery: they end the process, exit code 70. */
#ifndef PRONY_BASE_MEMORY_H
#define PRONY_BASE_MEMORY_H

#include <glob.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Prints to stderr that memory (or the limit that `what` names) is exhausted and exits with code
 * 70. */
_Noreturn void memory_exhausted(const char *what);

/* Never NULL, also for 0 bytes; the caller frees. The memory is not zeroed. */
void *memory_alloc(size_t bytes);
void *memory_realloc(void *memory, size_t bytes);
/* Returns the array with room for one more element: moved and twice as large when `count` has
 * reached *capacity. */
void *memory_grow(void *array, size_t count, size_t *capacity, size_t element_bytes);
char *memory_strdup(const char *text);
char *memory_printf(const char *format, ...) PRONY_PRINTF(1, 2);

/* Call it after a C library function failed with this errno. Ends the process if the cause was lack
 * of memory, because "not found" would then be a wrong answer. Returns otherwise. */
void memory_check(int errnum);

/* Allocations above this size may fail with PRONY_NOMEM. If even a smaller one fails, the machine
 * cannot go on, and the process ends. */
#define MEMORY_SMALL_BYTES ((size_t)1 << 20)

/* glob(3) with a check: plain glob reports a folder as empty when memory runs out. Returns the
 * number of matching paths. Always free *out with globfree. */
size_t memory_glob(const char *pattern, int flags, glob_t *out);

/* Physical memory of this machine in bytes; INT64_MAX when it is unknown. */
int64_t memory_physical_bytes(void);

#endif
