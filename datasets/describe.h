/* A data set as a framework's own loader has to know it. */
#ifndef PRONY_DATASETS_DESCRIBE_H
#define PRONY_DATASETS_DESCRIBE_H

#include <jansson.h>

#include "datasets/converted.h"

/*
 * New reference. The member `data` of case.json (docs/case-bundle.md): name, format, the files
 * of each shard, which of their samples count (first, count), shape (0: whatever the network
 * takes), classes, scale, mean and deviation by channel, whether they are to train with. Where
 * `converted` has a format, the files are those in its folder, of that part alone.
 */
json_t *dataset_to_json(const struct dataset *dataset, const char *folder, bool training,
			const struct converted *converted);

#endif
