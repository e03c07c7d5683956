/* Checks that the packages of an environment are intact: each file in pip's lists exists with its
 * recorded size. Formats: PyPA, "Recording installed projects" (RECORD: path, hash, size), and
 * setuptools' installed-files.txt (names only) for packages without a wheel. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/memory.h"
#include "frameworks/folders_internal.h"

/* The longest list, torch with CUDA, has 2 MiB. */
#define LIST_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define SIZE_UNKNOWN (-1)

/* pip rewrites package metadata and Python rewrites compiled files, so these may differ. */
static bool may_change(const char *path)
{
	return strstr(path, ".dist-info/") || strstr(path, "__pycache__/");
}

/* Removes the quotes of a CSV field (RFC 4180), in place. */
static char *unquoted(char *field)
{
	char *to = field;

	if (*field != '"')
		return field;
	for (const char *from = field + 1; *from; from++) {
		if (*from == '"' && *++from != '"')
			break;
		*to++ = *from;
	}
	*to = '\0';
	return field;
}

/* Splits a line of RECORD in place into path and size (SIZE_UNKNOWN if there is none). */
static char *take_record(char *line, int64_t *size)
{
	char *last = strrchr(line, ',');

	*size = SIZE_UNKNOWN;
	if (!last)
		return line;
	if (last[1])
		*size = strtoll(last + 1, NULL, 10);
	*last = '\0';
	char *hash = strrchr(line, ',');
	if (hash)
		*hash = '\0';
	return unquoted(line);
}

/* What is wrong with a file below site-packages, in the arena; NULL when it is intact. */
static const char *file_fault(const char *site, const char *path, int64_t size, struct arena *arena)
{
	char whole[PATH_MAX];
	struct stat info;

	if (snprintf(whole, sizeof(whole), "%s/%s", site, path) >= (int)sizeof(whole))
		return NULL;
	if (stat(whole, &info) != 0)
		return arena_printf(arena, "%s is missing", path);
	if (size == SIZE_UNKNOWN || info.st_size == size)
		return NULL;
	return arena_printf(arena, "%s has %lld bytes instead of %lld", path,
			    (long long)info.st_size, (long long)size);
}

/* Parses a line of one of pip's lists in place: the path below site-packages and the size, if there
 * is one. NULL for files that may change. */
static char *take_path(char *line, bool record, int64_t *size)
{
	char *path = record ? take_record(line, size) : line;

	if (!record) {
		/* Names are relative to the package's own folder. */
		if (strncmp(path, "../", 3) != 0)
			return NULL;
		path += 3;
	}
	return may_change(path) ? NULL : path;
}

/* What is wrong with the first damaged file of a list; NULL when all are intact. */
static const char *list_fault(const char *list, const char *site, bool record, struct arena *arena)
{
	char *text = NULL, *rest = NULL;
	size_t length = 0;
	const char *fault = NULL;

	if (file_read(list, LIST_BYTES_MAX, &text, &length, NULL) != PRONY_OK)
		return NULL;
	for (char *line = strtok_r(text, "\r\n", &rest); line && !fault;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		int64_t size = SIZE_UNKNOWN;
		const char *path = take_path(line, record, &size);

		fault = path ? file_fault(site, path, size, arena) : NULL;
	}
	free(text);
	return fault;
}

/* Checks one package: list is .../site-packages/NAME.dist-info/RECORD. */
static const char *package_fault(const char *list, struct arena *arena)
{
	const char *info = arena_strndup(arena, list, (size_t)(strrchr(list, '/') - list));
	const char *name = strrchr(info, '/') + 1;
	const char *site = arena_strndup(arena, info, (size_t)(name - 1 - info));
	const char *what = list_fault(list, site, strstr(name, ".dist-info"), arena);

	return what ? arena_printf(arena, "package %.*s is damaged: %s",
				   (int)(strrchr(name, '.') - name), name, what)
		    : NULL;
}

const char *framework_packages_fault(const char *folder, struct arena *arena)
{
	static const char *const lists[] = {"dist-info/RECORD", "egg-info/installed-files.txt"};
	const char *fault = NULL;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && !fault; i++) {
		glob_t matches;
		size_t count = memory_glob(
			arena_printf(arena, "%s/lib/python*/site-packages/*.%s", folder, lists[i]),
			0, &matches);

		for (size_t k = 0; k < count && !fault; k++)
			fault = package_fault(matches.gl_pathv[k], arena);
		globfree(&matches);
	}
	return fault;
}
