/* Finds the files that are installed with the program: suites, locks, descriptors, Python. */
#include "base/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/memory.h"

#define MESON_INFO_MAX_BYTES ((size_t)1024 * 1024)

static bool holds_suites(const char *folder)
{
	char *suites = path_join(folder, "suites");
	bool found = file_is_directory(suites);

	free(suites);
	return found;
}

/* Whether two paths name the same folder. */
static bool same_folder(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* The source folder of a Meson build tree, read from Meson's own description
 * (https://mesonbuild.com/IDE-integration.html), so that no path is compiled into the program. A
 * copied build tree still describes the original one, so that case is refused. */
static char *source_of_build(const char *folder)
{
	char *info = path_join(folder, "meson-info/meson-info.json");
	char *found = NULL;
	json_t *document = NULL, *directories;
	const char *source, *build;

	if (json_read_file(info, MESON_INFO_MAX_BYTES, &document, NULL) == PRONY_OK &&
	    json_get_object(document, "directories", &directories, NULL) == PRONY_OK &&
	    json_get_string(directories, "build", &build, NULL) == PRONY_OK &&
	    same_folder(build, folder) &&
	    json_get_string(directories, "source", &source, NULL) == PRONY_OK &&
	    holds_suites(source))
		found = memory_strdup(source);
	json_decref(document);
	free(info);
	return found;
}

/* The shared folder, if `folder` (a parent of the executable) leads to it; NULL otherwise. */
static char *share_below(const char *folder)
{
	char *found = path_join(folder, "share/prony");

	if (holds_suites(found))
		return found;
	free(found);
	found = source_of_build(folder);
	if (found)
		return found;
	/* A build tree inside a source tree that was moved or copied after configuration. */
	char *project = path_join(folder, "meson.build");
	if (file_exists(project) && holds_suites(folder))
		found = memory_strdup(folder);
	free(project);
	return found;
}

char *path_share(void)
{
	const char *named = getenv("PRONY_SHARE");

	if (named && *named)
		return memory_strdup(named);

	/* PREFIX/bin/prony, BUILD/prony, BUILD/tests/test_name, SOURCE/BUILD/tests/test_name. */
	char *folder = path_self();
	char *found = NULL;
	for (int level = 0; level < 3 && !found; level++) {
		char *slash = strrchr(folder, '/');
		if (!slash || slash == folder)
			break;
		*slash = '\0';
		found = share_below(folder);
	}
	free(folder);
	return found;
}
