/* The table of a cell's axes and settings. One row says everything about an axis: its key in
 * suites, its option, its word in the cell's key, its column in the store and in CSV, its member in
 * JSON and in the recipe, its place in reports. All other code reads this table. */
#ifndef PRONY_CELL_AXES_H
#define PRONY_CELL_AXES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cell/vocabulary.h"

struct cell;

#define CELL_WORD_BYTES 64

/* Type of a value. In C: char[CELL_WORD_BYTES], the enumeration of a vocabulary, int64_t, double,
 * bool ("on" and "off"). A framework is a text with a grammar of its own. */
enum axis_type { AXIS_FRAMEWORK_TYPE, AXIS_TEXT, AXIS_WORD, AXIS_INT, AXIS_REAL, AXIS_SWITCH };

/* Keys and specs are stored and looked up by their text. Axes of the first stores always appear in
 * that text. Axes that were added later are left out while they have their default, so that stored
 * keys stay valid. A default never changes. */
enum axis_texts { AXIS_LATER, AXIS_IN_SPEC, AXIS_IN_KEY_AND_SPEC };

struct axis {
	const char *name; /* the member name: word of the key, column of the store and of CSV, JSON
			     member */
	enum axis_type type;
	const struct vocabulary *vocabulary; /* AXIS_WORD */
	size_t offset;			     /* in struct cell */

	const char
		*plural; /* key of a suite for a list of words; in a rule: the cells it selects */
	const char *singular; /* how messages name it */
	bool settable;	      /* the singular is a key too: a single value that an override sets */
	const char *option, *help;   /* of `prony run` */
	char letter;		     /* of the option, or 0 */
	const char *initial;	     /* the default; "" = the network's own */
	const char *needs, *example; /* for messages about a number */
	double min, max;
	enum axis_texts texts;
	bool (*applies)(const struct cell *cell); /* NULL: it applies to every cell */
	int order; /* position in the nesting of a plan (outermost first) and in a report's title */
	const char *title; /* prefix in titles; NULL: not shown in titles */
	bool quiet;	   /* hidden in titles while it has its default */
};

bool axis_applies_when_training(const struct cell *cell);
bool axis_applies_with_momentum(const struct cell *cell);
bool axis_applies_to_sequences(const struct cell *cell);

/*
 * X(id, member, type, enumeration, recipe, the other members of struct axis). Recipe: SAME =
 * workers receive it under the same name; OWN = they receive it in another way or do not need it.
 * The order is that of keys, columns and options.
 */
