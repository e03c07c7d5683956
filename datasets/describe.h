/* Describes a data set for a framework's own loader. */
#ifndef PRONY_DATASETS_DESCRIBE_H
#define PRONY_DATASETS_DESCRIBE_H

#include <jansson.h>

#include "datasets/converted.h"

/* The member `data` of case.json (docs/case-bundle.md): name, format, files of each shard, which
 * samples count (first, count), shape (0: whatever the network takes), classes, scale, mean and
 * deviation by channel, and whether it is for training. If `converted` has a format, the files are
 * those of its folder. New reference. */
json_t *dataset_to_json(const struct dataset *dataset, const char *folder, bool training,
			const struct converted *converted);

#endif
