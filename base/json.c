#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"

#define JSON_MAX_DEPTH 64

struct place {
	size_t line, column;
};

/* When memory runs out, jansson behaves as if a value were absent: a member would be missing, a
 * list empty, a digest wrong. So install allocation functions that end the process. A constructor
 * runs before any other caller. */
__attribute__((constructor)) static void take_over_memory(void)
{
	json_set_alloc_funcs(memory_alloc, free);
}

/* Finds where nesting first exceeds JSON_MAX_DEPTH. jansson's own limit (2048) is fixed at build
 * time, and code that reads the result recurses too. Malformed text is left for jansson to report.
 */
static bool too_deep(const char *text, size_t length, struct place *where)
{
	size_t depth = 0, line_start = 0;
	bool in_string = false;

	*where = (struct place){.line = 1};
	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (c == '\n') {
			where->line++;
			line_start = i + 1;
		} else if (in_string && c == '\\') {
			i++;
		} else if (c == '"') {
			in_string = !in_string;
		} else if (!in_string && (c == '[' || c == '{') && ++depth > JSON_MAX_DEPTH) {
			where->column = i - line_start + 1;
			return true;
		} else if (!in_string && (c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

enum prony_status json_parse(const char *text, size_t length, const char *where, json_t **out,
			     struct error *err)
{
	struct place place;
	json_error_t problem;

	if (too_deep(text, length, &place))
		return error_set(err, PRONY_BAD_INPUT,
				 "%s: line %zu, column %zu: nested more than %d deep", where,
				 place.line, place.column, JSON_MAX_DEPTH);

	json_t *document = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
	if (!document)
		return error_set(err, PRONY_BAD_INPUT, "%s: line %d, column %d: %s", where,
				 problem.line, problem.column, problem.text);
	*out = document;
	return PRONY_OK;
}

enum prony_status json_read_file(const char *path, size_t limit_bytes, json_t **out,
				 struct error *err)
{
	char *text;
	size_t length;
	enum prony_status status = file_read(path, limit_bytes, &text, &length, err);

	if (status != PRONY_OK)
		return status;
	status = json_parse(text, length, path, out, err);
	free(text);
	return status;
}

static const char *type_text(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "true or false";
	case JSON_NULL:
		break;
	}
	return "null";
}

static enum prony_status wrong_type(const json_t *object, const char *key, const char *expected,
				    struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_object(object))
		return error_set(err, PRONY_BAD_INPUT,
				 "expected an object with the key '%s', found %s", key,
				 object ? type_text(object) : "nothing");
	if (!value)
		return error_set(err, PRONY_BAD_INPUT, "the key '%s' (%s) is missing", key,
				 expected);
	return error_set(err, PRONY_BAD_INPUT, "the key '%s' must be %s, not %s", key, expected,
			 type_text(value));
}

enum prony_status json_get_string(const json_t *object, const char *key, const char **out,
				  struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return wrong_type(object, key, "a string", err);
	/* C code would see the text end at a NUL byte and miss the rest. */
	if (strlen(json_string_value(value)) != json_string_length(value))
		return error_set(err, PRONY_BAD_INPUT, "the key '%s' contains a NUL character",
				 key);
	*out = json_string_value(value);
	return PRONY_OK;
}

enum prony_status json_get_int(const json_t *object, const char *key, int64_t *out,
			       struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value))
		return wrong_type(object, key, "an integer", err);
	*out = (int64_t)json_integer_value(value);
	return PRONY_OK;
}

enum prony_status json_get_real(const json_t *object, const char *key, double *out,
				struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		return wrong_type(object, key, "a number", err);
	*out = json_number_value(value);
	return PRONY_OK;
}

enum prony_status json_get_bool(const json_t *object, const char *key, bool *out, struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		return wrong_type(object, key, "true or false", err);
	*out = json_is_true(value);
	return PRONY_OK;
}

enum prony_status json_get_array(const json_t *object, const char *key, json_t **out,
				 struct error *err)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_array(value))
		return wrong_type(object, key, "an array", err);
	*out = value;
	return PRONY_OK;
}

enum prony_status json_get_object(const json_t *object, const char *key, json_t **out,
				  struct error *err)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_object(value))
		return wrong_type(object, key, "an object", err);
	*out = value;
	return PRONY_OK;
}

const char *json_string_or(const json_t *object, const char *key, const char *otherwise)
{
	const char *value = otherwise;

	json_get_string(object, key, &value, NULL);
	return value;
}

int64_t json_int_or(const json_t *object, const char *key, int64_t otherwise)
{
	int64_t value = otherwise;

	json_get_int(object, key, &value, NULL);
	return value;
}

double json_real_or(const json_t *object, const char *key, double otherwise)
{
	double value = otherwise;

	json_get_real(object, key, &value, NULL);
	return value;
}

bool json_bool_or(const json_t *object, const char *key, bool otherwise)
{
	bool value = otherwise;

	json_get_bool(object, key, &value, NULL);
	return value;
}

json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static bool has_control(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			return true;
	return false;
}

static bool holds_control(const json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(value))
		return has_control(json_string_value(value)) ||
		       strlen(json_string_value(value)) != json_string_length(value);
	json_array_foreach(value, i, item) if (holds_control(item)) return true;
	json_object_foreach((json_t *)(uintptr_t)value, key,
			    item) if (has_control(key) || holds_control(item)) return true;
	return false;
}

const char *json_find_control(const json_t *object)
{
	const char *key;
	json_t *item;

	json_object_foreach((json_t *)(uintptr_t)object, key,
			    item) if (has_control(key) || holds_control(item)) return key;
	return NULL;
}
