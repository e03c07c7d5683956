/* Loads TensorFlow's C interface and converts its errors. */
#include "adapters/tensorflow/tf_api.h"

#include <string.h>

#include "base/loader.h"

enum prony_status tf_api_load(struct tf_api *api, const char *path, const char *before,
			      struct error *err)
{
	struct tf_api loaded = {0};
	const struct loader_symbol symbols[] = {
#define X(result, function, arguments) LOADER_SYMBOL(loaded.function, #function),
		TF_FUNCTIONS(X)
#undef X
	};
	void *library;
	enum prony_status status = before ? loader_open_global(before, err) : PRONY_OK;

	if (status == PRONY_OK)
		status = loader_open(path, &library, err);
	if (status == PRONY_OK)
		status = loader_resolve(library, path, symbols,
					sizeof(symbols) / sizeof(symbols[0]), err);
	if (status != PRONY_OK)
		return status;
	loaded.status = loaded.TF_NewStatus();
	*api = loaded;
	return PRONY_OK;
}

void tf_api_release(struct tf_api *api)
{
	if (api->status)
		api->TF_DeleteStatus(api->status);
	*api = (struct tf_api){0};
}

/* Whether an error text says that there is no kernel for the device, type or layout. */
static bool lacks_kernel(const char *text)
{
	static const char *const words[] = {"only supports",
					    "not supported",
					    "does not support",
					    "No OpKernel was registered",
					    "not implemented",
					    "No registered",
					    "not in the list of allowed values"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

enum prony_status tf_check(const struct tf_api *api, const char *what, struct error *err)
{
	int code = api->TF_GetCode(api->status);
	enum prony_status status = PRONY_INVALID;

	if (code == TF_CODE_OK)
		return PRONY_OK;
	const char *text = api->TF_Message(api->status);
	if (code == TF_CODE_RESOURCE_EXHAUSTED)
		status = PRONY_OUT_OF_MEMORY;
	else if (code == TF_CODE_UNIMPLEMENTED || lacks_kernel(text))
		status = PRONY_UNSUPPORTED;
	/* Only the first line; the lines after it list the nodes before the failed one. */
	return error_set(err, status, "TensorFlow failed (%s): %.*s", what,
			 (int)strcspn(text, "\n"), text);
}
