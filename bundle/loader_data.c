/* Reads the member `data` of case.json. */
#include "bundle/loader_data.h"

#include "base/json.h"

static enum prony_status read_paths(const json_t *json, struct arena *arena,
				    struct loader_data *data, struct error *err)
{
	json_t *shards, *shard, *path;
	size_t i, j, count = 0;
	enum prony_status status = json_get_array(json, "shards", &shards, err);

	if (status != PRONY_OK)
		return status;
	json_array_foreach(shards, i, shard) count += json_array_size(shard);
	data->paths = arena_array(arena, count + 1, sizeof(*data->paths));
	json_array_foreach(shards, i, shard)
	{
		json_array_foreach(shard, j, path)
		{
			if (!json_is_string(path))
				return error_set(err, PRONY_BAD_INPUT,
						 "\"shards\": every path must be a string");
			data->paths[data->path_count++] =
				arena_strdup(arena, json_string_value(path));
		}
	}
	return count > 0
		       ? PRONY_OK
		       : error_set(err, PRONY_BAD_INPUT, "\"shards\" must contain arrays of paths");
}

/* Reads one number per channel. */
static enum prony_status read_numbers(const json_t *json, const char *key, int channels,
				      double *out, struct error *err)
{
	json_t *array;
	enum prony_status status = json_get_array(json, key, &array, err);

	if (status != PRONY_OK)
		return status;
	if (json_array_size(array) != (size_t)channels)
		return error_set(err, PRONY_BAD_INPUT,
				 "\"%s\" has %zu numbers; it needs one for each of the %d channels",
				 key, json_array_size(array), channels);
	for (int i = 0; i < channels; i++) {
		const json_t *number = json_array_get(array, (size_t)i);

		if (!json_is_number(number))
			return error_set(err, PRONY_BAD_INPUT, "\"%s\" must contain only numbers",
					 key);
		out[i] = json_number_value(number);
	}
	return PRONY_OK;
}

static enum prony_status read_shape(const json_t *json, struct loader_data *data, struct error *err)
{
	json_t *shape;
	enum prony_status status = json_get_array(json, "shape", &shape, err);

	if (status != PRONY_OK)
		return status;
	int64_t channels = json_integer_value(json_array_get(shape, 0));
	data->height = json_integer_value(json_array_get(shape, 1));
	data->width = json_integer_value(json_array_get(shape, 2));
	if (json_array_size(shape) != 3 || channels < 1 || channels > LOADER_CHANNELS_MAX ||
	    data->height < 0 || data->width < 0)
		return error_set(
			err, PRONY_BAD_INPUT,
			"\"shape\" must be three integers: channels (1 to %d), height and width",
			LOADER_CHANNELS_MAX);
	data->channels = (int)channels;
	return PRONY_OK;
}

static enum prony_status read_words(const json_t *json, struct arena *arena,
				    struct loader_data *data, struct error *err)
{
	const char *name, *format;
	enum prony_status status = json_get_string(json, "name", &name, err);

	if (status == PRONY_OK)
		status = json_get_string(json, "format", &format, err);
	if (status != PRONY_OK)
		return status;
	data->name = arena_strdup(arena, name);
	data->format = arena_strdup(arena, format);
	return json_get_bool(json, "training", &data->training, err);
}

enum prony_status loader_data_from_json(const json_t *json, struct arena *arena,
					struct loader_data *out, struct error *err)
{
	struct loader_data data = {.path_count = 0};
	enum prony_status status = read_words(json, arena, &data, err);

	if (status == PRONY_OK)
		status = read_paths(json, arena, &data, err);
	if (status == PRONY_OK)
		status = json_get_int(json, "first", &data.first, err);
	if (status == PRONY_OK)
		status = json_get_int(json, "count", &data.count, err);
	if (status == PRONY_OK)
		status = json_get_int(json, "classes", &data.classes, err);
	if (status == PRONY_OK)
		status = json_get_real(json, "scale", &data.scale, err);
	if (status == PRONY_OK)
		status = read_shape(json, &data, err);
	if (status == PRONY_OK)
		status = read_numbers(json, "mean", data.channels, data.mean, err);
	if (status == PRONY_OK)
		status = read_numbers(json, "deviation", data.channels, data.deviation, err);
	for (int i = 0; status == PRONY_OK && i < data.channels; i++)
		if (!(data.deviation[i] > 0 && data.scale > 0))
			status = error_set(err, PRONY_BAD_INPUT,
					   "\"scale\" and \"deviation\" must be greater than 0");
	if (status == PRONY_OK && (data.first < 0 || data.count < 1))
		status = error_set(err, PRONY_BAD_INPUT,
				   "\"first\" must be 0 or more and \"count\" 1 or more");
	if (status == PRONY_OK)
		*out = data;
	return status;
}