#define CELL_AXES(X)                                                                               \
	X(FRAMEWORK, framework, FRAMEWORK_TYPE, none, OWN, "frameworks", 'f',                      \
	  "frameworks: NAME[@ENV][:BACKEND][+OPTION...], or all", .plural = "frameworks",          \
	  .singular = "framework", .initial = "all", .texts = AXIS_IN_KEY_AND_SPEC, .order = 99)   \
	X(NETWORK, network, TEXT, none, OWN, "networks", 'n',                                      \
	  "networks: a name, FILE.onnx, or all built-in networks", .plural = "networks",           \
	  .singular = "network", .initial = "lenet", .texts = AXIS_IN_KEY_AND_SPEC, .order = 1,    \
	  .title = "")                                                                             \
	X(DATASET, dataset, TEXT, none, OWN, "datasets", 'd', "data sets", .plural = "datasets",   \
	  .singular = "data set", .initial = "", .texts = AXIS_IN_KEY_AND_SPEC, .order = 2,        \
	  .title = ", ")                                                                           \
	X(DEVICE, device, TEXT, none, OWN, "devices", 'D',                                         \
	  "devices: cpu, cpu:4, cpu:1x2 (two ranks), cuda:0", .plural = "devices",                 \
	  .singular = "device", .initial = "cpu", .texts = AXIS_IN_KEY_AND_SPEC, .order = 6,       \
	  .title = ", ")                                                                           \
	X(PRECISION, precision, WORD, precision, SAME, "precisions", 'p',                          \
	  "precisions: fp32, tf32, fp16, bf16", .plural = "precisions", .singular = "precision",   \
	  .initial = "fp32", .texts = AXIS_IN_KEY_AND_SPEC, .order = 7, .title = ", ")             \
	X(BATCH, batch, INT, none, SAME, "batches", 'b',                                           \
	  "batch sizes; ranges 1..64*2 and 16..64+16", .plural = "batches", .singular = "batch",   \
	  .settable = true, .initial = "64", .min = 1, .max = 16777216,                            \
	  .needs = "a whole number from 1 to 16777216", .example = "16",                           \
	  .texts = AXIS_IN_KEY_AND_SPEC, .order = 5, .title = ", batch ")                          \
	X(STAGE, stage, WORD, stage, SAME, "stages", 's',                                          \
	  "stages: forward, forward-backward, train, load, prefill, decode", .plural = "stages",   \
	  .singular = "stage", .initial = "train", .texts = AXIS_IN_KEY_AND_SPEC, .order = 3,      \
	  .title = ", ")                                                                           \
	X(INPUT, input, WORD, input_mode, SAME, "input", 0,                                        \
	  "source of the batches: resident, synthetic, stream, native; NAME=ones, zeros, "         \
	  "positions, 0..V or FILE.npy fills an input of an ONNX file",                            \
	  .plural = "inputs", .singular = "input", .initial = "resident",                          \
	  .texts = AXIS_IN_KEY_AND_SPEC, .order = 9, .title = ", input ", .quiet = true)           \
	X(SYNC, sync, WORD, sync_mode, OWN, "sync", 0,                                             \
	  "when to wait for queued work: blocks, step, end", .plural = "syncs",                    \
	  .singular = "sync mode", .initial = "blocks", .texts = AXIS_IN_KEY_AND_SPEC,             \
	  .order = 10, .title = ", sync ", .quiet = true)                                          \
	X(OPTIMISER, optimiser, WORD, optimiser, SAME, "optimiser", 0,                             \
	  "optimisers of train: sgd, momentum, rmsprop, adamw", .plural = "optimisers",            \
	  .singular = "optimiser", .initial = "momentum", .texts = AXIS_IN_KEY_AND_SPEC,           \
	  .applies = axis_applies_when_training, .order = 4, .title = " with ")                    \
	X(DROPOUT, dropout, SWITCH, none, SAME, "dropout", 0, "dropout layers: on, off",           \
	  .plural = "dropouts", .singular = "dropout", .settable = true, .initial = "on",          \
	  .needs = "true or false (on or off)", .example = "false", .texts = AXIS_IN_KEY_AND_SPEC, \
	  .order = 8, .title = ", dropout ", .quiet = true)                                        \
	X(LEARNING_RATE, learning_rate, REAL, none, SAME, "learning-rate", 0, "learning rates",    \
	  .plural = "learning-rates", .singular = "learning-rate", .settable = true,               \
	  .initial = "0.001", .min = 1e-12, .max = 1000, .needs = "a number from 1e-12 to 1000",   \
	  .example = "0.01", .texts = AXIS_IN_SPEC, .applies = axis_applies_when_training,         \
	  .order = 11, .title = ", learning rate ", .quiet = true)                                 \
	X(MOMENTUM, momentum, REAL, none, SAME, "momentum", 0,                                     \
	  "momenta, for the optimiser momentum", .plural = "momenta", .singular = "momentum",      \
	  .settable = true, .initial = "0.9", .max = 1, .needs = "a number from 0 to 1",           \
	  .example = "0.9", .texts = AXIS_IN_SPEC, .applies = axis_applies_with_momentum,          \
	  .order = 12, .title = ", momentum ", .quiet = true)                                      \
	X(WEIGHT_DECAY, weight_decay, REAL, none, SAME, "weight-decay", 0, "weight decays",        \
	  .plural = "weight-decays", .singular = "weight-decay", .settable = true, .initial = "0", \
	  .max = 1, .needs = "a number from 0 to 1", .example = "0.0005", .texts = AXIS_IN_SPEC,   \
	  .applies = axis_applies_when_training, .order = 13, .title = ", weight decay ",          \
	  .quiet = true)                                                                           \
	X(LOOP, loop, WORD, loop_mode, OWN, "loop", 0,                                             \
	  "who runs the steps: step (prony), fit (the framework's epochs)", .plural = "loops",     \
	  .singular = "loop", .initial = "step", .order = 14, .title = ", loop ", .quiet = true)   \
	X(SEQUENCE, sequence, INT, none, OWN, "sequence", 0,                                       \
	  "tokens of a sample, for networks over sequences (0: the network's own number); "        \
	  "ranges as of -b",                                                                       \
	  .plural = "sequences", .singular = "sequence", .settable = true, .initial = "0",         \
	  .max = 16777216, .needs = "a whole number from 0 to 16777216", .example = "128",         \
	  .applies = axis_applies_to_sequences, .order = 15, .title = ", sequence ")               \
	X(CLIP_NORM, clip_norm, REAL, none, SAME, "clip-norm", 0,                                  \
	  "largest norm of all gradients together; larger ones are scaled down to it (0: off)",    \
	  .plural = "clip-norms", .singular = "clip-norm", .settable = true, .initial = "0",       \
	  .max = 1e9, .needs = "a number from 0 to 1e9", .example = "1",                           \
	  .applies = axis_applies_when_training, .order = 16, .title = ", clip norm ",             \
	  .quiet = true)                                                                           \
	X(CACHES, caches, WORD, cache_mode, OWN, "caches", 0,                                      \
	  "code that a framework compiled and keeps on disk: warm, cold (an empty folder for "     \
	  "each process)",                                                                         \
	  .plural = "caches", .singular = "cache mode", .initial = "warm", .order = 17,            \
	  .title = ", caches ", .quiet = true)

