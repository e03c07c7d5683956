#include "adapters/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_add_library(struct probe *found, const char *name, const char *version)
{
	int i = found->library_count++;

	snprintf(found->libraries[i].name, sizeof(found->libraries[i].name), "%s", name);
	snprintf(found->libraries[i].version, sizeof(found->libraries[i].version), "%.*s",
		 (int)strcspn(version, "\n"), version);
}

const char *probe_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && value[0] != '\0' ? value : otherwise;
}
