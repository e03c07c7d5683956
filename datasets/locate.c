/* Finds the files of a data set. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "datasets/dataset.h"
#include "datasets/folders.h"
#include "datasets/image_list.h"

char *dataset_file_path(const struct dataset_file *file, const char *folder)
{
	char *path = path_join(folder, file->name);

	if (file->as_published && !file_exists(path)) {
		char *other = path_join(folder, file->as_published);

		if (file_exists(other)) {
			free(path);
			return other;
		}
		free(other);
	}
	return path;
}

/* Whether all files exist. */
static bool holds_all_files(const struct dataset *dataset, const char *folder)
{
	bool all = true;

	for (const struct dataset_file *file = dataset->files; file->name && all; file++) {
		char *path = dataset_file_path(file, folder);
		struct stat info;

		all = stat(path, &info) == 0;
		free(path);
	}
	return all;
}

/* Whether all existing files have their right size. *odd names one that does not; the caller frees
 * it. */
static bool has_right_sizes(const struct dataset *dataset, const char *folder, char **odd)
{
	for (const struct dataset_file *file = dataset->files; file->name; file++) {
		char *path = path_join(folder, file->name);
		struct stat info = {.st_size = -1};
		bool right = stat(path, &info) == 0;

		if (right && file->is_folder)
			info.st_size = image_folder_bytes(path, file->bytes);
		right = right && info.st_size == file->bytes;

		if (!right)
			*odd = memory_printf("%s has %lld bytes instead of %lld: %s", path,
					     (long long)info.st_size, (long long)file->bytes,
					     info.st_size < file->bytes ? "truncated"
									: "a different file");
		free(path);
		if (!right)
			return false;
	}
	return true;
}

/* The full data set of which this one is a sample, or NULL. */
static const struct dataset *whole_of(const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset_count; i++)
		if (dataset_table[i].sample && strcmp(dataset_table[i].sample, dataset->name) == 0)
			return &dataset_table[i];
	return NULL;
}

/* The data set's folder below `place`; the caller frees it; NULL when there is none. *odd (the
 * caller frees it): the file that does not match. */
static char *find_below(const struct dataset *dataset, const char *place, char **odd)
{
	const struct dataset *whole = whole_of(dataset);
	char *folder = path_join(place, dataset->name), *why = NULL;

	if (holds_all_files(dataset, folder))
		return folder;
	if (!*odd && access(folder, R_OK | X_OK) != 0 && errno == EACCES)
		*odd = memory_printf("%s: permission denied", folder);
	free(folder);
	folder = whole ? path_join(place, whole->name) : NULL;
	if (folder && holds_all_files(dataset, folder)) {
		if (has_right_sizes(dataset, folder, &why))
			return folder;
		/* The full data set has files with the same names. */
		if (!*odd && !holds_all_files(whole, folder)) {
			*odd = why;
			why = NULL;
		}
	}
	free(why);
	free(folder);
	return NULL;
}

size_t data_folders(const char *data_option, char *folders[DATA_FOLDERS_MAX])
{
	size_t count = 0;
	const char *variable = getenv("PRONY_DATA");
	char *homes[PATH_DATA_HOMES_MAX];
	size_t home_count = path_data_homes(homes);
	char *share = path_share();

	if (data_option && *data_option)
		folders[count++] = memory_strdup(data_option);
	if (variable && *variable)
		folders[count++] = memory_strdup(variable);
	for (size_t i = 0; i < home_count; i++) {
		folders[count++] = path_join(homes[i], "data");
		free(homes[i]);
	}
	if (share)
		folders[count++] = path_join(share, "datasets");
	free(share);
	return count;
}

static enum prony_status not_found(const struct dataset *dataset, const struct strbuf *searched,
				   struct error *err)
{
	const char *name = dataset->name;

	if (dataset->shipped)
		return error_set(err, PRONY_MISSING,
				 "data set %s comes with the program but was not found (searched: "
				 "%s); install the program again, or set PRONY_SHARE to its folder",
				 name, strbuf_text(searched));
	if (dataset->owner)
		return error_set(err, PRONY_MISSING,
				 "data set %s was not found (searched: %s); %s; docs/datasets.md "
				 "describes the folders, --data DIR gives the folder above",
				 name, strbuf_text(searched), dataset->owner);
	if (!dataset_is_published(dataset))
		return error_set(
			err, PRONY_MISSING,
			"data set %s was not found (searched: %s), and it is not published; if you "
			"have its files (docs/datasets.md), give the folder above with --data DIR",
			name, strbuf_text(searched));
	const struct dataset *sample = dataset;
	while (sample->sample && !sample->shipped)
		sample = dataset_find(sample->sample);
	if (sample->shipped)
		return error_set(err, PRONY_MISSING,
				 "data set %s was not found (searched: %s); get it with `prony "
				 "data fetch %s`, give the folder above with --data DIR, or use "
				 "%s, which comes with the program",
				 name, strbuf_text(searched), name, sample->name);
	return error_set(err, PRONY_MISSING,
			 "data set %s was not found (searched: %s); get it with `prony data fetch "
			 "%s`, or give the folder above with --data DIR",
			 name, strbuf_text(searched), name);
}

enum prony_status dataset_locate(const struct dataset *dataset, const char *data_option,
				 char **folder, struct error *err)
{
	char *folders[DATA_FOLDERS_MAX];
	char *found = NULL, *odd = NULL;
	struct strbuf searched;
	enum prony_status status = PRONY_OK;

	if (!dataset->files[0].name || dataset->folder) {
		*folder = dataset->folder ? memory_strdup(dataset->folder) : NULL;
		return PRONY_OK;
	}
	size_t count = data_folders(data_option, folders);
	strbuf_init(&searched, ERROR_TEXT_BYTES / 2);
	for (size_t i = 0; i < count && !found; i++) {
		strbuf_printf(&searched, "%s%s/%s", i > 0 ? ", " : "", folders[i], dataset->name);
		found = find_below(dataset, folders[i], &odd);
	}
	if (odd && !found)
		strbuf_printf(&searched, " (%s)", odd);
	free(odd);
	if (found)
		*folder = found;
	else
		status = not_found(dataset, &searched, err);
	for (size_t i = 0; i < count; i++)
		free(folders[i]);
	strbuf_release(&searched);
	return status;
}
