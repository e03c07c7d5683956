/* Small allocations whose failure has no useful recovery: they end the process, exit code 70. */
#ifndef PRONY_BASE_MEMORY_H
#define PRONY_BASE_MEMORY_H

#include <glob.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Says on stderr that memory (or a limit, named by `what`) is exhausted and ends with code 70. */
_Noreturn void memory_exhausted(const char *what);

/* Never NULL, also for 0 bytes; the caller frees. The memory is not zeroed. */
void *memory_alloc(size_t bytes);
void *memory_realloc(void *memory, size_t bytes);
char *memory_strdup(const char *text);
char *memory_printf(const char *format, ...) PRONY_PRINTF(1, 2);

/*
 * After a call of the C library that failed with this errno: ends the process where it was for lack
 * of memory, because "not there" would be a wrong answer then. Returns for everything else.
 */
void memory_check(int errnum);

/* What is larger than this may be refused for its size; a machine that has not even so much gives
 * no right answers any more: then functions that could return PRONY_NOMEM end the process. */
#define MEMORY_SMALL_BYTES ((size_t)1 << 20)

/* glob(3), which calls a folder that it had no memory to read empty. The paths that match; released
 * with globfree in any case. */
size_t memory_glob(const char *pattern, int flags, glob_t *out);

/* The memory of this machine in bytes, whoever has it; INT64_MAX where it is not known. */
int64_t memory_physical_bytes(void);

#endif
