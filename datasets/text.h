/* Text as tokens: each byte is a token, and its label is the byte that follows. */
#ifndef PRONY_DATASETS_TEXT_H
#define PRONY_DATASETS_TEXT_H

#include "datasets/dataset.h"

/* Tokens and labels are below this. */
enum { TEXT_CLASSES = 256 };

bool dataset_is_text(const struct dataset *dataset);

/* Describes the user's text file as a data set in the arena, named after the file and its content.
 * PRONY_BAD_INPUT if it cannot be read. */
enum prony_status text_dataset(const char *path, struct arena *arena, const struct dataset **out,
			       struct error *err);

/* Fills `count` batches of sequences: batch x length tokens, and as many labels, one after the
 * other. request->dims[0] is the length. Training sequences begin at seeded random bytes of the
 * first nine tenths; evaluation sequences follow each other through the rest, and then from its
 * start again. Batch n does not depend on how many are read. PRONY_BAD_INPUT if the text is too
 * short. */
enum prony_status text_batches(const struct dataset *dataset, const char *folder,
			       const struct batch_request *request, int count, int64_t *tokens,
			       int64_t *labels, struct error *err);

#endif
