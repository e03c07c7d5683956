/* Small helpers over jansson (https://jansson.readthedocs.io): checked access with good messages.
 * With this linked, a failed allocation of jansson ends the process as base/memory.h says. */
#ifndef PRONY_BASE_JSON_H
#define PRONY_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Parses one document; the message names `where` (a file or "reply of worker"), line and column.
 * *out is a new reference. Duplicate keys and depth over 64 are refused. */
enum prony_status json_parse(const char *text, size_t length, const char *where, json_t **out,
			     struct error *err);
enum prony_status json_read_file(const char *path, size_t limit_bytes, json_t **out,
				 struct error *err);

/* Required members; PRONY_BAD_INPUT names the key and the expected type. Strings are borrowed. */
enum prony_status json_get_string(const json_t *object, const char *key, const char **out,
				  struct error *err);
enum prony_status json_get_int(const json_t *object, const char *key, int64_t *out,
			       struct error *err);
enum prony_status json_get_real(const json_t *object, const char *key, double *out,
				struct error *err); /* integers are accepted */
enum prony_status json_get_bool(const json_t *object, const char *key, bool *out,
				struct error *err);
enum prony_status json_get_array(const json_t *object, const char *key, json_t **out,
				 struct error *err); /* borrowed */
enum prony_status json_get_object(const json_t *object, const char *key, json_t **out,
				  struct error *err); /* borrowed */

/* Optional members: the default when absent or null. */
const char *json_string_or(const json_t *object, const char *key, const char *otherwise);
int64_t json_int_or(const json_t *object, const char *key, int64_t otherwise);
double json_real_or(const json_t *object, const char *key, double otherwise);
bool json_bool_or(const json_t *object, const char *key, bool otherwise);

/* The member of the object (at any depth below it) whose text, or a key of which, has a control
 * character; NULL if there is none. Borrowed. */
const char *json_find_control(const json_t *object);

/* json_real that stores non-finite numbers as null: JSON has no NaN. New reference. */
json_t *json_number(double value);

#endif
