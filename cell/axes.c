#include "cell/axes.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "cell/cell.h"

#define KNOWN_BYTES 600 /* bytes of the list of known words in a message */
#define REAL_DIGITS 17	/* enough to tell any two doubles apart */

#define VOCABULARY_FRAMEWORK_TYPE(enumeration) NULL
#define VOCABULARY_TEXT(enumeration) NULL
#define VOCABULARY_WORD(enumeration) &enumeration##_vocabulary
#define VOCABULARY_INT(enumeration) NULL
#define VOCABULARY_REAL(enumeration) NULL
#define VOCABULARY_SWITCH(enumeration) NULL

const struct axis axes[AXIS_COUNT] = {
#define X(id, member, type_, enumeration, recipe, option_, letter_, help_, ...)                    \
	[AXIS_##id] = {.name = #member,                                                            \
		       .type = AXIS_##type_,                                                       \
		       .vocabulary = VOCABULARY_##type_(enumeration),                              \
		       .offset = offsetof(struct cell, member),                                    \
		       .option = option_,                                                          \
		       .letter = letter_,                                                          \
		       .help = help_,                                                              \
		       __VA_ARGS__},
	CELL_AXES(X)
#undef X
};

/* Enumerations are read and written as int. */
static_assert(sizeof(enum stage) == sizeof(int) && sizeof(enum sync_mode) == sizeof(int),
	      "an enumeration has another size");

bool axis_applies_when_training(const struct cell *cell)
{
	return cell->stage == STAGE_TRAIN;
}

bool axis_applies_with_momentum(const struct cell *cell)
{
	return cell->stage == STAGE_TRAIN && cell->optimiser == OPTIMISER_MOMENTUM;
}

bool axis_applies_to_sequences(const struct cell *cell)
{
	return cell->sequence > 0;
}

enum axis_id axis_in_order(int n)
{
	for (int id = 0; id < AXIS_COUNT; id++) {
		int before = 0;

		for (int other = 0; other < AXIS_COUNT; other++)
			before += axes[other].order < axes[id].order;
		if (before == n)
			return (enum axis_id)id;
	}
	return AXIS_COUNT;
}

/* Decimal notation only: strtod alone takes hexadecimal, "inf" and "nan". */
static bool parse_number(const struct axis *axis, const char *text, bool whole, double *out)
{
	char *end;

	if (!*text || strspn(text, whole ? "0123456789" : "0123456789.eE+-") != strlen(text))
		return false;
	*out = strtod(text, &end);
	return *end == '\0' && isfinite(*out) && *out >= axis->min && *out <= axis->max;
}

bool axis_parse(const struct axis *axis, const char *text, void *value)
{
	double number = 0;
	int word;

	switch (axis->type) {
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
		if (strlen(text) >= CELL_WORD_BYTES)
			return false;
		memcpy(value, text, strlen(text) + 1);
		return true;
	case AXIS_WORD:
		word = vocabulary_find(axis->vocabulary, text);
		if (word >= 0)
			memcpy(value, &word, sizeof word);
		return word >= 0;
	case AXIS_INT:
		if (!parse_number(axis, text, true, &number))
			return false;
		*(int64_t *)value = (int64_t)number;
		return true;
	case AXIS_REAL:
		if (!parse_number(axis, text, false, &number))
			return false;
		*(double *)value = number;
		return true;
	case AXIS_SWITCH:
		word = !strcmp(text, "on") || !strcmp(text, "true");
		if (!word && strcmp(text, "off") && strcmp(text, "false"))
			return false;
		*(bool *)value = word;
		return true;
	}
	return false;
}

void axis_text(const struct axis *axis, const void *value, char out[CELL_WORD_BYTES])
{
	int word, digits = 1;

	switch (axis->type) {
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
		snprintf(out, CELL_WORD_BYTES, "%s", (const char *)value);
		return;
	case AXIS_WORD:
		memcpy(&word, value, sizeof word);
		snprintf(out, CELL_WORD_BYTES, "%s", vocabulary_word(axis->vocabulary, word));
		return;
	case AXIS_INT:
		snprintf(out, CELL_WORD_BYTES, "%" PRId64, *(const int64_t *)value);
		return;
	case AXIS_REAL:
		do {
			snprintf(out, CELL_WORD_BYTES, "%.*g", digits, *(const double *)value);
		} while (strtod(out, NULL) != *(const double *)value && digits++ < REAL_DIGITS);
		return;
	case AXIS_SWITCH:
		snprintf(out, CELL_WORD_BYTES, "%s", *(const bool *)value ? "on" : "off");
		return;
	}
}

json_t *axis_to_json(const struct axis *axis, const void *value)
{
	char text[CELL_WORD_BYTES];

	switch (axis->type) {
	case AXIS_INT:
		return json_integer(*(const int64_t *)value);
	case AXIS_REAL:
		return json_number(*(const double *)value);
	case AXIS_SWITCH:
		return json_boolean(*(const bool *)value);
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
	case AXIS_WORD:
		break;
	}
	axis_text(axis, value, text);
	/* The text may have been truncated in the middle of a UTF-8 character. */
	json_t *string = json_string(text);
	return string ? string : json_string_nocheck(text);
}

