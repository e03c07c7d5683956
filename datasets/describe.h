/* A data set as a framework's own loader has to know it. */
#ifndef PRONY_DATASETS_DESCRIBE_H
#define PRONY_DATASETS_DESCRIBE_H

#include <jansson.h>

#include "datasets/dataset.h"

/*
 * New reference. The member `data` of case.json (docs/worker-protocol.md): name, format, the files
 * of each shard, which of their samples count (first, count), shape (0: whatever the network
 * takes), classes, scale, mean and deviation by channel, whether they are to train with.
 */
json_t *dataset_to_json(const struct dataset *dataset, const char *folder, bool training);

#endif
