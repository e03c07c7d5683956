/* Checks that a data set's files are intact. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/files.h"
#include "datasets/byte_stream.h"
#include "datasets/dataset.h"
#include "datasets/format.h"
#include "datasets/image_list.h"

#define NAMES_LIMIT_BYTES ((size_t)4 << 20)

/* One name per line; empty lines at the end are ignored. */
static enum prony_status read_names(const struct dataset *dataset, const char *path,
				    struct arena *arena, const char ***out, struct error *err)
{
	const char **names = arena_array(arena, (size_t)dataset->classes, sizeof(*names));
	int64_t count = 0;
	char *text, *rest, *line;
	size_t length;
	enum prony_status status = file_read(path, NAMES_LIMIT_BYTES, &text, &length, err);

	if (status != PRONY_OK)
		return status;
	rest = text;
	for (int64_t number = 1; status == PRONY_OK && (line = strsep(&rest, "\n")); number++) {
		line[strcspn(line, "\r")] = '\0';
		if (*line != '\0' && count == number - 1 && count < dataset->classes)
			names[count++] = arena_strdup(arena, line);
		else if (*line != '\0')
			status = error_set(err, PRONY_BAD_INPUT,
					   "%s: line %" PRId64 ": unexpected name after %" PRId64
					   " of %" PRId64 " class names; " DATA_REMEDY,
					   path, number, count, dataset->classes);
	}
	if (status == PRONY_OK && (count < dataset->classes))
		status = error_set(err, PRONY_BAD_INPUT,
				   "%s: line %" PRId64 ": class name %" PRId64 " of %" PRId64
				   " is missing; " DATA_REMEDY,
				   path, count + 1, count + 1, dataset->classes);
	free(text);
	if (status == PRONY_OK)
		*out = names;
	return status;
}

enum prony_status dataset_class_names(const struct dataset *dataset, const char *folder,
				      struct arena *arena, const char ***names, struct error *err)
{
	const struct dataset_file *file = dataset->files;

	while (file->name && file->part != PART_NAMES)
		file++;
	if (!file->name) {
		*names = NULL;
		return PRONY_OK;
	}
	char *path = path_join(folder, file->name);
	enum prony_status status = read_names(dataset, path, arena, names, err);
	free(path);
	return status;
}

static enum prony_status read_through(const struct dataset *dataset,
				      const struct dataset_file *file, const char *path,
				      struct data_findings *findings, struct error *err)
{
	const char **names;
	struct arena arena;
	int64_t bytes;

	if (file->part != PART_NAMES)
		return data_format_verify(data_format_find(dataset->format), path, dataset->classes,
					  findings, &bytes, err);
	arena_init(&arena, 0);
	enum prony_status status = read_names(dataset, path, &arena, &names, err);
	arena_release(&arena);
	return status;
}

/* A folder, or the tar file that replaces it: decodes every picture. */
static enum prony_status verify_pictures(const struct dataset *dataset,
					 const struct dataset_file *file, const char *path,
					 struct data_findings *findings, struct error *err)
{
	int64_t bytes = file->bytes, expected = file->bytes;
	char hex[DIGEST_HEX_BYTES];

	if (!file_is_directory(path)) {
		bytes = file_bytes(path);
		expected = file->tar_bytes;
	} else if (file->sha256) {
		enum prony_status status = image_folder_digest(path, &bytes, hex, err);

		if (status != PRONY_OK)
			return status;
		if (bytes == file->bytes && strcmp(hex, file->sha256) != 0)
			return error_set(err, PRONY_BAD_INPUT,
					 "%s: SHA-256 of all files is %s instead of %s; %s", path,
					 hex, file->sha256, dataset_remedy(dataset));
	}
	if (bytes != expected)
		return error_set(err, PRONY_BAD_INPUT, "%s: it has %lld bytes instead of %lld; %s",
				 path, (long long)bytes, (long long)expected,
				 dataset_remedy(dataset));
	return read_through(dataset, file, path, findings, err);
}

static enum prony_status verify_file(const struct dataset *dataset, const struct dataset_file *file,
				     const char *path, struct data_findings *findings,
				     struct error *err)
{
	struct stat info;
	char hex[DIGEST_HEX_BYTES];
	const char *remedy = dataset_remedy(dataset);

	if (file->is_folder && file_exists(path))
		return verify_pictures(dataset, file, path, findings, err);
	if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
		return error_set(err, PRONY_MISSING, "%s: missing; %s", path, remedy);
	if (file->bytes > 0 && (int64_t)info.st_size != file->bytes)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: it has %lld bytes instead of %lld; remove it and %s", path,
				 (long long)info.st_size, (long long)file->bytes, remedy);
	if (!file->sha256)
		return read_through(dataset, file, path, findings, err);
	enum prony_status status = digest_file(path, hex, err);
	if (status != PRONY_OK)
		return status;
	if (strcmp(hex, file->sha256) != 0)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: SHA-256 is %s instead of %s; remove it and %s", path, hex,
				 file->sha256, remedy);
	return PRONY_OK;
}

enum prony_status dataset_verify_file(const struct dataset *dataset,
				      const struct dataset_file *file, const char *folder,
				      struct data_findings *findings, struct error *err)
{
	char *path = dataset_file_path(file, folder);
	enum prony_status status = verify_file(dataset, file, path, findings, err);

	free(path);
	return status;
}
