#include "adapters/native/cuda/packages.h"

#include <stdlib.h>

#include "base/files.h"
#include "base/memory.h"

char *cuda_package_library(const char *name)
{
	char *homes[PATH_DATA_HOMES_MAX], *found = NULL;
	size_t count = path_data_homes(homes);

	for (size_t i = 0; i < count; i++) {
		char *pattern =
			memory_printf("%s/frameworks/*/lib/python3*/site-packages/nvidia/*/lib/%s",
				      homes[i], name);
		glob_t matches;

		if (memory_glob(pattern, 0, &matches) > 0 && !found)
			found = memory_strdup(matches.gl_pathv[0]);
		globfree(&matches);
		free(pattern);
		free(homes[i]);
	}
	return found;
}
