#include "datasets/describe.h"

#include <stdlib.h>

#include "datasets/format.h"

static bool holds(const struct dataset_file *file, bool training)
{
	return file->name &&
	       (file->part == PART_BOTH || file->part == (training ? PART_TRAIN : PART_EVALUATION));
}

/* An array of shards, each an array of its files' paths. */
static json_t *shards_of(const struct dataset *dataset, const char *folder, bool training)
{
	int step = data_format_find(dataset->format)->shard_files;
	json_t *shards = json_array();

	for (const struct dataset_file *file = dataset->files;
	     file->name && file->part != PART_NAMES; file += step) {
		json_t *paths = holds(file, training) ? json_array() : NULL;

		for (int i = 0; paths && i < step; i++) {
			char *path = dataset_file_path(&file[i], folder);

			json_array_append_new(paths, json_string(path));
			free(path);
		}
		if (paths)
			json_array_append_new(shards, paths);
	}
	return shards;
}

static json_t *numbers(const double *values, int count)
{
	json_t *array = json_array();

	for (int i = 0; i < count; i++)
		json_array_append_new(array, json_real(values[i]));
	return array;
}

/* The shape of a stored sample. */
static json_t *shape_of(const struct dataset *dataset, int size)
{
	json_t *shape = json_array();

	for (int i = 0; i < dataset->rank; i++)
		json_array_append_new(shape,
				      json_integer(size > 0 && i > 0 ? size : dataset->dims[i]));
	return shape;
}

json_t *dataset_to_json(const struct dataset *dataset, const char *folder, bool training,
			const struct converted *converted)
{
	bool both = dataset->files[0].part == PART_BOTH, other = converted->format != NULL;
	int64_t count = training ? dataset->train_count : dataset->evaluation_count;

	return json_pack(
		"{s:s, s:s, s:o, s:I, s:I, s:o, s:I, s:f, s:o, s:o, s:b}", "name", dataset->name,
		"format", other ? converted->format : dataset->format, "shards",
		other ? json_pack("[[s]]", converted->folder)
		      : shards_of(dataset, folder, training),
		"first", (json_int_t)(both && !training && !other ? dataset->train_count : 0),
		"count", (json_int_t)(other ? converted->samples : count), "shape",
		shape_of(dataset, converted->size), "classes", (json_int_t)dataset->classes,
		"scale", dataset->scale, "mean", numbers(dataset->mean, (int)dataset->dims[0]),
		"deviation", numbers(dataset->deviation, (int)dataset->dims[0]), "training",
		training);
}
