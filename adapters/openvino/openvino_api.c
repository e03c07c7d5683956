#include "adapters/openvino/openvino_api.h"

#include <stdio.h>
#include <string.h>

#include "base/loader.h"

enum prony_status ov_api_load(struct ov_api *api, const char *path, struct error *err)
{
	const struct loader_symbol symbols[] = {
#define X(result, function, arguments) LOADER_SYMBOL(api->function, #function),
		OV_FUNCTIONS(X)
#undef X
			LOADER_OPTIONAL(api->encrypts,
					"ov_property_key_cache_encryption_callbacks"),
	};
	void *library;
	enum prony_status status = loader_open(path, &library, err);

	if (status != PRONY_OK)
		return status;
	return loader_resolve(library, path, symbols, sizeof(symbols) / sizeof(symbols[0]), err);
}

/* Its messages have a line for each place that an exception passed. */
static void one_line(const char *text, char *out, size_t bytes)
{
	size_t length = 0;

	for (; *text && length + 1 < bytes; text++) {
		char c = *text == '\n' || *text == '\t' ? ' ' : *text;

		if (c != ' ' || (length > 0 && out[length - 1] != ' '))
			out[length++] = c;
	}
	while (length > 0 && out[length - 1] == ' ')
		length--;
	out[length] = '\0';
}

enum prony_status ov_check(const struct ov_api *api, int result, const char *what,
			   struct error *err)
{
	enum prony_status code = PRONY_INVALID;
	char text[ERROR_TEXT_BYTES - 64];

	if (result == OV_OK)
		return PRONY_OK;
	const char *said = api->ov_get_last_err_msg();
	one_line(said ? said : "no reason given", text, sizeof(text));
	if (result == OV_NOT_IMPLEMENTED || strstr(text, "not support") ||
	    strstr(text, "wasn't fully converted"))
		code = PRONY_UNSUPPORTED;
	else if (strstr(text, "bad_alloc") || strstr(text, "memory alloc"))
		code = PRONY_OUT_OF_MEMORY;
	return error_set(err, code, "OpenVINO failed (%s): %s", what, text);
}
