/* Whether a data set's files are whole. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/files.h"
#include "datasets/dataset.h"
#include "datasets/format.h"

static enum prony_status verify_file(const struct dataset *dataset, const struct dataset_file *file,
				     const char *path, struct error *err)
{
	struct stat info;
	char hex[DIGEST_HEX_BYTES];
	const char *remedy = dataset->files[0].url ? "get it again with `prony data fetch`"
						   : "install the program again";

	if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
		return error_set(err, PRONY_MISSING, "%s: not there; %s", path, remedy);
	if ((int64_t)info.st_size != file->bytes)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: has %lld bytes instead of %lld; remove it and %s", path,
				 (long long)info.st_size, (long long)file->bytes, remedy);
	if (!file->sha256) {
		int64_t bytes;
		return data_format_find(dataset->format)->verify(path, &bytes, err);
	}
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
				      struct error *err)
{
	char *path = path_join(folder, file->name);
	enum prony_status status = verify_file(dataset, file, path, err);

	free(path);
	return status;
}

enum prony_status dataset_verify(const struct dataset *dataset, const char *folder,
				 struct error *err)
{
	for (const struct dataset_file *file = dataset->files; file->name; file++) {
		enum prony_status status = dataset_verify_file(dataset, file, folder, err);

		if (status != PRONY_OK)
			return status;
	}
	return PRONY_OK;
}
