/* The words of the field that every folder shares: stages, precisions, sync modes, optimisers. */
#ifndef PRONY_BASE_WORDS_H
#define PRONY_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A stage says what one step does (docs/semantics.md, "Words"). */
enum stage {
	STAGE_FORWARD,		/* evaluation mode to logits, no loss */
	STAGE_FORWARD_BACKWARD, /* training mode, loss, fresh gradients of all parameters */
	STAGE_TRAIN,		/* forward-backward and the optimiser's update */
	STAGE_LOAD,		/* produce batches and nothing else */
	STAGE_COUNT
};

enum precision { PRECISION_FP32, PRECISION_TF32, PRECISION_FP16, PRECISION_BF16, PRECISION_COUNT };

/* When the harness waits for issued work inside a window; modes are never compared. */
enum sync_mode {
	SYNC_END,    /* once, at the end of the window: throughput */
	SYNC_STEP,   /* each step: latency */
	SYNC_BLOCKS, /* every K steps, blocks of at least 250 ms: the default */
	SYNC_COUNT
};

enum optimiser { OPTIMISER_SGD, OPTIMISER_MOMENTUM, OPTIMISER_RMSPROP, OPTIMISER_COUNT };

/* How batches reach the step. */
enum input_mode { INPUT_RESIDENT, INPUT_STREAM, INPUT_NATIVE, INPUT_COUNT };

/* The canonical word of a value; never NULL ("?" outside the table). */
const char *stage_name(enum stage stage);
const char *precision_name(enum precision precision);
const char *sync_mode_name(enum sync_mode mode);
const char *optimiser_name(enum optimiser optimiser);
const char *input_mode_name(enum input_mode mode);

/* Parse a canonical word or alias (eval, infer); false leaves *out untouched. */
bool stage_parse(const char *word, enum stage *out);
bool precision_parse(const char *word, enum precision *out);
bool sync_mode_parse(const char *word, enum sync_mode *out);
bool optimiser_parse(const char *word, enum optimiser *out);
bool input_mode_parse(const char *word, enum input_mode *out);

/*
 * The word of `words` nearest to `word` (edit distance at most 3, at most a third of the
 * word's letters and less than all of them), for "did you mean"; NULL when none is near.
 */
const char *word_nearest(const char *word, const char *const *words, size_t count);

#endif
