/* Checks the name and the shape of a value. */
#include "graph/edit_internal.h"

#include <jansson.h>
#include <string.h>

enum prony_status graph_check_name(const char *what, const char *name, struct error *err)
{
	size_t length = strnlen(name, GRAPH_MAX_NAME_BYTES + 1);
	json_t *text;

	if (length == 0)
		return error_set(err, PRONY_BAD_INPUT, "a %s has an empty name", what);
	if (length > GRAPH_MAX_NAME_BYTES)
		return error_set(err, PRONY_BAD_INPUT,
				 "%s '%.40s...': the name is longer than %d bytes", what, name,
				 GRAPH_MAX_NAME_BYTES);
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return error_set(err, PRONY_BAD_INPUT,
					 "%s '%s': control characters are not allowed in names",
					 what, name);
	}
	/* Names are written to JSON, and jansson accepts UTF-8 only. */
	text = json_string(name);
	json_decref(text);
	if (text == NULL)
		return error_set(err, PRONY_BAD_INPUT, "%s '%s': names must be UTF-8", what, name);
	return PRONY_OK;
}

enum prony_status graph_check_shape(const char *name, enum dtype dtype, const struct shape *shape,
				    struct error *err)
{
	struct tensor tensor = {.dtype = dtype, .shape = *shape};
	char text[128];

	shape_text(shape, text, sizeof(text));
	for (int i = 0; i < shape->rank; i++) {
		if (shape->dims[i] < 1 || shape->dims[i] > GRAPH_MAX_DIM)
			return error_set(err, PRONY_BAD_INPUT,
					 "value '%s': dimension %d of shape %s must be 1 to %d",
					 name, i, text, GRAPH_MAX_DIM);
	}
	if (tensor_bytes(&tensor) < 0)
		return error_set(err, PRONY_BAD_INPUT, "value '%s': shape %s is too large", name,
				 text);
	return PRONY_OK;
}
