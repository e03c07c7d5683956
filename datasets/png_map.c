#include "datasets/png_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "datasets/format.h"
#include "datasets/image.h"
#include "datasets/writer.h"

#define MAP_LIMIT_BYTES ((size_t)1 << 30)
#define PICTURE_LIMIT_BYTES ((size_t)256 << 20)

struct map_line {
	const char *path;
	int64_t label, line;
};

struct map_source {
	struct data_source base;
	char *folder, *map, *text;
	struct map_line *lines;
};

static bool recognises(const char *path, const uint8_t *head, size_t length)
{
	(void)head;
	if (length > 0 || !file_is_directory(path))
		return false;
	char *map = path_join(path, PNG_MAP_FILE);
	bool is = file_exists(map);
	free(map);
	return is;
}

static void close_source(struct data_source *base)
{
	struct map_source *source = (struct map_source *)base;

	free(source->folder);
	free(source->map);
	free(source->text);
	free(source->lines);
	free(source);
}

static enum prony_status take_line(struct map_source *source, char *line, int64_t number,
				   int64_t classes, struct error *err)
{
	char *tab = strchr(line, '\t');
	char *end = NULL;
	long long label = tab ? strtoll(tab + 1, &end, 10) : -1;

	if (!tab || tab == line || end == tab + 1 || *end != '\0' || label < 0 || label >= classes)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: line %" PRId64
				 " is not a path, a tab and a label from 0 to %" PRId64
				 "; convert the data again (prony data convert)",
				 source->map, number, classes - 1);
	*tab = '\0';
	source->lines[source->base.count++] =
		(struct map_line){.path = line, .label = label, .line = number};
	return PRONY_OK;
}

static enum prony_status read_map(struct map_source *source, int64_t classes, struct error *err)
{
	size_t length, room = 0;
	int64_t number = 0;
	char *rest, *line;
	enum prony_status status =
		file_read(source->map, MAP_LIMIT_BYTES, &source->text, &length, err);

	if (status != PRONY_OK)
		return status;
	rest = source->text;
	while (status == PRONY_OK && (line = strsep(&rest, "\n"))) {
		number++;
		line[strcspn(line, "\r")] = '\0';
		if (*line == '\0')
			continue;
		source->lines = memory_grow(source->lines, (size_t)source->base.count, &room,
					    sizeof(*source->lines));
		status = take_line(source, line, number, classes, err);
	}
	if (status == PRONY_OK && source->base.count == 0)
		return error_set(err, PRONY_BAD_INPUT, "%s: it contains no images", source->map);
	return status;
}

static enum prony_status open_source(const struct data_shard *shard, struct data_source **out,
				     struct error *err)
{
	struct map_source *source = memory_alloc(sizeof(*source));

	*source = (struct map_source){
		.base = {.rank = 3, .dims = {IMAGE_CHANNELS, 0, 0}, .element = DATA_U8},
		.folder = memory_strdup(shard->paths[0]),
		.map = path_join(shard->paths[0], PNG_MAP_FILE),
	};
	enum prony_status status = read_map(source, shard->classes, err);
	if (status == PRONY_OK)
		*out = &source->base;
	else
		close_source(&source->base);
	return status;
}

static enum prony_status record(const struct data_source *base, int64_t at, struct data_record *out,
				struct error *err)
{
	const struct map_source *source = (const struct map_source *)base;
	const struct map_line *line = &source->lines[at];
	char *path = *line->path == '/' ? memory_strdup(line->path)
					: path_join(source->folder, line->path);
	char *bytes;
	size_t length;
	enum prony_status status = file_read(path, PICTURE_LIMIT_BYTES, &bytes, &length, err);

	if (status == PRONY_OK) {
		data_record_reserve(out, length);
		memcpy(out->bytes, bytes, length);
		free(bytes);
		out->length = length;
		out->encoded = true;
		out->label = line->label;
		snprintf(out->name, sizeof(out->name), "%.200s", line->path);
		snprintf(out->where, sizeof(out->where), "%s", path);
	}
	free(path);
	return status;
}

extern const struct data_writer png_writer;

const struct data_format png_format = {
	.name = "png",
	.summary = "CNTK's map.txt, which lists PNG or JPEG files of its folder and their labels",
	.shard_files = 1,
	.recognises = recognises,
	.open = open_source,
	.record = record,
	.close = close_source,
	.writer = &png_writer,
};
