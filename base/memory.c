#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

_Noreturn void memory_exhausted(const char *what)
{
	fprintf(stderr, "prony: %s exhausted\n", what);
	/* Not exit(): handlers registered with atexit may need memory themselves. */
	fflush(stderr);
	_Exit(prony_status_exit(PRONY_NOMEM));
}

void *memory_alloc(size_t bytes)
{
	return memory_realloc(NULL, bytes);
}

void *memory_realloc(void *memory, size_t bytes)
{
	void *larger = realloc(memory, bytes > 0 ? bytes : 1);

	if (!larger)
		memory_exhausted("host memory");
	return larger;
}

void *memory_grow(void *array, size_t count, size_t *capacity, size_t element_bytes)
{
	if (count < *capacity)
		return array;
	*capacity = *capacity ? 2 * *capacity : 16;
	return memory_realloc(array, *capacity * element_bytes);
}

char *memory_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;

	return memcpy(memory_alloc(bytes), text, bytes);
}

char *memory_printf(const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
		memory_exhausted("host memory");
	return text;
}

void memory_check(int errnum)
{
	if (errnum == ENOMEM)
		memory_exhausted("host memory");
}

static int on_unread_folder(const char *path, int errnum)
{
	(void)path;
	memory_check(errnum);
	return 0;
}

size_t memory_glob(const char *pattern, int flags, glob_t *out)
{
	*out = (glob_t){.gl_pathc = 0};
	int result = glob(pattern, flags, on_unread_folder, out);

	if (result == GLOB_NOSPACE)
		memory_exhausted("host memory");
	return result == 0 ? out->gl_pathc : 0;
}

int64_t memory_physical_bytes(void)
{
	int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE), bytes;

	if (pages <= 0 || page <= 0 || __builtin_mul_overflow(pages, page, &bytes))
		return INT64_MAX;
	return bytes;
}
