/* The fixed words of the axes (docs/semantics.md, "Words"). */
#ifndef PRONY_CELL_VOCABULARY_H
#define PRONY_CELL_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>

/* A stage says what one step does. */
#define STAGES(X)                                                                                  \
	X(STAGE_FORWARD, "forward") /* evaluation mode to logits, no loss */                       \
	X(STAGE_FORWARD_BACKWARD,                                                                  \
	  "forward-backward")	    /* training mode, loss, fresh gradients of all parameters */   \
	X(STAGE_TRAIN, "train")	    /* forward-backward and the optimiser's update */              \
	X(STAGE_LOAD, "load")	    /* load batches only */                                        \
	X(STAGE_PREFILL, "prefill") /* of a prompt: fills the caches, logits of the last token */  \
	X(STAGE_DECODE, "decode")   /* one token after a prompt: keys and values from the caches */

/* The last three are precisions of ONNX files that are run unchanged; no worker is asked for them.
 * mixed: of several number types, or another one. */
#define PRECISIONS(X)                                                                              \
	X(PRECISION_FP32, "fp32")                                                                  \
	X(PRECISION_TF32, "tf32")                                                                  \
	X(PRECISION_FP16, "fp16")                                                                  \
	X(PRECISION_BF16, "bf16")                                                                  \
	X(PRECISION_FP64, "fp64") X(PRECISION_INT8, "int8") X(PRECISION_MIXED, "mixed")

/* When the harness waits for issued work inside a window. Results of different modes are never
 * compared. */
#define SYNC_MODES(X)                                                                              \
	X(SYNC_END, "end")	 /* once, at the end of the window: throughput */                  \
	X(SYNC_STEP, "step")	 /* each step: latency */                                          \
	X(SYNC_BLOCKS, "blocks") /* every K steps, blocks of at least 0.1 s: the default */

#define OPTIMISERS(X)                                                                              \
	X(OPTIMISER_SGD, "sgd")                                                                    \
	X(OPTIMISER_MOMENTUM, "momentum")                                                          \
	X(OPTIMISER_RMSPROP, "rmsprop") X(OPTIMISER_ADAMW, "adamw")

/* How batches reach the step. */
#define INPUT_MODES(X)                                                                             \
	X(INPUT_RESIDENT, "resident") /* a few batches of the data set, in memory beforehand */    \
	X(INPUT_STREAM, "stream")     /* read and decoded by prony while the network runs */       \
	X(INPUT_NATIVE, "native")     /* by the framework's own loader */                          \
	X(INPUT_SYNTHETIC,                                                                         \
	  "synthetic")	      /* like resident, with random values whatever the data set */        \
	X(INPUT_COLD, "cold") /* like stream; each file is first dropped from the page cache */

/* Who runs the steps: the harness one by one, or the framework's own loop over epochs. */
#define LOOPS(X) X(LOOP_STEP, "step") X(LOOP_FIT, "fit")

/* What a process finds of the code that its framework compiled in processes before it. */
#define CACHES(X)                                                                                  \
	X(CACHES_WARM, "warm") /* all that the framework keeps on disk */                          \
	X(CACHES_COLD, "cold") /* nothing: its caches are in an empty folder */

/* X(name, words, prefix of its values): an enumeration `enum name` with the constant PREFIX_COUNT.
 */
#define VOCABULARIES(X)                                                                            \
	X(stage, STAGES, STAGE)                                                                    \
	X(precision, PRECISIONS, PRECISION)                                                        \
	X(sync_mode, SYNC_MODES, SYNC)                                                             \
	X(optimiser, OPTIMISERS, OPTIMISER)                                                        \
	X(input_mode, INPUT_MODES, INPUT)                                                          \
	X(loop_mode, LOOPS, LOOP)                                                                  \
	X(cache_mode, CACHES, CACHES)

#define VOCABULARY_ID(id, word) id,
#define X(name, words, prefix) enum name { words(VOCABULARY_ID) prefix##_COUNT };
VOCABULARIES(X)
#undef X
#undef VOCABULARY_ID

/* Whether the stage is a step of a language model with key-value caches. For a worker it is the
 * stage forward, on a graph of its own. */
static inline bool stage_has_cache(enum stage stage)
{
	return stage == STAGE_PREFILL || stage == STAGE_DECODE;
}

/* The number of precisions that a worker can be asked for. */
#define PRECISION_ASKED (PRECISION_BF16 + 1)

struct vocabulary {
	const char *const *words; /* by value */
	int count;
};

/* For each enumeration: its vocabulary; the canonical word of a value, never NULL ("?" outside the
 * table); the value of a word or an alias (eval, infer: forward). Parsing returns false and leaves
 * *out untouched for an unknown word. */
#define X(name, words, prefix)                                                                     \
	extern const struct vocabulary name##_vocabulary;                                          \
	const char *name##_name(enum name value);                                                  \
	bool name##_parse(const char *word, enum name *out);
VOCABULARIES(X)
#undef X

/* The same without the type; -1 for an unknown word. */
const char *vocabulary_word(const struct vocabulary *vocabulary, int value);
int vocabulary_find(const struct vocabulary *vocabulary, const char *word);

#endif
