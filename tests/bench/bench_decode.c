/*
 * Decodes, cuts, resizes and scales pictures into batches on all cores, for tests/bench/decode.py:
 *
 *     bench_decode FOLDER SIDE train|evaluation
 *
 * First prints, in the order of the pictures, "NAME LEFT TOP WIDTH HEIGHT MIRRORED EIGHTHS" (of
 * training) and then "ready". For each line "pass" on standard input it makes all samples once and
 * prints the nanoseconds; for "planes FILE" it writes their bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "datasets/format.h"
#include "datasets/image.h"
#include "datasets/records.h"

struct bench {
	const struct data_format *format;
	struct data_source *source;
	int side;
	bool training;
	size_t elements;
	uint8_t *planes; /* NULL: samples are scaled into `batch` */
	float *batch;
	float scaled[IMAGE_CHANNELS][256];
};

static struct image_view view_of(const struct bench *bench, int64_t item)
{
	return (struct image_view){.height = bench->side,
				   .width = bench->side,
				   .random = bench->training,
				   .draw = (uint64_t)item};
}

static enum prony_status make_one(void *context, int64_t item, struct data_record *record,
				  struct error *err)
{
	const struct bench *bench = context;
	struct image_view view = view_of(bench, item);
	size_t plane = bench->elements / IMAGE_CHANNELS;
	enum prony_status status = bench->format->record(bench->source, item, record, err);

	if (status != PRONY_OK)
		return status;
	if (bench->planes)
		return record_decode(record, &view, bench->planes + (size_t)item * bench->elements,
				     err);
	uint8_t *planes = memory_alloc(bench->elements);
	status = record_decode(record, &view, planes, err);
	float *out = bench->batch + (size_t)item * bench->elements;
	for (size_t c = 0; c < IMAGE_CHANNELS && status == PRONY_OK; c++)
		for (size_t i = 0; i < plane; i++)
			out[c * plane + i] = bench->scaled[c][planes[c * plane + i]];
	free(planes);
	return status;
}

static void fail(const struct error *err)
{
	fprintf(stderr, "bench_decode: %s\n", err->text);
	exit(65);
}

static void make_all(struct bench *bench)
{
	struct error err = ERROR_INIT;

	if (records_each(bench->source->count, make_one, bench, &err) != PRONY_OK)
		fail(&err);
}

static void say_boxes(const struct bench *bench)
{
	struct data_record record = {0};
	struct error err = ERROR_INIT;

	for (int64_t i = 0; i < bench->source->count; i++) {
		struct image_view view = view_of(bench, i);
		struct image_box box;
		int height = 0, width = 0;

		if (bench->format->record(bench->source, i, &record, &err) != PRONY_OK ||
		    image_measure(record.where, record.bytes, record.length, &height, &width,
				  &err) != PRONY_OK)
			fail(&err);
		image_box_of(&view, height, width, &box);
		double step = box.x.step < box.y.step ? box.x.step : box.y.step;
		printf("%s %d %d %d %d %d %d\n", record.name, box.x.low, box.y.low,
		       box.x.high - box.x.low, box.y.high - box.y.low, box.mirrored,
		       step >= 8   ? 1
		       : step >= 4 ? 2
		       : step >= 2 ? 4
				   : 8);
	}
	printf("ready\n");
	fflush(stdout);
	data_record_release(&record);
}

static void write_planes(struct bench *bench, const char *path)
{
	size_t bytes = (size_t)bench->source->count * bench->elements;
	FILE *stream = fopen(path, "wb");

	bench->planes = memory_alloc(bytes);
	make_all(bench);
	if (!stream || fwrite(bench->planes, 1, bytes, stream) != bytes || fclose(stream) != 0) {
		fprintf(stderr, "bench_decode: cannot write %s\n", path);
		exit(74);
	}
	free(bench->planes);
	bench->planes = NULL;
	printf("written\n");
	fflush(stdout);
}

static void answer(struct bench *bench)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "planes ", 7) == 0) {
			write_planes(bench, line + 7);
			continue;
		}
		int64_t start = clock_monotonic_ns();
		make_all(bench);
		printf("%" PRId64 "\n", clock_monotonic_ns() - start);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
	struct error err = ERROR_INIT;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_decode FOLDER SIDE train|evaluation\n");
		return 64;
	}
	const char *paths[] = {argv[1]};
	const struct data_shard shard = {.paths = paths, .classes = INT32_MAX};
	struct bench bench = {.format = data_format_find("images"),
			      .side = (int)strtol(argv[2], NULL, 10),
			      .training = strcmp(argv[3], "train") == 0};
	bench.elements = IMAGE_CHANNELS * (size_t)bench.side * (size_t)bench.side;
	for (int i = 0; i < IMAGE_CHANNELS * 256; i++)
		bench.scaled[i / 256][i % 256] =
			(float)((i % 256 / 255.0 - mean[i / 256]) / deviation[i / 256]);
	if (bench.format->open(&shard, &bench.source, &err) != PRONY_OK)
		fail(&err);
	bench.batch = memory_alloc((size_t)bench.source->count * bench.elements * sizeof(float));
	say_boxes(&bench);
	answer(&bench);
	bench.format->close(bench.source);
	free(bench.batch);
	return 0;
}
