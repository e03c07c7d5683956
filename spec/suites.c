/* Finds suites: built-in ones by name, others by path. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "spec/spec.h"

#define SUITES_MAX 256
#define SUFFIX ".yaml"

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum prony_status spec_list_suites(struct arena *arena, const char *const **names, size_t *count,
				   struct error *err)
{
	char *share = path_share();
	const char **found = arena_array(arena, SUITES_MAX, sizeof(*found));
	size_t found_count = 0;

	if (!share)
		return error_set(err, PRONY_BAD_INPUT,
				 "prony's share folder with the built-in suites was not found; set "
				 "PRONY_SHARE to it, or give the path of a suite file");
	char *folder = path_join(share, "suites");
	errno = 0;
	DIR *directory = opendir(folder);
	memory_check(errno);

	for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
		if (entry->d_name[0] == '.' || !ends_with(entry->d_name, SUFFIX) ||
		    found_count == SUITES_MAX)
			continue;
		found[found_count++] =
			arena_strndup(arena, entry->d_name, strlen(entry->d_name) - strlen(SUFFIX));
	}
	if (directory)
		closedir(directory);
	free(folder);
	free(share);
	qsort(found, found_count, sizeof(*found), compare_words);
	*names = found;
	*count = found_count;
	return PRONY_OK;
}

static enum prony_status unknown_suite(const char *name, const char *const *names, size_t count,
				       struct error *err)
{
	const char *nearest = word_nearest(name, names, count);
	struct strbuf known;

	strbuf_init(&known, ERROR_TEXT_BYTES / 2);
	for (size_t i = 0; i < count; i++)
		strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", names[i]);
	enum prony_status status =
		error_set(err, PRONY_BAD_INPUT,
			  "unknown suite \"%.80s\"%s%s%s Built in: %s; for a suite file, give a "
			  "path that ends in .yaml or has a slash",
			  name, nearest ? "; did you mean " : ".", nearest ? nearest : "",
			  nearest ? "?" : "", count ? strbuf_text(&known) : "none");
	strbuf_release(&known);
	return status;
}

enum prony_status spec_find_suite(const char *name, char **path, struct error *err)
{
	const char *const *names = NULL;
	size_t count = 0;
	struct arena arena;

	if (strchr(name, '/') || ends_with(name, SUFFIX) || ends_with(name, ".yml")) {
		*path = memory_strdup(name);
		return PRONY_OK;
	}
	arena_init(&arena, 0);
	enum prony_status status = spec_list_suites(&arena, &names, &count, err);
	if (status == PRONY_OK) {
		size_t at = 0;

		while (at < count && strcmp(names[at], name) != 0)
			at++;
		if (at < count) {
			char *share = path_share();
			*path = path_join(share, arena_printf(&arena, "suites/%s" SUFFIX, name));
			free(share);
		} else {
			status = unknown_suite(name, names, count, err);
		}
	}
	arena_release(&arena);
	return status;
}