static enum prony_status text_from_json(const struct axis *axis, const json_t *object, void *value,
					struct error *err)
{
	const char *text;
	enum prony_status status = json_get_string(object, axis->name, &text, err);

	if (status == PRONY_OK && !axis_parse(axis, text, value))
		return error_set(err, PRONY_BAD_INPUT, "\"%s\" '%.80s' is not known", axis->name,
				 text);
	return status;
}

enum prony_status axis_from_json(const struct axis *axis, const json_t *object, void *value,
				 struct error *err)
{
	double real = 0;
	int64_t whole = 0;
	enum prony_status status;

	switch (axis->type) {
	case AXIS_SWITCH:
		return json_get_bool(object, axis->name, value, err);
	case AXIS_INT:
		status = json_get_int(object, axis->name, &whole, err);
		if (status == PRONY_OK && (whole < 1 || whole > INT32_MAX))
			return error_set(err, PRONY_BAD_INPUT,
					 "\"%s\" is %" PRId64 ", but must be 1 to %d", axis->name,
					 whole, INT32_MAX);
		if (status == PRONY_OK)
			*(int64_t *)value = whole;
		return status;
	case AXIS_REAL:
		status = json_get_real(object, axis->name, &real, err);
		if (status == PRONY_OK && (!isfinite(real) || real < 0))
			return error_set(err, PRONY_BAD_INPUT,
					 "\"%s\" is %g, but must be at least 0", axis->name, real);
		if (status == PRONY_OK)
			*(double *)value = real;
		return status;
	case AXIS_FRAMEWORK_TYPE:
	case AXIS_TEXT:
	case AXIS_WORD:
		break;
	}
	return text_from_json(axis, object, value, err);
}

static enum prony_status unknown_word(const struct axis *axis, const char *text, struct error *err)
{
	const struct vocabulary *vocabulary = axis->vocabulary;
	const char *nearest = word_nearest(text, vocabulary->words, (size_t)vocabulary->count);
	struct strbuf known;

	strbuf_init(&known, KNOWN_BYTES);
	for (int i = 0; i < vocabulary->count; i++)
		strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", vocabulary->words[i]);
	enum prony_status status =
		error_set(err, PRONY_USAGE, "unknown %s \"%.80s\"%s%s%s Known: %s", axis->singular,
			  text, nearest ? "; did you mean " : ".", nearest ? nearest : "",
			  nearest ? "?" : "", strbuf_text(&known));
	strbuf_release(&known);
	return status;
}

enum prony_status axis_canonical(const struct axis *axis, const char *text,
				 char out[CELL_WORD_BYTES], struct error *err)
{
	/* Large enough for a value of any type. */
	union {
		char text[CELL_WORD_BYTES];
		int word;
		int64_t whole;
		double real;
		bool on;
	} value;

	if (axis_parse(axis, text, &value)) {
		axis_text(axis, &value, out);
		return PRONY_OK;
	}
	if (axis->vocabulary)
		return unknown_word(axis, text, err);
	if (!axis->needs)
		return error_set(err, PRONY_USAGE, "%s \"%.40s...\" is longer than %d letters",
				 axis->singular, text, CELL_WORD_BYTES - 1);
	return error_set(err, PRONY_USAGE, "needs %s, not \"%.80s\"; for example %s", axis->needs,
			 text, axis->example);
}

bool axis_set(const struct axis *axis, const char *text, struct cell *cell)
{
	if (axis->type == AXIS_FRAMEWORK_TYPE)
		return cell_parse_framework(text, cell, NULL) == PRONY_OK;
	return axis_parse(axis, text, (char *)cell + axis->offset);
}

bool axis_applies(const struct axis *axis, const struct cell *cell)
{
	return !axis->applies || axis->applies(cell);
}

bool axis_is_default(const struct axis *axis, const struct cell *cell)
{
	char text[CELL_WORD_BYTES];

	axis_text(axis, axis_value(axis, cell), text);
	return !strcmp(text, axis->initial);
}

bool axis_equal(const struct axis *axis, const struct cell *a, const struct cell *b)
{
	char text[CELL_WORD_BYTES], other[CELL_WORD_BYTES];

	if (axis_applies(axis, a) != axis_applies(axis, b))
		return false;
	if (!axis_applies(axis, a))
		return true;
	axis_text(axis, axis_value(axis, a), text);
	axis_text(axis, axis_value(axis, b), other);
	return !strcmp(text, other);
}

void cell_axes_to_json(const struct cell *cell, json_t *object)
{
	for (int id = 0; id < AXIS_COUNT; id++)
		json_object_set_new(object, axes[id].name,
				    axis_applies(&axes[id], cell)
					    ? axis_to_json(&axes[id], axis_value(&axes[id], cell))
					    : json_null());
}
