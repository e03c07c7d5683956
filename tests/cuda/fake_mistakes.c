/* Mistakes that tests plant in the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake_internal.h"

static void trace(const char *kind, long number, const char *name)
{
	const char *path = getenv("FAKE_CUDA_TRACE");
	FILE *file = path != NULL ? fopen(path, "a") : NULL;

	if (file == NULL)
		return;
	fprintf(file, "%s %ld %s\n", kind, number, name);
	fclose(file);
}

bool fake_mistake(const char *kind, long number, const char *name)
{
	const char *planted = getenv("FAKE_CUDA");
	size_t length = strlen(kind);

	trace(kind, number, name);
	return planted != NULL && strncmp(planted, kind, length) == 0 && planted[length] == ':' &&
	       strtol(planted + length + 1, NULL, 10) == number;
}
