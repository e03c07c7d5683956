#include "diagnose/sources.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

/* With a thousand processors /proc/cpuinfo is about 2 MiB. */
#define TEXT_LIMIT_BYTES ((size_t)16 * 1024 * 1024)

static void trim(char *text)
{
	size_t start = strspn(text, " \t\r\n"), length = strlen(text);

	while (length > start && isspace((unsigned char)text[length - 1]))
		length--;
	memmove(text, text + start, length - start);
	text[length - start] = '\0';
}

char *source_text(const char *root, const char *path, struct error *err)
{
	char *full = memory_printf("%s%s", root, path);
	char *text = NULL;
	size_t length;

	if (file_read(full, TEXT_LIMIT_BYTES, &text, &length, err) == PRONY_OK)
		trim(text);
	else
		text = NULL;
	free(full);
	return text;
}

static bool may_access(const char *root, const char *path, int mode)
{
	char *full = memory_printf("%s%s", root, path);
	bool may = access(full, mode) == 0;

	free(full);
	return may;
}

bool source_exists(const char *root, const char *path)
{
	return may_access(root, path, F_OK);
}

bool source_readable(const char *root, const char *path)
{
	return may_access(root, path, R_OK);
}

bool source_int(const char *root, const char *path, int64_t *out)
{
	char *text = source_text(root, path, NULL);
	char *end;

	if (!text)
		return false;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	bool whole = end != text && *end == '\0' && errno == 0;
	free(text);
	if (whole)
		*out = value;
	return whole;
}

char *source_field(const char *text, const char *key)
{
	size_t key_length = strlen(key);

	for (const char *line = text; line && *line;) {
		const char *newline = strchr(line, '\n');
		size_t length = newline ? (size_t)(newline - line) : strlen(line);

		if (length > key_length && strncmp(line, key, key_length) == 0) {
			size_t at = key_length + strspn(line + key_length, " \t");

			if (at < length && (line[at] == ':' || line[at] == '=')) {
				char *value = memory_printf("%.*s", (int)(length - at - 1),
							    line + at + 1);
				trim(value);
				return value;
			}
		}
		line = newline ? newline + 1 : NULL;
	}
	return NULL;
}

int64_t source_meminfo_bytes(const char *root, const char *key)
{
	char *text = source_text(root, "/proc/meminfo", NULL);
	char *value = text ? source_field(text, key) : NULL;
	int64_t bytes = -1;

	if (value) {
		char *end;
		long long kib = strtoll(value, &end, 10);

		if (end != value && kib >= 0 && kib < INT64_MAX / 1024 && strcmp(end, " kB") == 0)
			bytes = kib * 1024;
	}
	free(value);
	free(text);
	return bytes;
}

static int compare_names(const void *a, const void *b)
{
	/* Natural order: package 2 before package 10. */
	return strverscmp(a, b);
}

size_t source_entries(const char *root, const char *folder, const char *prefix,
		      char (*names)[SOURCE_NAME_BYTES], size_t capacity)
{
	char *full = memory_printf("%s%s", root, folder);
	errno = 0;
	DIR *directory = opendir(full);
	memory_check(errno);
	struct dirent *entry;
	size_t count = 0;

	free(full);
	if (!directory)
		return 0;
	while (count < capacity && (entry = readdir(directory))) {
		size_t length = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || length >= SOURCE_NAME_BYTES ||
		    strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		memcpy(names[count++], entry->d_name, length + 1);
	}
	closedir(directory);
	qsort(names, count, sizeof(names[0]), compare_names);
	return count;
}

int source_open_root(const char *root)
{
	return *root ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : PROCESS_HERE;
}

void source_close_root(int root_fd)
{
	if (root_fd >= 0)
		close(root_fd);
}

bool source_cpu_time(const char *root, struct cpu_time *out)
{
	struct cpu_times *times = memory_alloc(sizeof(*times));
	int root_fd = source_open_root(root);
	bool known = cpu_times_read(root_fd, times);

	*out = times->all;
	source_close_root(root_fd);
	free(times);
	return known;
}

bool source_load_averages(const char *root, double out[3])
{
	int root_fd = source_open_root(root);
	bool known = load_averages_read(root_fd, out);

	source_close_root(root_fd);
	return known;
}
