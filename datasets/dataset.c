#include "datasets/dataset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/strbuf.h"

#define MNIST_URL "https://ossci-datasets.s3.amazonaws.com/mnist/"

/* The four files as Yann LeCun published them in 1998 (http://yann.lecun.com/exdb/mnist). */
#define T10K_IMAGES                                                                                \
	.name = "t10k-images-idx3-ubyte.gz", .bytes = 1648877,                                     \
	.sha256 = "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
#define T10K_LABELS                                                                                \
	.name = "t10k-labels-idx1-ubyte.gz", .bytes = 4542,                                        \
	.sha256 = "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"

const struct dataset dataset_table[] = {
	{
		.name = "mnist",
		.summary = "handwritten digits, 28 x 28 grey, 60,000 and 10,000 images",
		.format = "idx",
		.rank = 3,
		.dims = {1, 28, 28},
		.classes = 10,
		.train_count = 60000,
		.evaluation_count = 10000,
		.mean = 0.1307,
		.deviation = 0.3081,
		.sample = "mnist-sample",
		.files =
			{
				{.name = "train-images-idx3-ubyte.gz",
				 .bytes = 9912422,
				 .sha256 =
					 "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f2"
					 "03523609",
				 .url = MNIST_URL "train-images-idx3-ubyte.gz"},
				{.name = "train-labels-idx1-ubyte.gz",
				 .bytes = 28881,
				 .sha256 =
					 "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e"
					 "8010255c",
				 .url = MNIST_URL "train-labels-idx1-ubyte.gz"},
				{T10K_IMAGES, .url = MNIST_URL "t10k-images-idx3-ubyte.gz"},
				{T10K_LABELS, .url = MNIST_URL "t10k-labels-idx1-ubyte.gz"},
			},
	},
	{
		.name = "mnist-sample",
		.summary = "the 10,000 test images of MNIST, which come with the program: 8,000 to "
			   "train, 2,000 to evaluate",
		.format = "idx",
		.rank = 3,
		.dims = {1, 28, 28},
		.classes = 10,
		.train_count = 8000,
		.evaluation_count = 2000,
		.mean = 0.1307,
		.deviation = 0.3081,
		.files = {{T10K_IMAGES}, {T10K_LABELS}},
	},
	{
		.name = "synthetic",
		.summary = "normal values and uniform classes in whatever shape the network takes",
		.format = "synthetic",
		.deviation = 1,
	},
};

const size_t dataset_count = sizeof(dataset_table) / sizeof(dataset_table[0]);

const struct dataset *dataset_find(const char *name)
{
	for (size_t i = 0; i < dataset_count; i++)
		if (strcmp(dataset_table[i].name, name) == 0)
			return &dataset_table[i];
	return NULL;
}

const char *dataset_nearest(const char *name)
{
	const char *names[sizeof(dataset_table) / sizeof(dataset_table[0])];

	for (size_t i = 0; i < dataset_count; i++)
		names[i] = dataset_table[i].name;
	return word_nearest(name, names, dataset_count);
}

static bool holds_all_files(const struct dataset *dataset, const char *folder)
{
	bool all = true;

	for (const struct dataset_file *file = dataset->files; file->name && all; file++) {
		char *path = path_join(folder, file->name);

		all = file_exists(path);
		free(path);
	}
	return all;
}

/* The folders that may hold data sets, in the order of search; caller frees each. */
enum { PLACES_MAX = 4 };

static size_t list_places(const char *data_option, char *places[PLACES_MAX])
{
	size_t count = 0;
	const char *variable = getenv("PRONY_DATA");
	char *home = path_data_home();
	char *share = path_share();

	if (data_option && *data_option)
		places[count++] = memory_strdup(data_option);
	if (variable && *variable)
		places[count++] = memory_strdup(variable);
	if (home)
		places[count++] = path_join(home, "data");
	if (share)
		places[count++] = path_join(share, "datasets");
	free(home);
	free(share);
	return count;
}

static enum prony_status not_found(const struct dataset *dataset, const struct strbuf *searched,
				   struct error *err)
{
	const char *name = dataset->name;

	if (!dataset->files[0].url)
		return error_set(err, PRONY_MISSING,
				 "data set %s comes with the program but is in none of %s; install "
				 "the program again, or name its folder with PRONY_SHARE",
				 name, strbuf_text(searched));
	if (dataset->sample)
		return error_set(
			err, PRONY_MISSING,
			"data set %s is in none of %s; get it with `prony data fetch %s`, name "
			"the folder above it with --data, or use %s, which comes with the "
			"program",
			name, strbuf_text(searched), name, dataset->sample);
	return error_set(
		err, PRONY_MISSING,
		"data set %s is in none of %s; get it with `prony data fetch %s` or name the "
		"folder above it with --data",
		name, strbuf_text(searched), name);
}

enum prony_status dataset_locate(const struct dataset *dataset, const char *data_option,
				 char **folder, struct error *err)
{
	char *places[PLACES_MAX];
	char *found = NULL;
	struct strbuf searched;
	enum prony_status status = PRONY_OK;

	if (!dataset->files[0].name) {
		*folder = NULL;
		return PRONY_OK;
	}
	size_t count = list_places(data_option, places);
	strbuf_init(&searched, ERROR_TEXT_BYTES / 2);
	for (size_t i = 0; i < count && !found; i++) {
		char *candidate = path_join(places[i], dataset->name);

		strbuf_printf(&searched, "%s%s", i > 0 ? ", " : "", candidate);
		if (holds_all_files(dataset, candidate))
			found = candidate;
		else
			free(candidate);
	}
	if (found)
		*folder = found;
	else
		status = not_found(dataset, &searched, err);
	for (size_t i = 0; i < count; i++)
		free(places[i]);
	strbuf_release(&searched);
	return status;
}

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
	if (!file->sha256)
		return PRONY_OK;
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
