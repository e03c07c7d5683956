/* prony on a disk that fails: $PRONY_STORE_FAULT is "AT CODE [stays]" (unit/fault_vfs.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fault_vfs.h"

__attribute__((constructor)) static void set_fault(void)
{
	const char *text = getenv("PRONY_STORE_FAULT");
	char *end;

	if (!text)
		return;
	long at = strtol(text, &end, 10), code = strtol(end, &end, 10);
	fault_vfs_install();
	fault_vfs_set(at, (int)code, strstr(end, "stays") != NULL);
}

/* How many writes there were, for the test that wants to know where to let one fail. */
__attribute__((destructor)) static void tell_count(void)
{
	const char *path = getenv("PRONY_STORE_WRITES");
	FILE *file = path && fault_vfs_count() > 0 ? fopen(path, "w") : NULL;

	if (file) {
		fprintf(file, "%ld\n", fault_vfs_count());
		fclose(file);
	}
}
