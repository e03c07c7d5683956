/* Small allocations whose failure has no useful recovery: they end the process, exit code 70. */
#ifndef PRONY_BASE_MEMORY_H
#define PRONY_BASE_MEMORY_H

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

/* The memory of this machine in bytes, whoever has it; INT64_MAX where it is not known. */
int64_t memory_physical_bytes(void);

#endif