enum axis_id {
#define X(id, ...) AXIS_##id,
	CELL_AXES(X)
#undef X
		AXIS_COUNT
};

/* The struct member of a row: of every row, or only of those in the recipe. */
#define AXIS_MEMBER(id, member, type, enumeration, ...) AXIS_MEMBER_##type(member, enumeration)
#define AXIS_MEMBER_FRAMEWORK_TYPE(member, enumeration) char member[CELL_WORD_BYTES];
#define AXIS_MEMBER_TEXT(member, enumeration) char member[CELL_WORD_BYTES];
#define AXIS_MEMBER_WORD(member, enumeration) enum enumeration member;
#define AXIS_MEMBER_INT(member, enumeration) int64_t member;
#define AXIS_MEMBER_REAL(member, enumeration) double member;
#define AXIS_MEMBER_SWITCH(member, enumeration) bool member;
#define AXIS_RECIPE_MEMBER(id, member, type, enumeration, recipe, ...)                             \
	AXIS_RECIPE_##recipe(AXIS_MEMBER_##type(member, enumeration))
#define AXIS_RECIPE_SAME(text) text
#define AXIS_RECIPE_OWN(text)

extern const struct axis axes[AXIS_COUNT];

/* The row with position n in the order column. */
enum axis_id axis_in_order(int n);

/* Parses and prints a single value; `value` points to the axis's type. Parsing returns false and
 * leaves the value untouched on bad input. Numbers are decimal and within their bounds; switches
 * are on, off, true, false. A real number is printed with the fewest digits that read back as the
 * same number. */
bool axis_parse(const struct axis *axis, const char *text, void *value);
void axis_text(const struct axis *axis, const void *value, char out[CELL_WORD_BYTES]);
json_t *axis_to_json(const struct axis *axis, const void *value); /* new reference */
/* PRONY_BAD_INPUT names the member. Numbers are not checked against the axis's bounds, only against
 * what the type can mean: an integer is at least 1, a real is finite and at least 0. */
enum prony_status axis_from_json(const struct axis *axis, const json_t *object, void *value,
				 struct error *err);

/* Makes a typed word canonical (a framework's text is left as it is). PRONY_USAGE says what the
 * axis expects, or lists its words with the nearest one. */
enum prony_status axis_canonical(const struct axis *axis, const char *text,
				 char out[CELL_WORD_BYTES], struct error *err);

/* A pointer to the axis's value in a cell. */
static inline const void *axis_value(const struct axis *axis, const struct cell *cell)
{
	return (const char *)cell + axis->offset;
}
/* Sets the axis's value from text. For a framework also sets the parts of its name. */
bool axis_set(const struct axis *axis, const char *text, struct cell *cell);
bool axis_applies(const struct axis *axis, const struct cell *cell);
bool axis_is_default(const struct axis *axis, const struct cell *cell);
bool axis_equal(const struct axis *axis, const struct cell *a, const struct cell *b);

/* Writes every axis as a member of the object; null when it does not apply. */
void cell_axes_to_json(const struct cell *cell, json_t *object);

#endif
