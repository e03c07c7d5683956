/* The member `data` of case.json: the samples for a framework's own loader (input native). */
#ifndef PRONY_BUNDLE_LOADER_DATA_H
#define PRONY_BUNDLE_LOADER_DATA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { LOADER_CHANNELS_MAX = 4 };

struct loader_data {
	const char *name, *format; /* rows of docs/datasets.md */
	const char **paths;	   /* of all shards, in order */
	size_t path_count;
	int64_t first, count; /* range of samples, in the order of the files */
	int channels;
	int64_t height, width; /* of a stored sample; 0: sizes vary */
	int64_t classes;
	/* x = (value / scale - mean) / deviation, by channel. */
	double scale, mean[LOADER_CHANNELS_MAX], deviation[LOADER_CHANNELS_MAX];
	bool training; /* random order and random crops */
};

/* Reads the member `data`. Strings and paths are copied into the arena. PRONY_BAD_INPUT names the
 * wrong member. */
enum prony_status loader_data_from_json(const json_t *json, struct arena *arena,
					struct loader_data *out, struct error *err);

#endif
